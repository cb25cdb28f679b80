"""The embedded cluster: how jobs on one computer are asked for, named and shown.

The other side of these words is `rabaska.node.here`, which runs wherever `program` runs: on this
computer, or on a workstation at the other end of ssh.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rabaska.domain.jobs import (
    Capabilities,
    InJob,
    JobId,
    JobSpec,
    JobState,
    JobStatus,
    TrialAnswer,
)
from rabaska.schedulers.protocol import SiteQueries

_STATES = {
    "QUEUED": JobState.QUEUED,
    "RUNNING": JobState.RUNNING,
    "STOPPING": JobState.STOPPING,
    "DONE": JobState.DONE,
    "FAILED": JobState.FAILED,
    "TIMEOUT": JobState.TIMEOUT,
    "CANCELLED": JobState.CANCELLED,
    "LOST": JobState.LOST,
    "NEVER_RAN": JobState.NEVER_RAN,
}

# here|<job>_<element>|STATE|exit|reason|started|ended|name|.   (`elements.line_of` on the node)
_TURN = "waits for its turn"
_LINE = re.compile(
    r"here\|(?P<id>\d{1,18}(?:_\d{1,18})?)\|(?P<state>[^|]+)\|(?P<exit>\d{0,9})\|(?P<reason>[^|]*)"
    r"\|(?P<started>[\d.]*)\|(?P<ended>[\d.]*)\|(?P<name>[^|]*)\|\.",
    re.ASCII,
)


@dataclass(frozen=True)
class Local:
    """Jobs that wait and run on this computer."""

    program: tuple[str, ...]  # what runs the node side there: ("python3", "/store/node/abc.pyz")
    queue: str

    @property
    def name(self) -> str:
        return "local"

    @property
    def capabilities(self) -> Capabilities:
        marks = (*self.program, "here", "marks", "--queue", self.queue)
        gone = "here: there is no job"
        own = ("--name", "--output", "--elements")
        return Capabilities(array=True, gone=gone, lets_save=True, find=marks, own_options=own)

    @property
    def site(self) -> SiteQueries:
        return SiteQueries()

    def directives(self, spec: JobSpec) -> list[str]:
        options = {
            "name": _one_line(spec.name) or "job",
            "time": f"{spec.resources.walltime.total_seconds():.15g}",
            "elements": str(spec.jobs),
            "gpus": str(spec.resources.gpus),
            "output": spec.folder.replace("%", "%%") + "/scheduler-%j.out",
        }
        lines = [f"#HERE {shlex.quote(f'--{key}={value}')}" for key, value in options.items()]
        return [*lines, *(f"#HERE {shlex.quote(_one_line(option))}" for option in spec.native)]

    def unmet(self, spec: JobSpec) -> list[str]:
        asked = spec.resources
        problems = {
            f"this computer is one node, and the job asks for {asked.nodes}": asked.nodes > 1,
            f"this computer cannot choose a {asked.gpu_model}": bool(asked.gpu_model),
            f"this computer has no features: {', '.join(spec.features)}": bool(spec.features),
            "this computer sends no mail": bool(spec.mail),
            "this computer has one queue, so its name is ignored": bool(spec.queue),
            "this computer has no accounts, so the account is ignored": bool(spec.account),
            "the folder for the job's output has a line break in its name": "\n" in spec.folder,
        }
        return [sentence for sentence, holds in problems.items() if holds]

    def submit_command(
        self, script: str, spec: JobSpec, *, after: JobId | None = None
    ) -> list[str]:
        if after:  # one more element of a job that is not over, by the script it has
            more = ["here", "more", "--queue", self.queue, "--mark", "{submission}"]
            return [*self.program, *more, after.native]
        mark = ["--mark", "{submission}"]
        return [*self.program, "here", "submit", "--queue", self.queue, *mark, "--", script]

    def read_job_id(self, output: str) -> JobId | None:
        found = re.findall(r"^here job (\d+)\r?$", output, re.MULTILINE | re.ASCII)
        found = found or re.findall(r"^(\d+)\n?\Z", output, re.ASCII)  # as its marks are listed
        return JobId(found[-1]) if found else None

    def prospect_command(self, spec: JobSpec) -> list[str]:
        return []

    def read_prospect(self, said: str) -> TrialAnswer:
        return TrialAnswer()

    def status_command(self, jobs: Sequence[JobId]) -> list[str]:
        return [*self.program, "here", "status", "--queue", self.queue, *map(str, jobs)]

    def read_status(self, output: str) -> Mapping[str, JobStatus]:
        lines = (_LINE.fullmatch(line.strip()) for line in output.split("\n"))
        found = {line["id"]: _status(line) for line in lines if line}
        turns = sorted({_number(key) for key, each in found.items() if each.reason == _TURN})
        return {
            key: replace(each, place=turns.index(_number(key)) + 1)
            if each.reason == _TURN
            else each
            for key, each in found.items()
        }

    def history_command(self, jobs: Sequence[JobId]) -> list[str]:
        return []  # status remembers every job

    def read_history(self, output: str) -> Mapping[str, JobStatus]:
        return self.read_status(output)

    def cancel_command(self, jobs: Sequence[JobId]) -> list[str]:
        return [*self.program, "here", "cancel", "--queue", self.queue, *map(str, jobs)]

    def carried_command(self, job: JobId) -> list[str]:
        return [*self.program, "here", "name", "--queue", self.queue, str(job)]

    def interactive_command(self, spec: JobSpec, script: str, *, terminal: bool) -> list[str]:
        return ["bash", script]  # one computer is allocated to whoever sits at it

    def waited_command(self, command: Sequence[str], *, account: str) -> list[str]:
        return list(command)

    def beside_command(self, job: str, command: Sequence[str], *, terminal: bool) -> list[str]:
        return list(command)

    def in_job(self) -> InJob:
        return InJob(
            job_id="$RABASKA_JOB_ID",
            ends="$RABASKA_JOB_ENDS",
            local_space="$RABASKA_LOCAL",
        )


def _status(found: re.Match[str]) -> JobStatus:
    return JobStatus(
        state=_STATES.get(found["state"], JobState.UNKNOWN),
        spelled=found["state"],
        reason=_unescaped(found["reason"]),
        exit_code=int(found["exit"]) if found["exit"] else None,
        carries=tuple(filter(None, [_unescaped(found["name"])])),
    )


def _number(element: str) -> int:
    return int(element.partition("_")[0])


def _unescaped(text: str) -> str:
    return re.sub(r"%(25|7C|0A|0D)", lambda code: chr(int(code[1], 16)), text)


def _one_line(text: str) -> str:
    return " ".join(text.split())
