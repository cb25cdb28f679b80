"""PBS Pro and OpenPBS: qsub, qstat, qdel.

Torque has commands of the same names that differ in nearly every option: see torque.py.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from rabaska.domain.jobs import (
    Capabilities,
    InJob,
    JobId,
    JobSpec,
    JobState,
    JobStatus,
    Resources,
    TrialAnswer,
)
from rabaska.schedulers import accounted_usage, pbs_queues
from rabaska.schedulers import pbs_family as family
from rabaska.schedulers.protocol import SiteQueries
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
    "U": JobState.SUSPENDED,  # somebody is at the computer
}
_FINISHED = ("F", "X")  # X is a finished element of an array
_WALLTIME, _OUT_OF_MEMORY = -29, (-26, -27)  # JOB_EXEC_KILL_… in PBS's job.h
_HOLDERS = {"u": "its user (`qrls` lets it go)", "o": "an operator", "p": "a bad password"}
_SUSPENDED = ("S", "U")
_LAST = "Submit_arguments"  # stands below all that tells how a job ended
_FINISHED_JOB = 35  # what qstat exits with when some of the jobs are over


@dataclass(frozen=True)
class Pbs:
    @property
    def name(self) -> str:
        return "pbs"

    @property
    def capabilities(self) -> Capabilities:
        # Arrays could run one element at a time, but PBS refuses `-r n` for them.
        return Capabilities(
            shares=("cores", "memory"),
            dependency=True,
            mail=True,
            features=True,
            accounts=True,
            asked_by_id=True,
            find=family.JOBS_CALLED,
            partial_answers=(family.UNKNOWN_JOB, _FINISHED_JOB),
            gone="Unknown Job Id|Job has finished|invalid for state of job",
            reach=family.REACH,
            dependency_over="(?i)dependency",
            own_options=family.OWN,
        )

    @property
    def site(self) -> SiteQueries:
        return SiteQueries(
            programs=("qsub", *pbs_queues.PROGRAMS),
            version_commands=pbs_queues.VERSION_COMMANDS,
            version=r"pbs_version = \S+",
            questions=pbs_queues.QUESTIONS,
            is_there=lambda programs, versions: "qsub" in programs and pbs_queues.is_pbs(versions),
            partitions=pbs_queues.of_site,
        )

    def directives(self, spec: JobSpec) -> list[str]:
        # PBS may put several chunks on one node, unless it is told to scatter them.
        asked = spec.resources
        place = ":".join(filter(None, ["scatter"] * (asked.nodes > 1) + ["excl"] * asked.exclusive))
        lines = [f"-l walltime={clock(asked.walltime)}", f"-l {_select(spec)}"]
        return family.directives(spec, [*lines, f"-l place={place}"] if place else lines)

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

    def read_prospect(self, said: str) -> TrialAnswer:
        return family.read_queue(said)

    def status_command(self, jobs: Sequence[JobId]) -> list[str]:
        """What waits or runs. Not as JSON: of several jobs, some versions print the first alone."""
        return ["qstat", "-f", *map(str, jobs)]

    def read_status(self, output: str) -> Mapping[str, JobStatus]:
        told = family.told_in_full(output)
        found = ((JobId(name).key, job, _status(job)) for name, job in told)
        return {
            key: replace(status, carries=family.named(job), starts=_starts(job, status))
            for key, job, status in found
            if status
        }

    def history_command(self, jobs: Sequence[JobId]) -> list[str]:
        """For what is over; a server that keeps no history, as a new one does, says only that."""
        return ["qstat", "-x", "-f", *map(str, jobs)]

    def read_history(self, output: str) -> Mapping[str, JobStatus]:
        return self.read_status(output)

    def cancel_command(self, jobs: Sequence[JobId]) -> list[str]:
        return ["qdel", *map(str, jobs)]

    def carried_command(self, job: JobId) -> list[str]:
        return family.carried_command(job)

    def interactive_command(self, spec: JobSpec, script: str, *, terminal: bool) -> list[str]:
        ask = family.interactive("qsub", self.directives(spec))
        return by_hand(ask, shlex.join(["bash", script]), terminal=terminal)

    def waited_command(self, command: Sequence[str], *, account: str) -> list[str]:
        return []

    def beside_command(self, job: str, command: Sequence[str], *, terminal: bool) -> list[str]:
        return on_node(family.EXEC_HOST, job, shlex.join(command), terminal=terminal)

    def in_job(self) -> InJob:
        return InJob(
            job_id="${PBS_JOBID%%.*}",
            local_space="${TMPDIR:-}",
            cancel_rest=family.CANCEL_REST,
            waiting=family.WAITING,
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


def _status(job: Mapping[str, str]) -> JobStatus | None:
    """None for half an answer."""
    letter, comment = job.get("job_state", ""), job.get("comment", "").strip()
    if letter in _FINISHED:
        return _ended(job, letter, comment)
    if letter == "H":
        return _held(job)
    if letter in _SUSPENDED:
        comment = "its scheduler suspended it, and will let it go on"
    state = _STATES.get(letter, JobState.UNKNOWN)
    again = family.again(state, job.get("run_count", ""))
    return JobStatus(state, letter, comment, again=again) if letter else None


def _starts(job: Mapping[str, str], status: JobStatus) -> str:
    """When it began, or when PBS expects it to: `Tue Feb 14 02:10:01 2023`."""
    told = job.get("estimated.start_time" if status.state is JobState.QUEUED else "stime", "")
    try:
        return datetime.strptime(" ".join(told.split()), "%a %b %d %H:%M:%S %Y").isoformat()
    except ValueError:
        return ""


def _held(job: Mapping[str, str]) -> JobStatus | None:
    """Its comment is not used: it may be of the time before it was held."""
    if "Hold_Types" not in job:
        return None
    holder = next((who for letter, who in _HOLDERS.items() if letter in job["Hold_Types"]), "")
    if not holder and "after" in job.get("depend", ""):
        return JobStatus(JobState.QUEUED, "H", f"waits: {_before(job['depend'])}")
    return JobStatus(JobState.HELD, "H", f"held by {holder or 'PBS itself'}")


def _before(depends: str) -> str:
    """What it waits for; `depend` also names those that wait for it."""
    return ",".join(one for one in depends.split(",") if one.startswith("after"))


def _ended(job: Mapping[str, str], letter: str, comment: str) -> JobStatus | None:
    if not re.fullmatch(r"-?\d{1,9}", job.get("Exit_status", ""), re.ASCII):
        began = "run_count" in job or "stime" in job
        state = JobState.LOST if began else JobState.NEVER_RAN
        return JobStatus(state, letter, comment) if _LAST in job else None
    code = int(job["Exit_status"])
    spelled = f"{letter}, Exit_status {code}"
    if code in _OUT_OF_MEMORY:
        comment = comment or "it used more memory than it asked for"
    used = accounted_usage.by_pbs(job)
    exit_code = family.plain_code(code)
    return JobStatus(_ending(code, comment), spelled, comment, exit_code, used=used)


def _ending(code: int, comment: str) -> JobState:
    """A job whose shell was killed has the exit code of one that was deleted, but not its words."""
    state = family.ending(code, walltime=_WALLTIME)
    by_somebody = "and terminated" in comment
    return JobState.FAILED if state is JobState.CANCELLED and not by_somebody else state
