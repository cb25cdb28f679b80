"""Torque: qsub, qstat, qdel; and Slurm's commands of the same names (slurm-wlm-torque)."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import unescape

from rabaska.domain.jobs import (
    Capabilities,
    InJob,
    JobId,
    JobSpec,
    JobState,
    JobStatus,
    TrialAnswer,
)
from rabaska.schedulers import pbs_family as family
from rabaska.schedulers import pbs_queues
from rabaska.schedulers.protocol import SiteQueries
from rabaska.schedulers.spelling import (
    clock,
    mebibytes,
    on_node,
    once_on_the_first,
    one_word,
    plain_path,
    refusal,
    said,
)

_WALLTIME = -11

_ELEMENT = re.compile(r"<Job>(.*?)</Job>", re.DOTALL)
_FIELD = re.compile(r"<(\w+)>([^<]*)</\1>")
_BLOCK = re.compile(r"^Job Id:[ \t]*(\S+)[ \t\r]*\n(.*?)\n\s*?\n", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"^\s+([\w.]+) = (.*)$", re.MULTILINE)

# Slurm's qstat knows no -x, and says so before it looks for any job, with exit code 2.
_EITHER = 'qstat -x "$@"; code=$?; [ $code != 2 ] || exec qstat -f "$@"; exit $code'
_BY_QDEL, _KILLED = 271, 265  # 256 and the signal; SIGKILL is not what qdel sends
_HOLDERS = {"u": "its user", "o": "an operator", "s": "the system"}


@dataclass(frozen=True)
class Torque:
    names_cores: bool = True  # `ppn=`

    @property
    def name(self) -> str:
        return "torque"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            dependency=True,
            mail=True,
            features=True,
            accounts=True,
            asked_by_id=True,
            find=family.JOBS_CALLED,
            partial_answers=(family.UNKNOWN_JOB,),
            reach=family.REACH,
            dependency_over="(?i)dependency",
            own_options=family.OWN,
            node_lost="could not connect to MOM",
            # Slurm's qdel says nothing of a job that it does not know.
            gone="Unknown Job Id|nonexistent job id|invalid for state of job|^exit code 1$",
        )

    @property
    def site(self) -> SiteQueries:
        return SiteQueries(
            programs=("qsub", *pbs_queues.PROGRAMS),
            version_commands=pbs_queues.VERSION_COMMANDS,
            version=pbs_queues.VERSION,
            questions=pbs_queues.QUESTIONS,
            is_there=lambda programs, versions: (
                "qsub" in programs and not pbs_queues.is_pbs(versions)
            ),
            partitions=pbs_queues.of_site,
        )

    def directives(self, spec: JobSpec) -> list[str]:
        asked = spec.resources
        properties = filter(None, [asked.gpu_model, *spec.features])
        nodes = nodes_words(spec, names_cores=self.names_cores)
        nodes = ":".join([nodes, *map(one_word, properties)])
        lines = [f"-l walltime={clock(asked.walltime)}", f"-l {nodes}"]
        if asked.memory:
            lines.append(f"-l {memory_words(spec, names_cores=self.names_cores)}")
        return family.directives(spec, lines)

    def unmet(self, spec: JobSpec) -> list[str]:
        return said(
            {
                "Torque shares nodes as its site decides; whole ones are asked for by "
                "all of their cores": spec.resources.exclusive,
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
        return ["sh", "-c", _EITHER, "qstat", *map(str, jobs)]

    def read_status(self, output: str) -> Mapping[str, JobStatus]:
        told = [(JobId(name).key, job) for name, job in _jobs(output) if "job_state" in job]
        return {key: replace(_status(job), carries=family.named(job)) for key, job in told}

    def history_command(self, jobs: Sequence[JobId]) -> list[str]:
        return []  # `qstat` shows what ended for some minutes; after that, nobody remembers

    def read_history(self, output: str) -> Mapping[str, JobStatus]:
        return self.read_status(output)

    def cancel_command(self, jobs: Sequence[JobId]) -> list[str]:
        return ["qdel", *map(str, jobs)]

    def carried_command(self, job: JobId) -> list[str]:
        return family.carried_command(job)

    def interactive_command(self, spec: JobSpec, script: str, *, terminal: bool) -> list[str]:
        if not terminal:
            return refusal("`qsub -I` needs a terminal; use `rabaska run` for a batch job")
        if not plain_path(script):
            return refusal(f"`qsub -I -x` takes no file with such a name: {script}")
        return [*family.interactive("qsub", self.directives(spec)), "-x", script]

    def waited_command(self, command: Sequence[str], *, account: str) -> list[str]:
        return []

    def beside_command(self, job: str, command: Sequence[str], *, terminal: bool) -> list[str]:
        return on_node(family.EXEC_HOST, job, shlex.join(command), terminal=terminal)

    def in_job(self) -> InJob:
        return InJob(
            # Slurm's own variable stands for jobs of its qsub, which sets none of Torque's.
            job_id="${SLURM_JOB_ID:-${PBS_JOBID%%.*}}",
            # An end that is now is no end: then the agent counts from its own beginning.
            # SECONDS is how long the script has run: it may have built an environment before.
            ends="$(($(date +%s) - SECONDS + ${PBS_WALLTIME:-0}))",
            local_space="${TMPDIR:-}",
            cancel_rest=family.CANCEL_REST,
            waiting=family.WAITING,
            spooled=True,
        )


def nodes_words(spec: JobSpec, *, names_cores: bool) -> str:
    """`nodes=1:ppn=4:gpus=2`; no ppn where none was asked for."""
    asked = spec.resources
    cores = (asked.cores or 1) * asked.tasks
    words = [f"nodes={asked.nodes}"]
    words += [f"ppn={cores}"] if names_cores and (asked.cores or asked.tasks > 1) else []
    words += [f"gpus={asked.gpus}"] if asked.gpus else []
    return ":".join(words)


def memory_words(spec: JobSpec, *, names_cores: bool) -> str:
    """`mem=` is of a job that has one node; of several, each processor has its part.

    With `mem=` on two nodes a pbs_mom of today's Torque counts for ever and answers nobody.
    """
    asked = spec.resources
    if asked.nodes == 1:
        return f"mem={mebibytes(asked.memory)}mb"
    processors = (asked.cores or 1) * asked.tasks if names_cores else 1
    return f"pmem={mebibytes(-(-(asked.memory or 0) // processors))}mb"


def _jobs(output: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Each job that was told whole, with what was told of it; in XML, or as `qstat -f` writes."""
    for element in _ELEMENT.findall(output):
        # What a field holds in its turn, such as Resource_List, is passed over.
        fields = {name: unescape(value).strip() for name, value in _FIELD.findall(element)}
        if re.match(r"\d", fields.get("Job_Id", ""), re.ASCII):
            yield fields["Job_Id"], fields
    for name, text in _BLOCK.findall(output):
        if re.match(r"\d", name, re.ASCII):
            told = {key: value.strip() for key, value in _LINE.findall(text)}
            # A line may be lost in text: that it does not say when a job began proves nothing.
            yield name, {"start_count": "", **told}


def _status(job: Mapping[str, str]) -> JobStatus:
    letter, comment = job["job_state"], " ".join(job.get("comment", "").split())
    if letter == "C":
        return _ended(job, comment)
    if letter == "H":
        return _held(job)
    status = family.unfinished(letter, comment, "")
    return replace(status, again=family.again(status.state, job.get("start_count", "")))


def _held(job: Mapping[str, str]) -> JobStatus:
    """Waiting for another job is a system's hold; `Hold_Types = su` is that and its user's."""
    waits = re.search(r"\bafter\w*:\S+", job.get("depend", ""))
    holders = [who for letter, who in _HOLDERS.items() if letter in job.get("Hold_Types", "")]
    if waits and holders in ([], [_HOLDERS["s"]]):
        return JobStatus(JobState.QUEUED, "H", f"waits: {waits[0].partition(',')[0]}")
    # The system holds it too, for the job before it.
    named = [who for who in holders if who != _HOLDERS["s"] or not waits]
    return JobStatus(JobState.HELD, "H", f"held by {' and '.join(named)}" if named else "held")


def _ended(job: Mapping[str, str], comment: str) -> JobStatus:
    began = bool(job.keys() & {"start_count", "start_time", "exec_host"})
    # What is said of a job that ended is how it began: "Job started on …".
    comment = "" if comment.startswith("Job started") else comment
    if not re.fullmatch(r"-?\d{1,9}", job.get("exit_status", ""), re.ASCII):
        return _without_code(began, comment)
    code = int(job["exit_status"])
    spelled = f"C, exit_status {code}"
    if code == _BY_QDEL and not began:
        state = JobState.NEVER_RAN if "dependency" in comment else JobState.CANCELLED
        return JobStatus(state, spelled, comment or "before it began")
    state = JobState.FAILED if code == _KILLED else family.ending(code, walltime=_WALLTIME)
    return JobStatus(state, spelled, comment, family.plain_code(code))


def _without_code(began: bool, comment: str) -> JobStatus:
    """A job that was deleted while it waited has neither a beginning nor an exit code."""
    if began:
        return JobStatus(JobState.FAILED, "C", comment or "the queue does not say how it ended")
    state = JobState.NEVER_RAN if "dependency" in comment else JobState.CANCELLED
    return JobStatus(state, "C", comment or "before it began")
