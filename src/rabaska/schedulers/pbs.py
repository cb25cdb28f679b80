"""PBS Pro and OpenPBS: qsub, qstat, qdel.

Torque has commands of the same names that differ in nearly every option: see torque.py.
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rabaska.domain.jobs import (
    Capabilities,
    InJob,
    JobId,
    JobSpec,
    JobState,
    JobStatus,
    Prospect,
    Resources,
)
from rabaska.schedulers import pbs_family as family
from rabaska.schedulers.spelling import (
    by_hand,
    clock,
    mebibytes,
    on_node,
    once_on_the_first,
    one_word,
    said,
)

_STATES = {
    **family.STATES,
    "B": JobState.RUNNING,  # an array that has begun
    "U": JobState.RUNNING,  # suspended, for somebody is at the computer
}
_FINISHED = ("F", "X")  # X is a finished element of an array
_WALLTIME, _OUT_OF_MEMORY = -29, (-26, -27)  # JOB_EXEC_KILL_… in PBS's job.h
_FINISHED_JOB = 35  # what qstat exits with when some of the jobs are over

_JOB = re.compile(rf'"({family.NUMBER})(?:\.[^"\s]*)?"\s*:\s*(?=\{{)', re.ASCII)
_STATE = re.compile(r'"job_state"\s*:\s*"(\w)"')


@dataclass(frozen=True)
class Pbs:
    @property
    def name(self) -> str:
        return "pbs"

    @property
    def capabilities(self) -> Capabilities:
        # Arrays could run one element at a time, but PBS refuses `-r n` for them.
        return Capabilities(
            dependency=True, mail=True, features=True, accounts=True, asked_by_id=True,
            partial_answers=(family.UNKNOWN_JOB, _FINISHED_JOB),
            gone="Unknown Job Id|Job has finished|invalid for state of job",
        )  # fmt: skip

    def directives(self, spec: JobSpec) -> list[str]:
        asked = [f"-l walltime={clock(spec.resources.walltime)}", f"-l {_select(spec)}"]
        if spec.resources.exclusive:
            asked.append("-l place=excl")
        return family.directives(spec, asked)

    def unmet(self, spec: JobSpec) -> list[str]:
        model = spec.resources.gpu_model
        return said(
            {
                f"PBS has no common word for a {model}: give the site's own under `features`, "
                f"such as `gpu_model={model}`": bool(model) and not _names_model(spec),
                **once_on_the_first(spec),
            }
        )

    def submit_command(
        self, script: str, spec: JobSpec, *, after: JobId | None = None
    ) -> list[str]:
        return family.submission("qsub", script, after)

    def read_job_id(self, output: str) -> JobId | None:
        return family.submitted(output)

    def prospect_command(self, spec: JobSpec) -> list[str]:
        return family.queue_question(spec)

    def read_prospect(self, said: str) -> Prospect:
        return family.read_queue(said)

    def status_command(self, jobs: Sequence[JobId]) -> list[str]:
        return ["qstat", "-t", "-x", "-f", "-F", "json", *map(str, jobs)]

    def read_status(self, output: str) -> Mapping[str, JobStatus]:
        return {key: status for key, text in family.parts(output, _JOB) if (status := _read(text))}

    def history_command(self, jobs: Sequence[JobId]) -> list[str]:
        return []  # `qstat -x` remembers, where the site keeps a history at all

    def read_history(self, output: str) -> Mapping[str, JobStatus]:
        return self.read_status(output)

    def cancel_command(self, jobs: Sequence[JobId]) -> list[str]:
        return ["qdel", *map(str, jobs)]

    def interactive_command(
        self, spec: JobSpec, command: Sequence[str], *, terminal: bool
    ) -> list[str]:
        ask = family.interactive("qsub", self.directives(spec))
        return by_hand(ask, shlex.join(command), terminal=terminal)

    def beside_command(self, job: str, command: Sequence[str], *, terminal: bool) -> list[str]:
        return on_node(family.EXEC_HOST, job, shlex.join(command), terminal=terminal)

    def in_job(self) -> InJob:
        return InJob(
            job="${PBS_JOBID%%.*}",
            local_space="${TMPDIR:-}",
            cancel_rest=family.CANCEL_REST,
            spooled=True,
        )


def _select(spec: JobSpec) -> str:
    asked: Resources = spec.resources
    cores = (asked.cores or 1) * asked.tasks
    features = (feature if "=" in feature else f"feature={feature}" for feature in spec.features)
    chunk = [
        str(asked.nodes),
        f"ncpus={cores}",
        f"mpiprocs={asked.tasks}" if asked.tasks > 1 or asked.nodes > 1 else "",
        f"mem={mebibytes(asked.memory)}mb" if asked.memory else "",
        f"ngpus={asked.gpus}" if asked.gpus else "",
        *map(one_word, features),
    ]
    return "select=" + ":".join(filter(None, chunk))


def _names_model(spec: JobSpec) -> bool:
    return any(feature.endswith(f"={spec.resources.gpu_model}") for feature in spec.features)


def _read(text: str) -> JobStatus | None:
    """One job. PBS may print what is not JSON for a variable of the user: that hides no state."""
    try:
        job, _ = json.JSONDecoder(strict=False).raw_decode(text)
    except (ValueError, RecursionError):
        found = _STATE.search(text)
        # How a job ended, or why it is held, is not read from half an answer.
        plain = found is not None and found[1] in _STATES.keys() - {"H"}
        return JobStatus(_STATES[found[1]], found[1]) if found and plain else None
    return _status(job) if isinstance(job.get("job_state"), str) else None


def _status(job: Mapping[str, Any]) -> JobStatus:
    letter, comment = job["job_state"], _text(job.get("comment"))
    if letter in _FINISHED:
        return _ended(job, letter, comment)
    return family.unfinished(letter, comment, _text(job.get("depend")), _STATES)


def _ended(job: Mapping[str, Any], letter: str, comment: str) -> JobStatus:
    code = job.get("Exit_status")
    if not isinstance(code, int):
        began = "run_count" in job or "stime" in job
        state = JobState.LOST if began else JobState.NEVER_RAN
        return JobStatus(state, letter, comment)
    spelled = f"{letter}, Exit_status {code}"
    if code in _OUT_OF_MEMORY:
        comment = comment or "it used more memory than it asked for"
    state = family.ending(code, walltime=_WALLTIME)
    return JobStatus(state, spelled, comment, family.plain_code(code))


def _text(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""
