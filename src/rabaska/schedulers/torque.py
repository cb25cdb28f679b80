"""Torque: qsub, qstat, qdel; and Slurm's commands of the same names (slurm-wlm-torque)."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape

from rabaska.domain.jobs import Capabilities, InJob, JobId, JobSpec, JobState, JobStatus, Prospect
from rabaska.schedulers import pbs_family as family
from rabaska.schedulers.spelling import (
    clock,
    mebibytes,
    on_node,
    once_on_the_first,
    one_word,
    refusal,
    said,
)

_WALLTIME = -11

_ELEMENT = re.compile(r"<Job>(.*?)</Job>", re.DOTALL)
_FIELD = re.compile(r"<(\w+)>([^<]*)</\1>")
_BLOCK = re.compile(r"^Job Id:[ \t]*(\S+)[ \t\r]*\n(.*?)\n\s*?\n", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"^\s+([\w.]+) = (.*)$", re.MULTILINE)

# Slurm's qstat knows no -x, and says so before it looks for any job.
_EITHER = (
    'qstat -x "$@"; code=$?; [ $code = 0 ] || [ $code = 153 ] || exec qstat -f "$@"; exit $code'
)


@dataclass(frozen=True)
class Torque:
    names_cores: bool = True  # `ppn=`

    @property
    def name(self) -> str:
        return "torque"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            dependency=True, mail=True, features=True, accounts=True, asked_by_id=True,
            partial_answers=(family.UNKNOWN_JOB,),
            # Slurm's qdel says nothing of a job that it does not know.
            gone="Unknown Job Id|nonexistent job id|invalid for state of job|^exit code 1$",
        )  # fmt: skip

    def directives(self, spec: JobSpec) -> list[str]:
        asked = spec.resources
        properties = filter(None, [asked.gpu_model, *spec.features])
        nodes = nodes_words(spec, names_cores=self.names_cores)
        nodes = ":".join([nodes, *map(one_word, properties)])
        lines = [f"-l walltime={clock(asked.walltime)}", f"-l {nodes}"]
        if asked.memory:
            lines.append(f"-l mem={mebibytes(asked.memory)}mb")
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

    def read_prospect(self, said: str) -> Prospect:
        return family.read_queue(said)

    def status_command(self, jobs: Sequence[JobId]) -> list[str]:
        return ["sh", "-c", _EITHER, "qstat", *map(str, jobs)]

    def read_status(self, output: str) -> Mapping[str, JobStatus]:
        return {JobId(name).key: _status(job) for name, job in _jobs(output) if "job_state" in job}

    def history_command(self, jobs: Sequence[JobId]) -> list[str]:
        return []  # `qstat` shows what ended for some minutes; after that, nobody remembers

    def read_history(self, output: str) -> Mapping[str, JobStatus]:
        return self.read_status(output)

    def cancel_command(self, jobs: Sequence[JobId]) -> list[str]:
        return ["qdel", *map(str, jobs)]

    def interactive_command(
        self, spec: JobSpec, command: Sequence[str], *, terminal: bool
    ) -> list[str]:
        if not terminal:
            return refusal("`qsub -I` needs a terminal; use `rabaska run` for a batch job")
        return [*family.interactive("qsub", self.directives(spec)), "-x", shlex.join(command)]

    def beside_command(self, job: str, command: Sequence[str], *, terminal: bool) -> list[str]:
        return on_node(family.EXEC_HOST, job, shlex.join(command), terminal=terminal)

    def in_job(self) -> InJob:
        return InJob(
            # Slurm's own variable stands for jobs of its qsub, which sets none of Torque's.
            job="${SLURM_JOB_ID:-${PBS_JOBID%%.*}}",
            # An end that is now is no end: then the agent counts from its own beginning.
            # SECONDS is how long the script has run: it may have built an environment before.
            ends="$(($(date +%s) - SECONDS + ${PBS_WALLTIME:-0}))",
            local_space="${TMPDIR:-}",
            cancel_rest=family.CANCEL_REST,
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


def _jobs(output: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Each job that was told whole, with what was told of it; in XML, or as `qstat -f` writes."""
    for element in _ELEMENT.findall(output):
        # What a field holds in its turn, such as Resource_List, is passed over.
        fields = {name: unescape(value).strip() for name, value in _FIELD.findall(element)}
        if re.match(r"\d", fields.get("Job_Id", ""), re.ASCII):
            yield fields["Job_Id"], fields
    for name, text in _BLOCK.findall(output):
        if re.match(r"\d", name, re.ASCII):
            yield name, {key: value.strip() for key, value in _LINE.findall(text)}


def _status(job: Mapping[str, str]) -> JobStatus:
    letter, comment = job["job_state"], " ".join(job.get("comment", "").split())
    if letter == "C":
        return _ended(job, comment)
    return family.unfinished(letter, comment, job.get("depend", ""))


def _ended(job: Mapping[str, str], comment: str) -> JobStatus:
    if not re.fullmatch(r"-?\d{1,9}", job.get("exit_status", ""), re.ASCII):
        return JobStatus(JobState.FAILED, "C", comment or "the queue does not say how it ended")
    code = int(job["exit_status"])
    spelled = f"C, exit_status {code}"
    if code in family.BY_QDEL and "start_count" not in job:
        by_dependency = "dependency" in comment
        state = JobState.NEVER_RAN if by_dependency else JobState.CANCELLED
        return JobStatus(state, spelled, comment or "before it began")
    state = family.ending(code, walltime=_WALLTIME)
    return JobStatus(state, spelled, comment, family.plain_code(code))
