"""A job script: directives, environment, one `exec`; and the script of an interactive shell."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rabaska.domain.amounts import say_duration
from rabaska.domain.jobs import InJob, JobSpec
from rabaska.node import private_files


@dataclass(frozen=True)
class Agent:
    """The node side's program and the run it is started for."""

    python: str
    program: str  # the zipapp
    run: str  # the run folder, or that of a search
    verb: tuple[str, ...] = ("run",)
    extra: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        return shlex.join((self.python, self.program, *self.verb, self.run, *self.extra))


def render(
    spec: JobSpec,
    directives: Sequence[str],
    in_job: InJob,
    setup: Sequence[str],
    agent: Agent,
) -> str:
    jobs = "1 job" if spec.jobs == 1 else f"up to {spec.jobs} jobs"
    lines = [
        "#!/bin/bash",
        *directives,
        "",
        f"# rabaska: run {spec.name}, {jobs} of {say_duration(spec.resources.walltime)} each.",
    ]
    lines += ["", "# Files of rabaska are private; your program gets your own umask"]
    lines += closed(in_job)
    if in_job.spooled:
        log = f'{shlex.quote(spec.folder)}/scheduler-"{in_job.job_id}".out'
        lines += ["", "# Write the output to the log while the job runs", f"exec >>{log} 2>&1"]
    if setup:
        lines += ["", "# The environment", *setup]
    if exported := exports(_with_end(in_job, spec)):
        lines += ["", "# Facts about this job for rabaska", *exported]
    lines += [
        "",
        "# Claim the run, stage the data, train, save, and record how it ended",
        f"exec {agent.command}",
    ]
    return "\n".join(lines) + "\n"


def closed(in_job: InJob) -> list[str]:
    own_umask = f'{private_files.UMASK}="$(umask)"'
    return [own_umask, f"export {private_files.UMASK}", f"umask {in_job.umask}"]


def _with_end(in_job: InJob, spec: JobSpec) -> InJob:
    """Where no variable tells when the job ends: its limit, counted from the script's start."""
    limit = int(spec.resources.walltime.total_seconds())
    return replace(in_job, ends=in_job.ends or f"$(($(date +%s) - SECONDS + {limit}))")


def exports(in_job: InJob) -> list[str]:
    """Nothing for what the scheduler exports under our own names by itself."""
    variables = {
        "RABASKA_JOB_ID": in_job.job_id,
        "RABASKA_JOB_ENDS": in_job.ends,
        "RABASKA_LOCAL": in_job.local_space,
        "RABASKA_CANCEL_REST": in_job.cancel_rest,
        "RABASKA_WAITING": in_job.waiting,
        **in_job.extra,
    }
    return [
        f'export {name}="{text}"'
        for name, text in variables.items()
        if text not in ("", f"${name}")
    ]


def enter_script(in_job: InJob, setup: Sequence[str], command: Sequence[str]) -> str:
    lines = ["#!/bin/bash", *closed(in_job)]
    if setup:
        lines += ["", "# The environment", *setup]
    if exported := exports(in_job):
        lines += ["", "# Facts about this job for rabaska", *exported]
    lines += ["", "# Stage the data, put the code in place, and open a shell there"]
    return "\n".join([*lines, f"exec {shlex.join(command)}"]) + "\n"
