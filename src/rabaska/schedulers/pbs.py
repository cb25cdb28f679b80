"""PBS Pro and OpenPBS: qsub, qstat, qdel.

Torque has commands of the same names that differ in nearly every option: see torque.py.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rabaska.domain.jobs import (
    Capabilities,
    InJob,
    JobId,
    JobSpec,
    JobState,
    JobStatus,
    Resources,
)
from rabaska.schedulers.spelling import (
    by_hand,
    clock,
    mebibytes,
    on_node,
    once_on_the_first,
    one_word,
    pbs_lines,
    said,
)

_STATES = {
    "Q": JobState.QUEUED,
    "W": JobState.QUEUED,
    "T": JobState.QUEUED,  # on its way to another server
    "H": JobState.HELD,
    "B": JobState.RUNNING,  # an array that has begun
    "R": JobState.RUNNING,
    "S": JobState.RUNNING,
    "U": JobState.RUNNING,
    "E": JobState.STOPPING,
}
_FINISHED = ("F", "X")  # X is a finished element of an array
_WALLTIME, _OUT_OF_MEMORY = -29, (-26, -27)  # JOB_EXEC_KILL_… in PBS's job.h
_BY_QDEL = (271, 265)  # 256 and the signal; 265 is that of `qdel -W force`
_UNKNOWN_JOB, _FINISHED_JOB = 153, 35  # what qstat exits with when some of the ids are no more

_ID = r"\d+(?:\[\d*\])?"
_SUBMITTED = re.compile(rf"^({_ID}(?:\.[\w.-]+)?)[ \t\r]*$", re.MULTILINE | re.ASCII)
_JOB = re.compile(rf'"({_ID})(?:\.[^"\s]*)?"\s*:\s*(?=\{{)', re.ASCII)
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
            partial_answers=(_UNKNOWN_JOB, _FINISHED_JOB),
        )  # fmt: skip

    def directives(self, spec: JobSpec) -> list[str]:
        asked = [f"-l walltime={clock(spec.resources.walltime)}", f"-l {_select(spec)}"]
        if spec.resources.exclusive:
            asked.append("-l place=excl")
        return pbs_lines(spec, asked)

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
        waiting = ["-W", f"depend=afterany:{after}"] if after else []
        return ["qsub", *waiting, script]

    def read_job_id(self, output: str) -> JobId | None:
        found = _SUBMITTED.findall(output)
        return JobId(found[-1]) if found else None

    def status_command(self, jobs: Sequence[JobId]) -> list[str]:
        return ["qstat", "-t", "-x", "-f", "-F", "json", *map(str, jobs)]

    def read_status(self, output: str) -> Mapping[str, JobStatus]:
        return {key: status for key, text in _jobs(output) if (status := _read(text))}

    def history_command(self, jobs: Sequence[JobId]) -> list[str]:
        return []  # `qstat -x` remembers, where the site keeps a history at all

    def read_history(self, output: str) -> Mapping[str, JobStatus]:
        return self.read_status(output)

    def cancel_command(self, jobs: Sequence[JobId]) -> list[str]:
        return ["qdel", *map(str, jobs)]

    def interactive_command(
        self, spec: JobSpec, command: Sequence[str], *, terminal: bool
    ) -> list[str]:
        return by_hand(interactive(self.directives(spec)), shlex.join(command), terminal=terminal)

    def beside_command(self, job: str, command: Sequence[str], *, terminal: bool) -> list[str]:
        return on_node(EXEC_HOST, job, shlex.join(command), terminal=terminal)

    def in_job(self) -> InJob:
        return InJob(
            job="${PBS_JOBID%%.*}",
            local_space="${TMPDIR:-}",
            cancel_rest=CANCEL_REST,
            spooled=True,
        )


# The links that wait have our name, which ends in letters of the run's own.
CANCEL_REST = "sh -c 'qselect -N $PBS_JOBNAME -s HQW | xargs -r qdel'"
EXEC_HOST = r'qstat -f "$0" | sed -n "s/^ *exec_host = \([^/:+]*\).*/\1/p" | head -n 1'
_FOR_BATCH = ("-N", "-m", "-r", "-S", "-j", "-o")


def interactive(directives: Sequence[str]) -> list[str]:
    """`qsub -I` and those options of a script that matter to somebody who waits for a shell."""
    words = [shlex.split(line.removeprefix("#PBS ")) for line in directives]
    return ["qsub", "-I", *(word for line in words if line[0] not in _FOR_BATCH for word in line)]


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


def _jobs(output: str) -> Iterator[tuple[str, str]]:
    """Each job's key, and the text from its brace to the next job's name."""
    starts = list(_JOB.finditer(output))
    ends = [start.start() for start in starts[1:]] + [len(output)]
    for start, end in zip(starts, ends, strict=False):
        yield start[1], output[start.end() : end]


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
    if letter == "H" and "depend" in job:
        return JobStatus(JobState.QUEUED, letter, comment or f"waits: {_text(job['depend'])}")
    return JobStatus(_STATES.get(letter, JobState.UNKNOWN), letter, comment)


def _ended(job: Mapping[str, Any], letter: str, comment: str) -> JobStatus:
    code = job.get("Exit_status")
    if not isinstance(code, int):
        began = "run_count" in job or "stime" in job
        state = JobState.LOST if began else JobState.NEVER_RAN
        return JobStatus(state, letter, comment)
    spelled = f"{letter}, Exit_status {code}"
    if code in _OUT_OF_MEMORY:
        comment = comment or "it used more memory than it asked for"
    return JobStatus(_how(code), spelled, comment, plain_code(code))


def _how(code: int) -> JobState:
    if code == _WALLTIME:
        return JobState.TIMEOUT
    if code in _BY_QDEL:
        return JobState.CANCELLED
    return JobState.DONE if code == 0 else JobState.FAILED


def plain_code(code: int) -> int | None:
    """As a shell would tell it: PBS and Torque add 256 to the signal that ended a job."""
    if code < 0:
        return None
    return 128 + code - 256 if code > 256 else code


def _text(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""
