"""Watching and the forecast by the front door: programs that know nothing of either."""

import json
import os
import re
from typing import NamedTuple

import pytest

from rabaska.node.record import forecast, jobs, plan
from rabaska.node.record.run_folder import RunFolder
from rabaska.node.record.run_forecast import terms_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# As much of PyTorch as the watcher looks at: the real one takes longer to import than these
# jobs last. The real one is in tests/training and benchmarks/watching.py.
TORCH = {
    "__init__": "from torch import optim, utils\nfrom torch.serialization import save",
    "serialization": """
import json
def save(content, f):
    with open(f, "w") as stream:
        json.dump(content, stream)
""",
    "optim/__init__": "from torch.optim.optimizer import SGD",
    "optim/optimizer": """
hooks = []
def register_optimizer_step_post_hook(hook): hooks.append(hook)
class SGD:
    def step(self):
        for hook in hooks: hook(self, (), {})
""",
    "utils/__init__": "from torch.utils import data",
    "utils/data/__init__": "from torch.utils.data.dataloader import DataLoader",
    "utils/data/dataloader": """
class _BaseDataLoaderIter:
    def __init__(self, loader):
        self.samples, self._num_yielded = loader.samples, 0
    def __len__(self): return self.samples
    def __next__(self):
        if self._num_yielded == self.samples: raise StopIteration
        self._num_yielded += 1
        return self._num_yielded
class DataLoader:
    def __init__(self, samples): self.samples = samples
    def __iter__(self): return _BaseDataLoaderIter(self)
""",
}

TRAIN = """
import argparse, json, os, time
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--batches", type=int, default=10)
parser.add_argument("--pause", type=float, default=0.05)
parser.add_argument("--resume")
parser.add_argument("--save")
asked = parser.parse_args()

first, optimizer = 0, torch.optim.SGD()
if asked.resume:
    with open(asked.resume) as stream:
        first = json.load(stream)["epoch"]
loader = torch.utils.data.DataLoader(asked.batches)
for epoch in range(first, asked.epochs):
    for batch in loader:
        time.sleep(asked.pause)
        optimizer.step()
    torch.save({"epoch": epoch + 1}, os.path.join(asked.save, "last.json"))
"""

SETTINGS = """
name = "tiny"
command = "python {options} train.py --save {{checkpoints}} --resume {{checkpoint}}"

[resources]
walltime = "20s"

[chain]
grace = "1s"

[checkpoints]
patterns = ["last.json"]
"""


@pytest.fixture
def watched(user):
    for name, text in TORCH.items():
        path = user.project / "torch" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    user.write("train.py", TRAIN)
    user.write("rabaska.toml", SETTINGS.format(options=""))
    return user


def lines_of(user, run):
    path = user.home / "store" / "runs" / run / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Program(NamedTuple):
    """What is slept in each of ten batches, how often, and in jobs of how many seconds."""

    pause: float
    epochs: int
    walltime: int

    def start(self, user):
        """A run that takes six jobs or more, nobody having said of how many."""
        words = ["--pause", str(self.pause), "--epochs", str(self.epochs)]
        return user.types("run", "--walltime", f"{self.walltime}s", "--", *words).output.strip()


def check_foretold(user, run, program):
    """That a tenth of the first job foretold the end of a run that took many."""
    user.types("wait", run)
    ended = user.status(run)

    told = foretold(user, run, 0.1 * program.walltime)

    assert ended["state"] == "finished"
    assert 6 <= len(ended["jobs"]) <= 12
    assert abs(told.jobs - len(ended["jobs"])) <= 1
    assert abs(told.finishes - ended["jobs"][-1]["ended"]) < 0.3 * program.walltime * told.jobs
    assert told.total == program.epochs
    return ended


def test_a_run_grows_as_its_pace_demands_and_a_tenth_of_its_first_job_foretells_it(watched):
    program = Program(0.025, 120, walltime=7)
    run = program.start(watched)
    early = watched.until(lambda told: told["extended"], run)
    said = watched.types("status", run).output

    ended = check_foretold(watched, run, program)

    assert len(early["jobs"]) == 1
    assert re.search(r"extended by 1 job, because with 0.\d+ s for each epoch it takes \d+", said)
    assert "the run adds the others when it needs them" in said
    assert ended["extended"]["jobs"] >= len(ended["jobs"]) - 1
    assert {job["id"].partition("_")[0] for job in ended["jobs"]} == {ended["job_id"]}


@pytest.mark.thorough
def test_a_tenth_of_the_first_job_foretells_long_chains_of_three_programs(watched, monkeypatch):
    """Many epochs to a job, six, and two."""
    monkeypatch.setenv("RABASKA_SLOTS", "3")
    programs = [Program(0.025, 190, 10), Program(0.12, 40, 10), Program(0.3, 13, 10)]
    runs = [program.start(watched) for program in programs]

    for run, program in zip(runs, programs, strict=True):
        check_foretold(watched, run, program)


def foretold(user, run, seconds):
    """What was known when the first job had trained for so long."""
    folder = RunFolder(str(user.home / "store" / "runs" / run))
    lines = [line for line in lines_of(user, run) if line["job"] == 1]
    early = [line for line in lines if line["time"] <= line["began"] + seconds]
    begun = jobs.read_begun(folder, 1)
    terms = terms_of(folder, plan.load(folder), begun)
    return forecast.forecast(forecast.pace(early, 0.0, []), terms, saved=True)


def test_a_run_that_may_have_no_more_jobs_says_how_to_add_them(watched):
    words = ["--walltime", "5s", "--jobs", "1", "--", "--epochs", "40", "--pause", "0.05"]

    run = watched.types("run", "--wait", *words, code=10).output.split()[0]

    for _ in range(2):  # a machine that became slower needs more than was foretold, and is told so
        said = watched.types("status", run).output
        [command] = re.findall(rf"`rabaska (resume {run} --jobs \d)` continues", said)
        assert f"`rabaska {command}` continues" in watched.types("logs", run).output
        watched.types(*command.split())
        waiting = watched.start("wait", run)
        waiting.communicate(timeout=300)
        if waiting.returncode == 0:
            break
    assert waiting.returncode == 0


def test_status_tells_speed_and_end_and_the_command_for_more_jobs(watched):
    watched.types("run", "--jobs", "1", "--walltime", "90s", "--", "--epochs", "1000")

    told = watched.until(lambda told: (told["speed"] or {}).get("saves"))
    said = watched.types("status").output

    assert "% of it waiting for data" in said
    assert " of 1000, 0." in said
    assert "done about" in said
    assert f"`rabaska resume {told['name']} --jobs " in said
    assert told["forecast"]["jobs_there"] == 1
    assert told["forecast"]["jobs"] > 2
    assert told["speed"]["seconds_per_step"] == pytest.approx(0.05, rel=0.6)
    assert told["speed"]["waiting"] < 0.1
    watched.types("cancel")


def test_a_chain_that_can_never_advance_says_so_before_its_first_job_is_over(watched):
    words = ["--batches", "5000", "--pause", "0.1"]
    run = watched.types("run", "--walltime", "60s", "--", *words).output.strip()
    events = watched.home / "store" / "runs" / run / "events.jsonl"

    watched.until(lambda told: "cannot advance" in events.read_text(), run)
    said = watched.types("status", run).output

    assert "running" in said
    assert "warning: this chain may never advance: one epoch takes" in said
    watched.types("cancel", run)


def test_a_chain_that_cannot_advance_ends_at_its_first_job_and_is_refused_next_time(watched):
    slow = SETTINGS.replace("train.py", "train.py --batches 500 --pause 0.1")
    slow = slow.replace('"20s"', '"6s"').replace("[chain]", "[chain]\njobs = 3")
    watched.write("rabaska.toml", slow.format(options=""))

    run = watched.types("run", "--wait", code=14).output.split()[0]
    told = watched.status(run)
    refused = watched.types("run", code=14).errors
    found = watched.types("doctor", code=1).output
    longer = watched.types("run", "--walltime", "30s", "--quiet").errors
    watched.types("cancel")
    watched.types("run", "--no-doctor")
    watched.types("cancel")
    watched.write("train.py", TRAIN.replace("asked.pause)", "asked.pause)  # now it saves"))
    changed = watched.types("run").errors

    assert len(told["jobs"]) == 1
    assert "saved: one epoch takes 50 s, and a job has" in told["reason"]
    assert re.search(r"save every \d+ steps or so, or ask for .*: `--walltime \d\ds`", told["hint"])
    assert f"because {run} saved nothing in" in refused
    assert "submits it all the same" in refused
    assert "no job would save anything" in found
    assert f"a job may be over before anything is saved: an epoch of {run} took 50 s" in longer
    assert "saved nothing" not in changed


def test_a_python_that_takes_no_advice_is_reported_and_read_from_its_log(watched):
    watched.write("rabaska.toml", SETTINGS.format(options="-E"))
    watched.write("train.py", TRAIN.replace(
        "    torch.save", "    print('epoch', epoch, flush=True)\n    torch.save"
    ))  # fmt: skip

    run = watched.types("run", "--", "--epochs", "30").output.strip()
    told = watched.until(lambda told: told["forecast"], run)

    assert "not watched: python -E" in watched.types("status", run).output
    assert told["speed"] is None
    assert told["forecast"]["seconds_each"] == pytest.approx(0.5, rel=0.6)
    watched.types("cancel", run)


def test_the_off_switch_leaves_a_program_alone(watched):
    watched.write("train.py", "import os, sys; print(os.environ['RABASKA_WATCH'], sys.meta_path)")
    settings = SETTINGS.format(options="")
    for switched in ("[progress]\nwatch = false", "[environment.variables]\nRABASKA_WATCH = '0'"):
        watched.write("rabaska.toml", settings + switched)
        run = watched.types("run", "--wait").output.split()[0]

        said = watched.types("logs", run).output

        assert "\n0 [" in said
        assert "Waiting" not in said
        assert lines_of(watched, run) == []


def test_a_save_cut_short_by_a_kill_is_cleared_away(watched):
    slow = TORCH["serialization"].replace("json.dump(content, stream)", """
        stream.write('{'); stream.flush()
        import os, signal, time
        if content["epoch"] == 2 and "RABASKA_CHECKPOINT" not in os.environ:
            os.kill(os.getpid(), signal.SIGKILL)
        stream.seek(0); json.dump(content, stream)""")  # fmt: skip
    (watched.project / "torch" / "serialization.py").write_text(slow)

    run = watched.types("run", "--wait", "--", "--epochs", "3").output.split()[0]

    told = watched.status(run)
    assert [job["how"] for job in told["jobs"]] == ["killed", "finished"]
    assert told["jobs"][1]["resumed_from"] == "checkpoints/last.json"
    left = os.listdir(watched.home / "store" / "runs" / run / "carried" / "002" / "checkpoints")
    assert left == ["last.json"]
