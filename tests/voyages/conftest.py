"""A small project and the program `rabaska` itself, run as a user would run it."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

# Counts to `--steps`, saving now and then; everything a test wants to vary is an option. With
# `--hold 2` the first two jobs go on after their first save until somebody ends them.
TRAIN = """
import argparse, json, os, time

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--output", required=True)
parser.add_argument("--resume")
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--pause", type=float, default=0.02)
parser.add_argument("--every", type=int, default=5)
parser.add_argument("--gate", help="a file without which it does not go on after ten steps")
parser.add_argument("--hold", type=int, default=0)
args = parser.parse_args()

assert len(os.listdir(args.data)) == 3
step = 0
if args.resume:
    with open(args.resume) as f:
        step = json.load(f)["step"]
while step < args.steps:
    while args.gate and step == 10 and not os.path.exists(args.gate):
        time.sleep(0.02)
    step += 1
    time.sleep(args.pause)
    print("step", step, "loss", 1 / step)
    if step % args.every == 0:
        name = os.path.join(args.output, "checkpoint-%04d.json" % step)
        with open(name + ".tmp", "w") as f:
            json.dump({"step": step}, f)
        os.replace(name + ".tmp", name)
        while args.hold and int(os.environ["RABASKA_JOB"]) <= args.hold:
            time.sleep(0.05)
with open(os.path.join(args.output, "result.json"), "w") as f:
    json.dump({"final": step}, f)
print("accuracy 0.95")
"""

SETTINGS = """
name = "tiny"
command = "python train.py --data {data} --output {output} --resume {checkpoint}"

[data.numbers]
path = "numbers"

[resources]
walltime = "60s"

[chain]
jobs = 3

[checkpoints]
patterns = ["checkpoint-*.json"]
"""


@dataclass(frozen=True)
class User:
    """Somebody in a project folder, with a home of their own."""

    project: Path
    home: Path

    @property
    def environment(self):
        own = {"RABASKA_HOME": str(self.home), "NO_COLOR": "1"}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, **own, "PATH": path}

    def start(self, *words, **options):
        return subprocess.Popen(
            [sys.executable, "-m", "rabaska", *words], cwd=self.project, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="surrogateescape", **options,
        )  # fmt: skip

    def types(self, *words, code=0):
        """Run a command to its end and expect its exit code; with None, any."""
        process = self.start(*words)
        output, errors = process.communicate(timeout=300)
        assert code in (None, process.returncode), (
            f"{words}: {process.returncode}\n{output}\n{errors}"
        )
        assert "Traceback" not in errors
        return Said(output, errors)

    def status(self, run=""):
        return json.loads(self.types("status", *([run] if run else []), "--json").output)

    def until(self, met, run="", seconds=60):
        """Ask for the status until `met` is content with it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            told = self.status(run)
            if met(told):
                return told
            time.sleep(0.1)
        raise AssertionError(f"still waiting: {told}")

    @property
    def gate(self):
        """What lets a program that was started with `--gate` go on."""
        return self.project.parent / "gate"

    def write(self, name, text):
        (self.project / name).write_text(textwrap.dedent(text))

    def settings(self, **changes):
        """rabaska.toml with some lines replaced, by the first word of the line."""
        lines = []
        for line in SETTINGS.splitlines():
            key = line.partition(" =")[0]
            lines.append(f"{key} = {changes[key]}" if key in changes else line)
        self.write("rabaska.toml", "\n".join(lines))


@dataclass(frozen=True)
class Said:
    output: str
    errors: str


@pytest.fixture
def user(tmp_path):
    project = tmp_path / "project"
    (project / "numbers").mkdir(parents=True)
    for number in range(3):
        (project / "numbers" / f"{number}.txt").write_text(str(number))
    someone = User(project, tmp_path / "home")
    someone.write("train.py", TRAIN)
    someone.settings()
    yield someone
    end_everything_of(someone.home)


def end_everything_of(home):
    """No test leaves a keeper or a program behind."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(home).encode() in entry.read_bytes():
                os.kill(int(entry.parent.name), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
