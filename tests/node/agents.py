"""Agents as real processes of the zipapp, on a run folder with its code snapshot."""

import hashlib
import io
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rabaska.node import files
from rabaska.node.record import events, jobs, plan
from rabaska.node.record.run_folder import RunFolder


def snapshot_tar(path: Path, code: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, text in code.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            member.mode = 0o755
            tar.addfile(member, io.BytesIO(text.encode()))


def make_run(store: Path, code: dict[str, str], **changes: Any) -> RunFolder:
    """A run that has not begun, with `code` as its snapshot and the plan changed by `changes`."""
    fields: dict[str, Any] = {
        "run": "digits-7f3a", "command": [sys.executable, "train.py"], "resume": [],
        "datasets": [], "patterns": ["*.npz", "*.txt"], "keep": [], "variables": {},
        "walltime": 60.0, "grace": 4.0, "signal": "TERM", "jobs": 3, "progress": "",
    }  # fmt: skip
    made = store / "code" / "made.tar"
    snapshot_tar(made, code)
    fields["code"] = hashlib.sha256(made.read_bytes()).hexdigest()[:32]
    made.rename(made.with_name(fields["code"] + ".tar"))
    fields.update(changes)
    run = RunFolder(str(store / "runs" / fields["run"]))
    for folder in (run.logs, run.output(0), run.checkpoints(0), os.path.join(run.path, "jobs")):
        os.makedirs(folder)
    files.write_json(run.plan, plan.to_json(plan.Plan(**fields)))
    return run


def code_of(run: RunFolder) -> str:
    """The archive of a run's code."""
    wanted = plan.load(run)
    assert wanted is not None
    return run.code(wanted.code)


@dataclass
class Agents:
    """Starts agents on one run and sees to it that none outlives the test."""

    zipapp: Path
    run: RunFolder
    local: Path
    python: str = os.environ.get("RABASKA_TEST_PYTHON", sys.executable)
    started: list["subprocess.Popen[str]"] = field(default_factory=list)

    def start(self, **variables: str) -> "subprocess.Popen[str]":
        return self._start(["run", self.run.path], variables)

    def start_shell(self, *words: str) -> "subprocess.Popen[str]":
        """A command as in `rabaska shell`."""
        return self._start(["shell", self.run.path, "--", *words], {})

    def _start(self, words: list[str], variables: dict[str, str]) -> "subprocess.Popen[str]":
        local = self.local / str(len(self.started))
        local.mkdir(parents=True)
        environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("RABASKA")},
            "RABASKA_JOB_ID": f"12_{len(self.started) + 1}",
            "RABASKA_LOCAL": str(local),
            "RABASKA_LEASE_SECONDS": "3",
            "RABASKA_KEEP_SECONDS": "1",
            **variables,
        }
        agent = subprocess.Popen(
            [self.python, str(self.zipapp), *words],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="surrogateescape",
            process_group=0,  # as under every batch system
        )
        self.started.append(agent)
        return agent

    def job(self, **variables: str) -> tuple[int, str]:
        """Run one job to its end: its exit code and what it said."""
        agent = self.start(**variables)
        said, _ = agent.communicate(timeout=60)
        return agent.returncode, said

    def ended(self, job: int) -> jobs.Ended:
        found = jobs.read_ended(self.run, job)
        assert found is not None, f"job {job} left no record of its end"
        return found

    def log(self, job: int) -> str:
        return Path(self.run.log(job)).read_text()

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in events.read(self.run) if event["event"] == kind]
