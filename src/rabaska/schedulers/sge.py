"""Grid Engine: qsub, qstat, qacct, qdel."""

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
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
from rabaska.schedulers import accounted_usage, sge_queues
from rabaska.schedulers.protocol import SiteQueries
from rabaska.schedulers.spelling import (
    carried,
    clock,
    job_name,
    jobs_called,
    on_node,
    once_on_the_first,
    one_line,
    one_word,
    plain_path,
    said,
)

_TIME_LIMIT, _AFTER_JOB = 37, 100  # `failed` in qacct; 100 is a job that was killed
_BEFORE_JOB = range(1, 34)  # what goes wrong before the script's first line (accounting(5))
_MOST_ELEMENTS = 10_000

_TERSE = re.compile(r"^(\d+)(?:\.\d+-\d+:\d+)?[ \t\r]*$", re.MULTILINE | re.ASCII)
_WORDY = re.compile(r"Your job(?:-array)? (\d+)[. ]", re.ASCII)
_JOB = re.compile(r"<job_list[^>]*>(.*?)</job_list>", re.DOTALL)
_XML_FIELD = re.compile(r"<(\w+)(?:\s[^>]*)?>([^<]*)</\1>")
_RANGE = re.compile(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?", re.ASCII)
_ACCOUNT = re.compile(r"^={20,}[ \t\r]*\n(.*?)(?=^={20,}|\Z)", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"^(\w+)[ \t]+(.*?)[ \t\r]*$", re.MULTILINE)

_CAN_RUN = re.compile(r"verification: found (suitable|possible)")

_CALLED = (
    f"told=$({sge_queues.QSTAT}) || exit; "
    """printf '%s\n' "$told" | awk -F '[<>]' -v name="$0" """
    """'$2 == "JB_job_number" {job = $3} $2 == "JB_name" && $3 == name {print job}'"""
)
# The job's shell reads it between double quotes. A qmaster that is down is no empty queue.
_WAITING = (
    r"sh -c 'told=\$(qstat -xml -s p) || exit; echo \"\$told\" | sed -n /JB_name.$JOB_NAME./p'"
)
_QACCT = 'for job; do qacct -j "$job" 2>/dev/null; done; true'
_REACH = 'cat "$PE_HOSTFILE"; qrsh -inherit -nostdin {host}'
_ALONE = '[ "${SGE_TASK_ID:-undefined}" = undefined ]'


@dataclass(frozen=True)
class Sge:
    @property
    def name(self) -> str:
        return "sge"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            array=True,
            dependency=True,
            mail=True,
            features=True,
            accounts=True,
            gone=r"denied: job \"\S+\" does not exist|jobs do not exist",
            find=jobs_called(_CALLED),
            answer="</job_info>",
            reach=_REACH,
            dependency_over="(?i)dependency",
            several_by="-pe",
            own_options=("-N", "-t", "-o", "-sync"),
            whole_words=True,
        )

    @property
    def site(self) -> SiteQueries:
        return SiteQueries(
            programs=("qsub", "qconf"),
            version_commands=("qstat --version", 'echo "SGE_ROOT=${SGE_ROOT:-}"'),
            version=r"^(?:SGE|UGE|OGS/GE) \S+",
            questions=sge_queues.QUESTIONS,
            is_there=_is_there,
            partitions=lambda answer: sge_queues.partitions(
                answer("grid_queues"), answer("grid_hosts")
            ),
        )

    def directives(self, spec: JobSpec) -> list[str]:
        asked, folder = spec.resources, plain_path(spec.folder)
        account, queue, mail = one_word(spec.account), one_word(spec.queue), one_word(spec.mail)
        cores = (asked.cores or 1) * asked.tasks * asked.nodes
        options = [
            f"-N {job_name(spec.name)}",
            f"-A {account}" if account else "",
            f"-l h_rt={clock(asked.walltime)}",
            f"-l gpu={asked.gpus}" if asked.gpus else "",
            *(f"-l {one_word(feature)}" for feature in spec.features),
            f"-pe smp {cores}" if cores > 1 and not _names_environment(spec) else "",
            f"-q {queue}" if queue else "",
            f"-t 1-{spec.jobs} -tc 1" if spec.jobs > 1 else "",
            f"-m bea -M {mail}" if mail else "-m n",
            "-r y" if spec.requeue else "-r n",
            "-S /bin/bash",
            "-j y",
            f"-o {folder}/{_output(spec)}" if folder else "-o /dev/null",
            *map(one_line, spec.native),
        ]
        return [f"#$ {option}" for option in options if option]

    def unmet(self, spec: JobSpec) -> list[str]:
        asked, model = spec.resources, one_word(spec.resources.gpu_model)
        return said(
            {
                f"Grid Engine has no common word for a {model}: give the site's own under "
                f"`features`, such as `gpu_type={model}`": (
                    bool(model) and not any(model in feature for feature in spec.features)
                ),
                "Grid Engine has no common word for memory: give the site's own under `native`, "
                "such as `-l mem_free=8G`": bool(asked.memory),
                "Grid Engine has no common word for whole nodes: give the site's own under "
                "`native`, such as `-l exclusive`": asked.exclusive,
                "the folder for the job's output has a name that #$ lines cannot hold": (
                    not plain_path(spec.folder)
                ),
                **once_on_the_first(spec),
            }
        )

    def submit_command(
        self, script: str, spec: JobSpec, *, after: JobId | None = None
    ) -> list[str]:
        waiting = ["-hold_jid", str(after)] if after else []
        return ["qsub", "-terse", *waiting, script]

    def read_job_id(self, output: str) -> JobId | None:
        found = _TERSE.findall(output) or _WORDY.findall(output)
        return JobId(found[-1]) if found else None

    def prospect_command(self, spec: JobSpec) -> list[str]:
        return ["qsub", "-w", "v"]

    def read_prospect(self, said: str) -> TrialAnswer:
        """`-w v` finds out whether an empty cluster could run it; it tells no time."""
        if _CAN_RUN.search(said):
            return TrialAnswer()
        refusal = re.search(r"verification: (.+)|Unable to run job: (.+)", said)
        return TrialAnswer(refusal=(refusal[1] or refusal[2]).strip() if refusal else "")

    def status_command(self, jobs: Sequence[JobId]) -> list[str]:
        """All jobs of the user: of those asked for alone, qstat would not tell the state."""
        return ["sh", "-c", sge_queues.STATUS, "qstat", *map(str, jobs)]

    def read_status(self, output: str) -> Mapping[str, JobStatus]:
        found: dict[str, JobStatus] = {}
        line = sge_queues.line(output)
        for text in _JOB.findall(output):
            job = {name: unescape(value).strip() for name, value in _XML_FIELD.findall(text)}
            number, state = job.get("JB_job_number", ""), job.get("state", "")
            if number.isdecimal() and state:
                name = tuple(filter(None, [job.get("JB_name")]))
                status = JobStatus(
                    _state(state),
                    state,
                    _reason(state),
                    carries=name,
                    starts=job.get("JAT_start_time", ""),
                    place=line.get(number) if state == "qw" else None,
                    again=int("R" in state),  # it does not say how often
                )
                found.update((key, status) for key in _keys(number, job.get("tasks", "")))
        return found

    def history_command(self, jobs: Sequence[JobId]) -> list[str]:
        """What ended is gone from qstat at once."""
        return ["sh", "-c", _QACCT, "qacct", *map(str, jobs)]

    def read_history(self, output: str) -> Mapping[str, JobStatus]:
        found: dict[str, JobStatus] = {}
        for text in _ACCOUNT.findall(output):
            job = dict(_LINE.findall(text))
            # The last of these lines is there: the answer was not cut short before it.
            if job.get("jobnumber", "").isdecimal() and {"failed", "ru_wallclock"} <= job.keys():
                for key in _keys(job["jobnumber"], job.get("taskid", "")):
                    ended = _ended(job["failed"], job.get("exit_status", ""))
                    found[key] = replace(ended, used=accounted_usage.by_qacct(job))
        return found

    def cancel_command(self, jobs: Sequence[JobId]) -> list[str]:
        return ["qdel", *map(str, jobs)]

    def carried_command(self, job: JobId) -> list[str]:
        return carried('qstat -j "$0"', r"s/^job_name:[[:space:]]*//p", str(job))

    def interactive_command(self, spec: JobSpec, script: str, *, terminal: bool) -> list[str]:
        lines = [line.removeprefix("#$ ").split() for line in self.directives(spec)]
        wanted = [word for line in lines if line[0] in ("-l", "-pe", "-q", "-A") for word in line]
        return ["qrsh", "-now", "n", *(["-pty", "y"] if terminal else []), *wanted, "bash", script]

    def waited_command(self, command: Sequence[str], *, account: str) -> list[str]:
        return []

    def beside_command(self, job: str, command: Sequence[str], *, terminal: bool) -> list[str]:
        queue = "s/.*<queue_name>[^<]*@\\([^<]*\\)<.*/\\1/p"
        find = f'qstat -xml -s r -g t | grep -A 20 ">${{0%%_*}}<" | sed -n "{queue}" | head -n 1'
        return on_node(find, job, shlex.join(command), terminal=terminal)

    def in_job(self) -> InJob:
        last = '[ "$SGE_TASK_ID" = "$SGE_TASK_LAST" ]'
        rest = 'echo "qdel $JOB_ID -t $((SGE_TASK_ID + 1))-$SGE_TASK_LAST"'
        return InJob(
            job_id=f'$JOB_ID$({_ALONE} || echo "_$SGE_TASK_ID")',
            local_space="${TMPDIR:-}",
            cancel_rest=f"$({_ALONE} || {last} || {rest})",
            waiting=_WAITING,
            extra={"RABASKA_ONE_AT_A_TIME": "yes"},
        )


def _is_there(programs: Collection[str], versions: str) -> bool:
    """Its qsub has the name that PBS gave to its own."""
    return "qconf" in programs or bool(re.search(r"^SGE_ROOT=\S", versions, re.MULTILINE))


def _names_environment(spec: JobSpec) -> bool:
    return any(option.split()[:1] == ["-pe"] for option in spec.native)


def _output(spec: JobSpec) -> str:
    return "scheduler-$JOB_ID.$TASK_ID.out" if spec.jobs > 1 else "scheduler-$JOB_ID.out"


def _keys(number: str, tasks: str) -> Iterator[str]:
    """`3`, or `3_1` for each element of an array: tasks are `1`, `2-9:1`, or several of these."""
    ranges = [found for part in tasks.split(",") if (found := _RANGE.fullmatch(part))]
    if not ranges:
        yield number
    for first, last, step in (found.groups() for found in ranges):
        every = max(1, int(step or 1))
        for element in range(int(first), int(last or first) + 1, every)[:_MOST_ELEMENTS]:
            yield f"{number}_{element}"


def _state(letters: str) -> JobState:
    """By the letters of qstat(1), the strongest first: `dr` is being deleted while it runs."""
    if not re.fullmatch(r"[dEhqwrRtsSTPN]+", letters):
        return JobState.UNKNOWN
    if "E" in letters or "h" in letters:
        return JobState.HELD
    if "d" in letters:
        return JobState.STOPPING
    if letters in ("qw", "Rq", "Rqw"):
        return JobState.QUEUED
    if re.search("[sST]", letters):
        return JobState.SUSPENDED
    return JobState.RUNNING if re.search("[rt]", letters) else JobState.UNKNOWN


def _reason(letters: str) -> str:
    if "E" in letters:
        return "Grid Engine could not start it; `qstat -explain E` on the cluster says why"
    return "it is held" if "h" in letters else ""


def _ended(failed: str, exit_status: str) -> JobStatus:
    """`failed` is `37  : qmaster enforced …`, and `exit_status` may be `137   (Killed)`."""
    number, reason = (failed.split()[:1] or [""])[0], failed.partition(":")[2].strip()
    code = exit_status.split()[:1]
    if not number.isdecimal() or not code or not code[0].isdecimal():
        return JobStatus(JobState.UNKNOWN, f"failed {failed}", reason)
    state, exit_code = _how(int(number[:9]), int(code[0][:9])), int(code[0][:9])
    ran = state is not JobState.NEVER_RAN
    spelled = f"failed {number}, exit_status {code[0]}"
    return JobStatus(state, spelled, reason, exit_code if ran else None)


def _how(failed: int, code: int) -> JobState:
    if failed == 0:
        return JobState.DONE if code == 0 else JobState.FAILED
    if failed == _TIME_LIMIT:
        return JobState.TIMEOUT
    if failed == _AFTER_JOB:
        return JobState.CANCELLED
    return JobState.NEVER_RAN if failed in _BEFORE_JOB else JobState.FAILED
