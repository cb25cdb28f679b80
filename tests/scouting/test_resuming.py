"""Whether a program goes on from a checkpoint, as its source shows."""

import textwrap

import pytest

from rabaska.node.record import plan
from rabaska.scouting import framework_options, scripts
from rabaska.scouting.option_roles import roles
from rabaska.scouting.project_facts import scout
from rabaska.scouting.resume_support import resumption

HEAD = """
import argparse, os, pickle, re, torch
parser = argparse.ArgumentParser()
parser.add_argument("--resume"); parser.add_argument("--out"); parser.add_argument("--epochs")
args = parser.parse_args()
"""
SAVES = 'torch.save({"epoch": epoch}, os.path.join(args.out, "last.pt"))'

# What the program does, in a line or two; what that is.
PROGRAMS = {
    "by the name of the file": (plan.FULL, f"""
        first = int(re.search(r"(\\d+)", args.resume).group(1)) if args.resume else 0
        for epoch in range(first, args.epochs):
            {SAVES}"""),
    "rounds are passed over": (plan.FULL, f"""
        done = torch.load(args.resume)["epoch"] if args.resume else -1
        for epoch in range(args.epochs):
            if epoch <= done:
                continue
            {SAVES}"""),
    "all of it is one object": (plan.FULL, """
        state = {"step": 0}
        if args.resume:
            state.update(pickle.load(open(args.resume, "rb")))
        while state["step"] < args.epochs:
            state["step"] += 1
            pickle.dump(state, open(os.path.join(args.out, "state.pkl"), "wb"))"""),
    "all of it is text": (plan.FULL, """
        state = {"step": 0}
        if args.resume:
            with open(args.resume) as stream:
                state = json.load(stream)
        for step in range(state["step"], args.epochs):
            with open(os.path.join(args.out, f"checkpoint-{step}.json"), "w") as stream:
                json.dump({"step": step + 1}, stream)"""),
    "by a class that loads": (plan.FULL, """
        class Trainer:
            def __init__(self, args):
                self.args, self.start = args, 0
                if args.resume:
                    self.restore(args.resume)
            def restore(self, path):
                content = torch.load(path)
                self.start = content["epoch"]
            def train(self):
                for epoch in range(self.start, self.args.epochs):
                    torch.save({"epoch": epoch}, os.path.join(self.args.out, "last.pt"))
        Trainer(args).train()"""),
    "by what is left of the file's name": (plan.FULL, f"""
        first = int(os.path.basename(args.resume).replace("epoch_", "")) + 1 if args.resume else 0
        model.load_state(args.resume)
        for epoch in range(first, args.epochs):
            {SAVES}"""),
    "by settings that are unfolded": (plan.FULL, """
        def train(out=".", resume_step=0, resume_state=None):
            if resume_state:
                optimizer.load_state_dict(torch.load(resume_state))
            step = resume_step * 1000
            while step < 10:
                step += 1
                torch.save(step, os.path.join(out, "state-%d.pt" % step))
        c = Settings()
        if args.resume:
            c.resume_step = int(re.search(r"(\\d+)", args.resume).group(1))
            c.resume_state = args.resume
        train(**c)"""),
    "by a sum of two counters": (plan.FULL, """
        class Loop:
            def __init__(self, resume):
                self.step = self.before = 0
                if resume:
                    self.before = torch.load(resume)["step"]
            def run(self):
                while self.step + self.before < 100:
                    self.step += 1
                    torch.save({"step": self.step}, os.path.join(args.out, "last.pt"))
        Loop(args.resume).run()"""),
    "by a library's function of the same name": (plan.FULL, f"""
        from flax.training import checkpoints
        def restore_checkpoint(state, path):
            return checkpoints.restore_checkpoint(path, state)
        state = restore_checkpoint(state, args.resume)
        for epoch in range(int(state.step), 100):
            {SAVES}"""),
    "a function fills a dictionary": (plan.FULL, f"""
        def restart(path, variables=None, **parts):
            content = torch.load(path)
            for key, part in parts.items():
                part.load_state_dict(content[key])
            for name in variables:
                variables[name] = content[name]
        restored = {{"epoch": 0}}
        restart(args.resume, variables=restored, model=model)
        first = restored["epoch"]
        for epoch in range(first, args.epochs):
            {SAVES}"""),
    "an engine of ignite counts": (plan.FULL, """
        from ignite.engine import Engine
        from ignite.handlers import Checkpoint, DiskSaver
        trainer = Engine(update)
        parts = {"trainer": trainer, "model": model}
        trainer.add_event_handler("epoch", Checkpoint(parts, DiskSaver(args.out)))
        if args.resume:
            Checkpoint.load_objects(to_load=parts, checkpoint=torch.load(args.resume))
        trainer.run(loader, max_epochs=10)"""),
    "only the model of an engine is loaded": (plan.WEIGHTS, """
        from ignite.engine import Engine
        from ignite.handlers import Checkpoint, DiskSaver
        trainer = Engine(update)
        trainer.add_event_handler("epoch", Checkpoint({"model": model}, DiskSaver(args.out)))
        if args.resume:
            Checkpoint.load_objects(to_load={"model": model}, checkpoint=torch.load(args.resume))
        trainer.run(loader, max_epochs=10)"""),
    "the limit is loaded, and not the counter": (plan.WEIGHTS, f"""
        limit = torch.load(args.resume)["epochs"] if args.resume else 10
        for epoch in range(limit):
            {SAVES}"""),
    "as many rounds as there are weights": (plan.WEIGHTS, f"""
        weights = torch.load(args.resume) if args.resume else []
        for epoch in range(len(weights), 100):
            {SAVES}"""),
    "the path goes to somebody else": (plan.UNREAD, """
        import engine
        runner = engine.Runner(resume_from=args.resume, work_dir=args.out)
        runner.train()
        torch.save(runner, os.path.join(args.out, "last.pt"))"""),
    "a number of a sample is no load": (plan.VARIABLE, f"""
        from rabaska.training import PackedDataset
        start = torch.load(args.resume)["step"] if args.resume else 0
        d = PackedDataset(args.data)
        for step in range(start, len(d)):
            c, label = d[step]
            total = float(c.split()[-1]) + int(label)
            {SAVES}"""),
    "a number of the path alone is no load": (plan.UNREAD, f"""
        seed = int(args.resume.split("-")[-1]) if args.resume else 0
        for epoch in range(10):
            {SAVES}"""),
    "one load of two reaches the counter": (plan.FULL, f"""
        model.load_state_dict(torch.load(args.resume)["model"])
        first = torch.load(args.resume)["epoch"]
        for epoch in range(first, 10):
            {SAVES}"""),
    "another one, where we give the variables": (plan.VARIABLE, f"""
        from rabaska.training import PackedDataset
        model.load_state_dict(torch.load(os.environ["RABASKA_CHECKPOINT"])["model"])
        first = torch.load(args.resume)["epoch"] if args.resume else 0
        for epoch in range(first, 10):
            {SAVES}"""),
    "the option is never used": (plan.NOT, f"""
        for epoch in range(10):
            {SAVES}"""),
    "a trainer tests it": (plan.NOT, """
        trainer = lightning.Trainer(default_root_dir=args.out)
        trainer.fit(model)
        trainer.test(model, ckpt_path=args.resume)"""),
    "loaded to be evaluated": (plan.NOT, f"""
        parser.add_argument("--evaluate", action="store_true")
        first = 0
        if args.evaluate:
            first = torch.load(os.path.join(args.out, "last.pt"))["epoch"]
        for epoch in range(first, 10):
            {SAVES}"""),
}  # fmt: skip


def read(folder, text, command="python train.py --resume {checkpoint} --out {output}"):
    (folder / "train.py").write_text(HEAD + textwrap.dedent(text))
    script = scripts.find(folder).found[0]
    options = framework_options.all_options(script, folder)
    meant = roles(options, scripts.usage(script))
    return resumption(script, options, meant, command.split())


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_goes_on_only_if_what_it_loads_reaches_its_counter(name, tmp_path):
    expected, text = PROGRAMS[name]

    assert read(tmp_path, text).kind == expected


def test_a_way_that_has_to_be_asked_for_is_found_and_written(tmp_path):
    text = f"""
        parser.add_argument("--mode", choices=["fresh", "continue"], default="fresh")
        first = 0
        if args.mode == "continue":
            first = torch.load(os.path.join(args.out, "last.pt"))["epoch"]
        for epoch in range(first, 10):
            {SAVES}"""

    found = read(tmp_path, text, command="python train.py --out {output}")
    proposed = scout(tmp_path)

    assert (found.kind, found.words) == (plan.NOT, ("--mode", "continue"))
    assert proposed.resume == ("--mode", "continue")
    assert [guess.value for guess in proposed.guesses if guess.what == "resumes"] == [
        "with --mode continue, state and counter"
    ]
    assert proposed.jobs == 3


def test_an_option_with_another_name_is_given_the_checkpoint_if_it_reaches_the_counter(tmp_path):
    text = f"""
        parser.add_argument("--snapshot-to-use", dest="old")
        first = torch.load(args.old)["epoch"] if args.old else 0
        for epoch in range(first, 10):
            {SAVES}"""

    read(tmp_path, text)

    assert scout(tmp_path).command[-2:] == ("--snapshot-to-use", "{checkpoint}")


def test_the_file_of_settings_is_not_given_the_checkpoint(tmp_path):
    text = """
        import argparse, os, torch, yaml
        parser = argparse.ArgumentParser()
        parser.add_argument("-opt", required=True)
        parser.add_argument("--auto_resume", action="store_true")
        def newest(settings):
            if settings["auto_resume"]:
                return torch.load(os.path.join("experiments", settings["name"], "last.state"))
            return None
        args = parser.parse_args()
        settings = yaml.safe_load(open(args.opt))
        settings["auto_resume"] = args.auto_resume
        state = newest(settings)
        first = state["iter"] if state else 0
        for step in range(first, settings["total"]):
            model(step).backward()
            torch.save({"iter": step}, os.path.join("experiments", settings["name"], "last.state"))
    """
    (tmp_path / "options").mkdir()
    (tmp_path / "options" / "small.yml").write_text("name: small\ntotal: 10\n")
    (tmp_path / "README.md").write_text("    python train.py -opt options/small.yml\n")

    (tmp_path / "train.py").write_text(textwrap.dedent(text))
    found = scout(tmp_path)

    assert found.command == ("python", "train.py", "-opt", "options/small.yml")
    assert found.resume == ("--auto_resume",)
    assert found.jobs == 3, found.warnings


def test_a_switch_whose_folder_cannot_be_seen_is_not_called_a_start_from_the_beginning(tmp_path):
    text = """
        import argparse, os, torch
        from settings import read_settings
        parser = argparse.ArgumentParser()
        parser.add_argument("--auto_resume", action="store_true")
        settings = read_settings(parser.parse_args())
        first = 0
        if settings["auto_resume"]:
            first = torch.load(settings["path"]["state"])["iter"]
        for step in range(first, settings["total"]):
            model(step).backward()
            torch.save({"iter": step}, os.path.join(settings["path"]["root"], "last.state"))
    """
    (tmp_path / "train.py").write_text(textwrap.dedent(text))

    found = scout(tmp_path)

    assert (found.jobs, found.advice) == (1, ())
    assert any("could not tell whether train.py resumes" in each for each in found.warnings)


def test_the_batches_of_one_step_are_no_loop_to_change(tmp_path):
    text = """
        import torch
        optimizer = torch.optim.Adam(model.parameters())
        step = 0
        while step < 100:
            for _ in range(4):
                model(step).backward()
            optimizer.step()
            step += 1
    """
    (tmp_path / "train.py").write_text(textwrap.dedent(text))

    assert scout(tmp_path).advice == ()


def test_data_that_is_loaded_is_not_called_weights(tmp_path):
    text = f"""
        parser.add_argument("-data_pkl", default=None)
        pairs = pickle.load(open(args.data_pkl, "rb"))
        for epoch in range(10):
            model(pairs[epoch]).backward()
            {SAVES}"""

    read(tmp_path, text.replace("--resume", "--other"))
    warning = next(each for each in scout(tmp_path).warnings if "jobs" in each)

    assert "weights" not in warning
    assert "is not loaded again" in warning


def test_a_model_that_must_be_named_is_not_given_the_checkpoint(tmp_path):
    text = """
        import os
        from dataclasses import dataclass, field
        from transformers import HfArgumentParser, Trainer, TrainingArguments
        @dataclass
        class ModelArguments:
            model_name_or_path: str = field(metadata={"help": "a name, or a folder"})
        parser = HfArgumentParser((ModelArguments, TrainingArguments))
        model_args, training_args = parser.parse_args_into_dataclasses()
        trainer = Trainer(args=training_args)
        checkpoint = None
        if os.path.isdir(model_args.model_name_or_path):
            checkpoint = model_args.model_name_or_path
        trainer.train(resume_from_checkpoint=checkpoint)
    """
    (tmp_path / "run.py").write_text(textwrap.dedent(text))
    (tmp_path / "README.md").write_text("    python run.py --model_name_or_path=wav2vec2\n")

    found = scout(tmp_path)

    assert "{checkpoint}" not in found.command
    assert found.command[2:4] == ("--model_name_or_path", "wav2vec2")
    assert found.jobs == 1


def test_files_are_followed_through_packages_however_deep(tmp_path):
    files = {
        "train.py": """
            import argparse
            from trainer import Trainer
            parser = argparse.ArgumentParser()
            parser.add_argument("--resume"); parser.add_argument("--save-dir", default="saved")
            Trainer(parser.parse_args()).train()""",
        "trainer/__init__.py": "from .trainer import *",
        "trainer/trainer.py": """
            from base import BaseTrainer
            class Trainer(BaseTrainer):
                pass""",
        "base/__init__.py": "from .parts.base_trainer import BaseTrainer",
        "base/parts/base_trainer.py": """
            from ..store import load_checkpoint, save_checkpoint
            class BaseTrainer:
                def __init__(self, args):
                    self.args, self.start = args, 0
                    if args.resume is not None:
                        self.start = load_checkpoint(args.resume)["epoch"] + 1
                def train(self):
                    for epoch in range(self.start, 10):
                        save_checkpoint({"epoch": epoch}, self.args.save_dir)""",
        "base/store.py": """
            import os, torch
            def load_checkpoint(path):
                return torch.load(path)
            def save_checkpoint(state, folder):
                torch.save(state, os.path.join(folder, "last.pth"))""",
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(content))

    found = scout(tmp_path)

    assert found.jobs == 3, found.warnings
    assert "base/store.py" in found.evidence("resumes")
    assert found.patterns == ("last.pth",)


def test_a_name_that_is_part_of_the_path_leads_back_to_what_was_saved(tmp_path):
    (tmp_path / "train.py").write_text(
        textwrap.dedent("""
            import argparse, glob, os, torch
            def get_hparams():
                parser = argparse.ArgumentParser()
                parser.add_argument("-m", "--model", required=True, help="Model name")
                args = parser.parse_args()
                hparams = Settings()
                hparams.model_dir = os.path.join("./logs", args.model)
                return hparams
            def latest(folder):
                return sorted(glob.glob(os.path.join(folder, "G_*.pth")))[-1]
            def load_checkpoint(path):
                return torch.load(path)["iteration"]
            hps = get_hparams()
            try:
                first = load_checkpoint(latest(hps.model_dir))
            except IndexError:
                first = 1
            for epoch in range(first, 100):
                torch.save({"iteration": epoch}, os.path.join(hps.model_dir, f"G_{epoch}.pth"))
        """)
    )
    (tmp_path / "README.md").write_text("    python train.py -m base\n")

    found = scout(tmp_path)

    assert found.command == ("python", "train.py", "--model", "base")
    assert found.jobs == 3, found.warnings


# What is done with a state that was saved, by programs that begin each training anew.
NOT_FOR_TRAINING = {
    "evaluated after training": """
        def evaluate(path, rounds):
            model.load_state_dict(torch.load(path, map_location=device))
            returns = []
            while len(returns) < rounds:
                seen, info = world.step(model(seen.to(device)))
                returns += [info["return"]]
            return returns
        for step in range(args.epochs):
            loss = model(batch)
            loss.backward()
            optimizer.step()
        path = f"runs/{args.out}/last.pt"
        torch.save(model.state_dict(), path)
        for place, value in enumerate(evaluate(path, 10)):
            writer.add_scalar("return", value, place)""",
    "a file of layers names what is saved": """
        parser.add_argument("--layers", default="small.cfg")
        def read_layers(path):
            return [line.split() for line in open(path).read()]
        class Sizes:
            def __init__(self, layers):
                self.low, self.high = layers[0], layers[1]
            def pick(self):
                return random.choice(range(self.low, self.high))
        layers = read_layers(args.layers)
        model, sizes = Model(layers), Sizes(layers)
        optimizer = torch.optim.Adam(model.parameters(), lr=layers[0])
        for epoch in range(1, args.epochs + 1):
            for number, batch in enumerate(loader):
                model(batch, sizes.pick()).backward()
                optimizer.step()
            torch.save(model.state_dict(), f"saved/{args.layers}_{epoch}.pt")""",
    "a class that loads is never made": """
        class Trainer:
            def __init__(self, folder="./results"):
                self.folder, self.step = folder, 0
            def load(self):
                self.step = torch.load(os.path.join(self.folder, "last.pt"))["step"]
            def train(self):
                while self.step < 10:
                    model(batch).backward()
                    self.step += 1
                    torch.save({"step": self.step}, os.path.join(self.folder, "last.pt"))
        print(sample(4))""",
    "the method that loads is never called": """
        class Trainer:
            def __init__(self, folder="./results"):
                self.folder, self.step = folder, 0
            def load(self):
                self.step = torch.load(os.path.join(self.folder, "last.pt"))["step"]
            def train(self):
                while self.step < 10:
                    model(batch).backward()
                    self.step += 1
                    torch.save({"step": self.step}, os.path.join(self.folder, "last.pt"))
        trainer = Trainer(args.out)
        trainer.train()""",
    "the best of it is tested": """
        def test(folder):
            state = torch.load(os.path.join(folder, "best.pt"))
            for number in range(state["epoch"], 10):
                print(model(number))
        def train_epoch(epoch):
            for batch in loader:
                model(batch).backward()
        for epoch in range(args.epochs):
            train_epoch(epoch)
            torch.save({"epoch": epoch}, os.path.join(args.out, "best.pt"))
        test(args.out)""",
}


@pytest.mark.parametrize("name", NOT_FOR_TRAINING)
def test_a_state_that_reaches_another_loop_than_that_which_trains_resumes_nothing(name, tmp_path):
    found = read(tmp_path, NOT_FOR_TRAINING[name], command="python train.py --out {output}")

    assert (found.kind, found.place) == (plan.NOT, "")
    assert scout(tmp_path).jobs == 1


def test_the_proof_of_resuming_is_the_load_of_the_state_and_not_of_its_settings(tmp_path):
    text = """
        def read_settings(path):
            return json.load(open(path))
        class Trainer:
            def __init__(self, settings, resume):
                self.settings, self.start = settings, 0
                if resume:
                    state = torch.load(resume)
                    self.start = state["epoch"] + 1
            def train(self):
                for epoch in range(self.start, self.settings["epochs"]):
                    model(epoch).backward()
                    torch.save({"epoch": epoch}, os.path.join(args.out, "last.pt"))
        folder = os.path.dirname(args.resume)
        settings = read_settings(os.path.join(folder, "settings.json"))
        Trainer(settings, args.resume).train()"""

    found = read(tmp_path, text)

    assert (found.kind, "torch.load" in found.place) == (plan.FULL, True)
