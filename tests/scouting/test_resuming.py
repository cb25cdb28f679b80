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
    assert proposed.jobs == 3


def test_an_option_with_another_name_is_given_the_checkpoint_if_it_reaches_the_counter(tmp_path):
    text = f"""
        parser.add_argument("--snapshot-to-use", dest="old")
        first = torch.load(args.old)["epoch"] if args.old else 0
        for epoch in range(first, 10):
            {SAVES}"""

    read(tmp_path, text)

    assert scout(tmp_path).command[-2:] == ("--snapshot-to-use", "{checkpoint}")
