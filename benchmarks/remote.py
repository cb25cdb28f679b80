"""What small commands cost over ssh, beside what they must at least do: on the lab.

The lab is a real Slurm behind a real sshd on this computer (tests/lab), so the network costs
nothing and all that is measured is us. The shared connection is up, as it is after the first
command.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from measuring import medians
from rows import Row

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.lab import Lab

NAME = "commands over ssh"
STARTS_ALLOWED = 8  # times `python -c pass`, over a bare `ssh host squeue`
SECONDS_ALLOWED = 1.5  # over a bare `ssh host sbatch`
RUNS = 200
_NEVER_COMPILED = "PYTHONDONTWRITEBYTECODE"
STILL_WAITING = 5

PROFILE = """
title = "the lab"
scheduler = "slurm"
[reach]
host = "lab"
options = ["-F", "{config}"]
[storage]
store = "$SCRATCH/rabaska"
"""
PROJECT = 'name = "small"\ncommand = "sleep 0"\n[resources]\nwalltime = "2m"\n'
HELD = '[cluster.lab]\nnative = ["--hold"]\n'


@dataclass(frozen=True)
class Desk:
    """A laptop with a project and a lab at the other end of ssh."""

    folder: Path
    lab: Lab

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def environment(self) -> dict[str, str]:
        own = {"RABASKA_HOME": str(self.folder / "home"), "XDG_RUNTIME_DIR": str(self.folder)}
        # Compiled once, as an installed program is, wherever these sources are.
        own["PYTHONPYCACHEPREFIX"] = str(self.folder / "compiled")
        kept = {name: value for name, value in os.environ.items() if name != _NEVER_COMPILED}
        return {**kept, **own}

    def rabaska(self, *words: str) -> str:
        program = str(Path(sys.executable).with_name("rabaska"))
        return self._run([program, *words])

    def ssh(self, *words: str) -> str:
        (control,) = self.folder.glob("rabaska-*/*/*")
        connection = ["-F", str(self.lab.ssh_config), "-o", f"ControlPath={control}"]
        return self._run(["ssh", *connection, *words])

    def _run(self, words: Sequence[str]) -> str:
        done = subprocess.run(
            words,
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
        return done.stdout


@contextmanager
def desk() -> Iterator[Desk]:
    # Not below the usual folder: the path of a socket may have about a hundred characters.
    with Lab() as lab, tempfile.TemporaryDirectory(dir="/tmp") as folder:
        here = Desk(Path(folder), lab)
        profiles = here.folder / "home" / "clusters"
        profiles.mkdir(parents=True)
        (profiles / "lab.toml").write_text(PROFILE.format(config=lab.ssh_config))
        here.project.mkdir()
        (here.project / "rabaska.toml").write_text(PROJECT)
        yield here
        here.ssh("-O", "exit", "lab")


def seconds(work: Sequence[str], do: object) -> float:
    began = time.perf_counter()
    do(*work)  # type: ignore[operator]
    return time.perf_counter() - began


def run(quick: bool) -> list[Row]:
    with desk() as here:
        return [_status(here, quick), _unchanged_run(here, quick)]


def _status(here: Desk, quick: bool) -> Row:
    """Two hundred runs as people have them: most are over, some wait."""
    name = here.rabaska("run", "--on", "lab").strip()
    here.rabaska("wait", "-q", name)
    _copy(here, name, RUNS - 1 - STILL_WAITING)
    (here.project / "rabaska.toml").write_text(PROJECT + HELD)
    for _ in range(STILL_WAITING):
        here.rabaska("run", "--on", "lab")
    told = json.loads(here.rabaska("status", "--all", "--json"))
    if len(told) != RUNS:
        raise RuntimeError(f"{len(told)} runs were told")
    cost = medians(
        {
            "status": lambda: seconds(["status", "--all"], here.rabaska),
            "squeue": lambda: seconds(["lab", "squeue"], here.ssh),
            "pass": lambda: seconds([[sys.executable, "-c", "pass"]], here._run),
        },
        repeats=5 if quick else 25,
    )
    allowed = cost["squeue"] + STARTS_ALLOWED * cost["pass"]
    return Row(
        work=f"status of {RUNS} runs",
        peer=f"ssh squeue + {STARTS_ALLOWED} times python -c pass",
        ours=cost["status"],
        theirs=allowed,
        ratio=allowed / cost["status"],
        at_least=1.0,
    )


def _copy(here: Desk, run: str, count: int) -> None:
    runs = f"{here.lab.shared}/rabaska/runs"
    here.lab.shell(f"cd {runs} && for n in $(seq {count}); do cp -r {run} copy-$n; done")
    index = here.folder / "home" / "runs"
    record = json.loads((index / f"{run}.json").read_text())
    for number in range(1, count + 1):
        copy = {**record, "name": f"copy-{number}", "path": f"{runs}/copy-{number}"}
        (index / f"copy-{number}.json").write_text(json.dumps(copy))


def _unchanged_run(here: Desk, quick: bool) -> Row:
    (here.project / "rabaska.toml").write_text(PROJECT)
    here.lab.path(f"{here.lab.home}/job.sh").write_text("#!/bin/bash\nsleep 0\n")
    sbatch = ["lab", "sbatch --time=2 --output=/dev/null job.sh"]
    cost = medians(
        {
            "run": lambda: seconds(["run", "--on", "lab"], here.rabaska),
            "sbatch": lambda: seconds(sbatch, here.ssh),
        },
        repeats=3 if quick else 11,
    )
    allowed = cost["sbatch"] + SECONDS_ALLOWED
    return Row(
        work="run of an unchanged project",
        peer=f"ssh sbatch + {SECONDS_ALLOWED} s",
        ours=cost["run"],
        theirs=allowed,
        ratio=allowed / cost["run"],
        at_least=1.0,
    )
