"""Moab over Torque: msub, showq, checkjob, canceljob."""

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
    by_hand,
    carried,
    clock,
    jobs_called,
    on_node,
    once_on_the_first,
    one_word,
    said,
)
from rabaska.schedulers.torque import memory_words, nodes_words

_STATES = {
    "Idle": JobState.QUEUED,
    "Migrated": JobState.QUEUED,
    "Staged": JobState.QUEUED,
    "Hold": JobState.HELD,
    "UserHold": JobState.HELD,
    "SystemHold": JobState.HELD,
    "BatchHold": JobState.HELD,
    "Deferred": JobState.HELD,
    "NotQueued": JobState.HELD,
    "Starting": JobState.RUNNING,
    "Running": JobState.RUNNING,
    "Suspended": JobState.SUSPENDED,
    "Canceling": JobState.STOPPING,
    "Vacated": JobState.PREEMPTED,
    "Removed": JobState.CANCELLED,
}
_COMPLETED = "Completed"
_CANCELLED = ("CNCLD", "271", "265", "-271")

_ID = r"(?:[A-Za-z][\w-]*\.)?\d+(?:\[\d+\])?"
_SUBMITTED = re.compile(rf"^[ \t]*({_ID}(?:\.[A-Za-z][\w.-]*)?)[ \t\r]*$", re.MULTILINE | re.ASCII)
_IN_XML = re.compile(r"<job((?:\s+[\w.:-]+=\"[^\"]*\")+)\s*/?>")
_ATTRIBUTE = re.compile(r"([\w.:-]+)=\"([^\"]*)\"")
_CHECKED = re.compile(rf"^job ({_ID})[ \t\r]*$", re.MULTILINE | re.ASCII)
# `Estimated Rsv based start in      3:31:22 on Fri Aug 15 12:40:10`
_START = re.compile(r"based start in\s+([\d:]+)\s+on\s+(.*?)\s*$", re.MULTILINE | re.ASCII)
_FIELD = re.compile(
    r"^[ \t]*(State|Completion Code|BLOCK MSG|NOTE):[ \t]*(.*?)[ \t\r]*\n", re.MULTILINE
)

_CALLED = (
    'told=$(showq --xml -w "user=${USER:-$(id -un)}") || exit; printf "%s" "$told" | tr "<" "\\n"'
    ' | sed -n "/ JobName=\\"$0\\"/s/.* JobID=\\"\\([^\\"]*\\)\\".*/\\1/p"'
)
# What waits or runs; what is over, which an old Moab may refuse; when the next ones might start.
_SHOWQ = """\
who=${USER:-$(id -un)}
told=$(showq --xml -w "user=$who") || exit
printf "%s\\n" "$told"
showq -c --xml -w "user=$who" 2>/dev/null
id='/ State="Idle"/s/.* JobID="\\([^"]*\\)".*/\\1/p'
for job in $(printf "%s" "$told" | tr "<" "\\n" | sed -n "$id" | head -n 3); do
    echo "asked for $job at $(date +%s)"
    timeout 5 showstart "$job" 2>/dev/null
done
true
"""
_ASKED = re.compile(rf"^asked for ({_ID} at \d+)[ \t\r]*$", re.MULTILINE | re.ASCII)
_CHECKJOB = 'for job; do checkjob "$job" 2>/dev/null; echo; done; true'


@dataclass(frozen=True)
class Moab:
    names_cores: bool = True  # false on Hélios, which gave cores with each GPU and refused `ppn=`

    @property
    def name(self) -> str:
        return "moab"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            dependency=True,
            mail=True,
            features=True,
            accounts=True,
            gone="invalid job specified",
            find=jobs_called(_CALLED),
            answer="</Data>|<Data/>",
            reach=family.REACH,
            dependency_over="(?i)dependency",
            own_options=family.OWN,
        )

    @property
    def site(self) -> SiteQueries:
        return SiteQueries(
            programs=("msub", *pbs_queues.PROGRAMS),
            version_commands=pbs_queues.VERSION_COMMANDS,
            version=pbs_queues.VERSION,
            questions=pbs_queues.QUESTIONS,
            is_there=lambda programs, versions: "msub" in programs,
            partitions=pbs_queues.of_site,
        )

    def directives(self, spec: JobSpec) -> list[str]:
        asked = spec.resources
        features = ":".join(filter(None, map(one_word, [asked.gpu_model, *spec.features])))
        lines = [
            f"-l walltime={clock(asked.walltime)}",
            f"-l {nodes_words(spec, names_cores=self.names_cores)}",
            f"-l feature={features}" if features else "",
            f"-l {memory_words(spec, names_cores=self.names_cores)}" if asked.memory else "",
            "-l naccesspolicy=singlejob" if asked.exclusive else "",
        ]
        return family.directives(spec, lines)

    def unmet(self, spec: JobSpec) -> list[str]:
        return said(once_on_the_first(spec))

    def submit_command(
        self, script: str, spec: JobSpec, *, after: JobId | None = None
    ) -> list[str]:
        return family.submission("msub", script, after)

    def read_job_id(self, output: str) -> JobId | None:
        found = _SUBMITTED.findall(output)
        return JobId(found[-1]) if found else None

    def prospect_command(self, spec: JobSpec) -> list[str]:
        asked = spec.resources
        processors = (asked.cores or 1) * asked.tasks * asked.nodes
        return ["showstart", f"{processors}@{clock(asked.walltime)}"]

    def read_prospect(self, said: str) -> TrialAnswer:
        found = _START.search(said)
        return TrialAnswer(start=f"in {found[1]}, on {found[2]}") if found else TrialAnswer()

    def status_command(self, jobs: Sequence[JobId]) -> list[str]:
        return ["sh", "-c", _SHOWQ, *map(str, jobs)]

    def read_status(self, output: str) -> Mapping[str, JobStatus]:
        found: dict[str, JobStatus] = {}
        for words in _IN_XML.findall(output):
            job = {name: unescape(value) for name, value in _ATTRIBUTE.findall(words)}
            if job.get("JobID") and job.get("State"):
                key = JobId(job["JobID"].rstrip("*+-_")).key
                status = _status(job["State"], job.get("CompletionCode", ""), _why(job))
                found[key] = replace(status, carries=tuple(filter(None, [job.get("JobName")])))
        for key, starts in _expected(output):
            if key in found:
                found[key] = replace(found[key], starts=starts)
        return found

    def history_command(self, jobs: Sequence[JobId]) -> list[str]:
        return ["sh", "-c", _CHECKJOB, "checkjob", *map(str, jobs)]

    def read_history(self, output: str) -> Mapping[str, JobStatus]:
        checked = family.parts(output, _CHECKED)
        return {JobId(job).key: status for job, text in checked if (status := _read(text))}

    def cancel_command(self, jobs: Sequence[JobId]) -> list[str]:
        return ["canceljob", *map(str, jobs)]

    def carried_command(self, job: JobId) -> list[str]:
        return carried('checkjob "$0"', r"s/^AName:[[:space:]]*//p", str(job))

    def interactive_command(self, spec: JobSpec, script: str, *, terminal: bool) -> list[str]:
        ask = family.interactive("msub", self.directives(spec))
        return by_hand(ask, shlex.join(["bash", script]), terminal=terminal)

    def waited_command(self, command: Sequence[str], *, account: str) -> list[str]:
        return []

    def beside_command(self, job: str, command: Sequence[str], *, terminal: bool) -> list[str]:
        find = r'checkjob "$0" | sed -n "s/^\[\([^:]*\):.*/\1/p" | head -n 1'
        return on_node(find, job, shlex.join(command), terminal=terminal)

    def in_job(self) -> InJob:
        return InJob(
            job_id="${MOAB_JOBID:-${PBS_JOBID%%.*}}",
            ends="$(($(date +%s) - SECONDS + ${PBS_WALLTIME:-0}))",
            local_space="${TMPDIR:-}",
            spooled=True,
        )


def _expected(output: str) -> Iterator[tuple[str, str]]:
    """When jobs that wait might start. The date is told without its year, so not used."""
    for asked, text in family.parts(output, _ASKED):
        job, _, now = asked.partition(" at ")
        guess = _START.search(text)
        if guess and (wait := family.seconds(guess[1])):
            yield JobId(job).key, f"@{int(now) + wait}"


def _why(job: Mapping[str, str]) -> str:
    """Why it waits, as far as showq tells."""
    return " ".join((job.get("BlockReason") or job.get("HoldReason") or "").split())


def _status(state: str, code: str, reason: str = "") -> JobStatus:
    if state != _COMPLETED:
        return JobStatus(_STATES.get(state, JobState.UNKNOWN), state, reason)
    spelled = f"{state}, code {code}" if code else state
    number = int(code) if re.fullmatch(r"-?\d{1,9}", code, re.ASCII) else None
    exit_code = None if number is None else family.plain_code(number)
    return JobStatus(_how(code, number), spelled, reason, exit_code)


def _how(code: str, number: int | None) -> JobState:
    """Without a code nothing is said of how it ended, and silence is no success."""
    if code.startswith("CNCLD") or code in _CANCELLED:
        return JobState.CANCELLED
    if number == -11:  # Torque's word for the time limit
        return JobState.TIMEOUT
    return JobState.DONE if number == 0 else JobState.FAILED


def _read(text: str) -> JobStatus | None:
    told = dict(reversed(_FIELD.findall(text)))
    if not told.get("State"):
        return None
    if told["State"] == _COMPLETED and "Completion Code" not in told:
        return None  # half an answer
    reason = told.get("BLOCK MSG") or told.get("NOTE") or ""
    return _status(told["State"], told.get("Completion Code", "").partition(" ")[0], reason)
