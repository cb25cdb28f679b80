"""SHARCNET's sq tools: sqsub, sqjobs, sqkill.

They are retired with the clusters they served (Monk, Copper, Mosaic …). A job is a program and its
arguments; there are no directives in scripts, so that everything is asked for on the command line.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from rabaska.domain.jobs import (
    Capabilities,
    InJob,
    JobId,
    JobSpec,
    JobState,
    JobStatus,
    TrialAnswer,
)
from rabaska.schedulers import pbs_queues
from rabaska.schedulers.protocol import SiteQueries
from rabaska.schedulers.spelling import (
    job_name,
    mebibytes,
    on_node,
    once_on_the_first,
    one_line,
    one_word,
    refusal,
    said,
)

_STATES = {
    "Q": JobState.QUEUED,
    "*Q": JobState.QUEUED,  # waits for another job
    "R": JobState.RUNNING,
    "Z": JobState.SUSPENDED,  # asleep
    "S": JobState.SUSPENDED,
    "T": JobState.SUSPENDED,
    "D": JobState.DONE,
    "C": JobState.DONE,
    "K": JobState.CANCELLED,
}
_NOTHING_LEFT = 1  # what sqjobs exits with when nothing waits or runs
_USUAL_MEMORY = 4 * 2**30  # bytes of a process; sqsub takes no job that says nothing of its memory
_SUBMITTED = re.compile(r"(?:as jobid\s+|Job <)(\d+)", re.ASCII)
_STATE = re.compile(r"\*?[A-Z]+")
_NODE = r'sqjobs -l "$0" | sed -n "s/^ *nodes: *\([^ ,]*\).*/\1/p" | head -n 1'

# Submits `$@`, which runs a screen called `$1` on its node, and waits there until it has begun.
_ATTEND = r"""
name=$1; shift
told=$("$@") || { printf '%s\n' "$told" >&2; exit 1; }
set -- "$(printf '%s\n' "$told" | sed -nE 's/.*(as jobid +|Job <)([0-9]+).*/\2/p' | tail -n 1)"
[ -n "$1" ] || { printf 'sqsub said: %s\n' "$told" >&2; exit 1; }
trap 'sqkill "$1" >/dev/null 2>&1' EXIT
trap 'exit 130' INT TERM HUP
state() { sqjobs "$1" | awk -v job="$1" '
  $1 == "jobid" { for (i = 1; i <= NF; i++) if ($i == "state") at = i }
  $1 == job { print $at }'; }
echo "job $1 waits for a node; Ctrl-C gives it up" >&2
until now=$(state "$1"); [ "$now" = R ]; do
  case $now in Q | '*Q' | '') sleep 2 ;; *) echo "job $1 is over: $now" >&2; exit 1 ;; esac
done
node=$(sh -c "$0" "$1")
echo "job $1 runs on $node" >&2
ssh -t "$node" "until screen -ls | grep -qF '.$name'; do sleep 1; done; screen -r '$name'"
"""


@dataclass(frozen=True)
class Sqsub:
    @property
    def name(self) -> str:
        return "sqsub"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            dependency=True,
            dependency_over="(?i)dependency",
            partial_answers=(_NOTHING_LEFT,),
            gone="(?i)error.*(no such|not found|unknown)",
            answer=r"^\s*jobid\s.*\bstate\b|\bCPUs total\b",
            own_options=("-j", "-o"),
        )

    @property
    def site(self) -> SiteQueries:
        return SiteQueries(
            programs=("sqsub", *pbs_queues.PROGRAMS),
            version_commands=pbs_queues.VERSION_COMMANDS,
            version=pbs_queues.VERSION,
            questions=pbs_queues.QUESTIONS,
            is_there=lambda programs, versions: "sqsub" in programs,
            partitions=pbs_queues.of_site,
        )

    def directives(self, spec: JobSpec) -> list[str]:
        """None; the options are told to those who read the script."""
        return [f"# sqsub {one_line(shlex.join(_options(spec)))}"]

    def unmet(self, spec: JobSpec) -> list[str]:
        return said(
            {
                f"sqsub mails to the address that your account has, not to {one_word(spec.mail)}": (
                    bool(spec.mail)
                ),
                f"sqsub cannot choose nodes by {', '.join(map(one_word, spec.features))}": (
                    bool(spec.features)
                ),
                f"sqsub cannot choose a {one_word(spec.resources.gpu_model)}: "
                "each of its clusters has one kind of GPU": bool(spec.resources.gpu_model),
                "sqsub knows no accounts: a group's share is a queue, such as NRAP_12345": (
                    bool(spec.account)
                ),
                "sqsub cannot ask for whole nodes": spec.resources.exclusive,
                "the folder for the job's output has a percent sign or a line break in its name": (
                    "%" in spec.folder or "\n" in spec.folder
                ),
                **once_on_the_first(spec),
            }
        )

    def submit_command(
        self, script: str, spec: JobSpec, *, after: JobId | None = None
    ) -> list[str]:
        waiting = ["-w", str(after)] if after else []
        # The script need not be executable for bash.
        return ["sqsub", *_options(spec), *waiting, "/bin/bash", script]

    def read_job_id(self, output: str) -> JobId | None:
        found = _SUBMITTED.findall(output)
        return JobId(found[-1]) if found else None

    def prospect_command(self, spec: JobSpec) -> list[str]:
        return []

    def read_prospect(self, said: str) -> TrialAnswer:
        return TrialAnswer()

    def status_command(self, jobs: Sequence[JobId]) -> list[str]:
        return ["sqjobs", *map(str, jobs)]

    def read_status(self, output: str) -> Mapping[str, JobStatus]:
        return {
            job: JobStatus(_STATES.get(state, JobState.UNKNOWN), state, _reason(state))
            for job, state in _rows(output)
        }

    def history_command(self, jobs: Sequence[JobId]) -> list[str]:
        return []  # sqjobs shows what ended for a while; after that, nobody remembers

    def read_history(self, output: str) -> Mapping[str, JobStatus]:
        return self.read_status(output)

    def cancel_command(self, jobs: Sequence[JobId]) -> list[str]:
        return ["sqkill", *map(str, jobs)]

    def carried_command(self, job: JobId) -> list[str]:
        return []  # sqjobs tells the command of a job, not its name

    def interactive_command(self, spec: JobSpec, script: str, *, terminal: bool) -> list[str]:
        """A batch job that keeps a screen, to which we go by ssh: sqsub knows nothing better."""
        if not terminal:
            return refusal("sqsub gives no terminal back; `rabaska run` submits a batch job")
        name = job_name(spec.name)
        keep = f"TERM=${{TERM:-linux}} exec screen -D -fn -m -S {name} bash {shlex.quote(script)}"
        submit = ["sqsub", *_options(spec, output="/dev/null"), "/bin/bash", "-c", keep]
        return ["sh", "-c", _ATTEND, _NODE, name, *submit]

    def waited_command(self, command: Sequence[str], *, account: str) -> list[str]:
        return []

    def beside_command(self, job: str, command: Sequence[str], *, terminal: bool) -> list[str]:
        return on_node(_NODE, job, shlex.join(command), terminal=terminal)

    def in_job(self) -> InJob:
        # Some of its clusters ran jobs by LSF, the others by Torque.
        return InJob(job_id="${LSB_JOBID:-${PBS_JOBID%%.*}}")


def _options(spec: JobSpec, output: str = "") -> list[str]:
    asked = spec.resources
    several = asked.tasks > 1 or asked.nodes > 1
    count = asked.tasks * asked.nodes if several else asked.cores or 1
    processes = asked.tasks if several else 1  # of each node
    queue = "gpu" if asked.gpus else "mpi" if several else "threaded" if count > 1 else "serial"
    options = ["-r", _minutes(asked.walltime), "-o", output or f"{spec.folder}/scheduler-%J.out"]
    options += ["-q", one_word(spec.queue) or queue, "-j", job_name(spec.name), "-n", str(count)]
    options += ["-f", "mpi" if several else "threaded"] if queue == "gpu" else []
    options += ["-N", str(asked.nodes)] if asked.nodes > 1 else []
    options += [f"--gpp={-(-asked.gpus // processes)}"] if asked.gpus else []
    memory = asked.memory // processes if asked.memory else _USUAL_MEMORY
    options += [f"--mpp={mebibytes(memory)}M"]
    options += ["--nompirun"] if several else []
    options += ["--mail-start", "--mail-end"] if spec.mail else []
    return [*options, *(word for option in spec.native for word in one_line(option).split())]


def _minutes(walltime: timedelta) -> str:
    return f"{max(1, -(-walltime // timedelta(minutes=1)))}m"


def _rows(output: str) -> Iterator[tuple[str, str]]:
    """Job and state in each row below a header; columns differ between versions of sqjobs."""
    columns: list[str] = []
    for line in output.splitlines():
        words = line.split()
        if words[:1] == ["jobid"] and "state" in words:
            columns = words
        elif columns and len(words) > columns.index("state") and words[0].isdecimal():
            state = words[columns.index("state")]
            if _STATE.fullmatch(state) and words[0].isascii():
                yield words[0], state


def _reason(state: str) -> str:
    return "waits for another job" if state == "*Q" else ""
