"""What PBS Pro, Torque and Moab have from the first PBS: directives, letters, exit codes."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from rabaska.domain.jobs import JobId, JobSpec, JobState, JobStatus, TrialAnswer
from rabaska.schedulers.spelling import (
    carried,
    clock,
    job_name,
    jobs_called,
    one_line,
    one_word,
    plain_path,
)

UNKNOWN_JOB = 153  # what qstat exits with when some of the ids are no more
NUMBER = r"\d+(?:\[\d*\])?"

STATES = {
    "Q": JobState.QUEUED,
    "W": JobState.QUEUED,
    "T": JobState.QUEUED,  # on its way to another server
    "H": JobState.HELD,
    "R": JobState.RUNNING,
    "S": JobState.SUSPENDED,
    "E": JobState.STOPPING,
}
BY_QDEL = (271, 265)  # 256 and the signal; 265 is that of `qdel -W force`

# The jobs that wait have our name, which ends in letters of the run's own.
# Without a user, qselect lists everybody's.
# Not by $PBS_JOBNAME, which somebody may have changed to that of other jobs.
WAITING = "qselect -u $(id -un) -N {name} -s HQW"
# One at a time, for OpenPBS deletes with a job those that wait for it; what counts is who is left.
OWN = ("-N", "-J", "-t", "-o", "-z", "-I")  # -J and -t make arrays, -z hides the id
CANCEL_REST = f"sh -c '{WAITING} | xargs -r -n 1 qdel 2>/dev/null; ! {WAITING} | grep -q .'"
JOBS_CALLED = jobs_called('qselect -u "$(id -un)" -N "$0"')
# On Torque a place is that of a processor, in the list that has a line for each.
REACH = 'cat "$PBS_NODEFILE"; pbsdsh -n {place} --'
EXEC_HOST = r'qstat -f "$0" | sed -n "s/^ *exec_host = \([^/:+]*\).*/\1/p" | head -n 1'

# What `qstat -f` prints of a job. Long values go on after a tab.
_HEADING = re.compile(r"^Job Id:[ \t]*(\d\S*)[ \t]*\r?\n", re.MULTILINE | re.ASCII)
_VALUE = re.compile(r" {4}([\w.]+) = (.*)\r?\n")

# The queue `$1`, or the one that jobs go to which name none; the limit asked for stands above it.
_QUEUE = r"""
queue=${1:-$(qstat -B -f 2>/dev/null | sed -n "s/^ *default_queue = //p" | head -n 1)}
[ -n "$queue" ] || exit 0
printf "    asked.walltime = %s\n" "$2"
exec qstat -Q -f "$queue"
"""
_QUEUE_LINE = re.compile(r"^ +((?:resources_max\.|asked\.)?\w+) = (\S+)[ \t\r]*$", re.MULTILINE)

_SUBMITTED = re.compile(rf"^({NUMBER}(?:\.[\w.-]+)?)[ \t\r]*$", re.MULTILINE | re.ASCII)
_FOR_BATCH = ("-N", "-m", "-r", "-S", "-j", "-o")


def directives(spec: JobSpec, resources: Sequence[str]) -> list[str]:
    """The top of a script; `resources` are its -l options."""
    folder = plain_path(spec.folder)
    account, queue = one_word(spec.account), one_word(spec.queue)
    options = [
        f"-N {job_name(spec.name)}",
        # The account first: Hélios overlooked one that stood after other options.
        f"-A {account}" if account else "",
        *resources,
        f"-q {queue}" if queue else "",
        f"-m bea -M {one_word(spec.mail)}" if spec.mail else "-m n",
        "-r y" if spec.requeue else "-r n",
        "-S /bin/bash",
        # The job writes its own log; this is where the scheduler's last words go.
        "-j oe",
        f"-o {folder}/" if folder else "-o /dev/null",
        *map(one_line, spec.native),
    ]
    return [f"#PBS {option}" for option in options if option]


def submission(program: str, script: str, after: JobId | None) -> list[str]:
    waiting = ["-W", f"depend=afterany:{after}"] if after else []
    return [program, *waiting, script]


def carried_command(job: JobId) -> list[str]:
    return carried('qstat -f "$0"', r"s/^[[:space:]]*Job_Name = //p", str(job))


def named(job: Mapping[str, str]) -> tuple[str, ...]:
    """What `JobStatus.carries` of a job: its name alone."""
    return (job["Job_Name"].strip(),) if job.get("Job_Name", "").strip() else ()


def interactive(program: str, lines: Sequence[str]) -> list[str]:
    """`qsub -I` and those options of a script that matter to somebody who waits for a shell."""
    words = [shlex.split(line.removeprefix("#PBS ")) for line in lines]
    return [program, "-I", *(word for line in words if line[0] not in _FOR_BATCH for word in line)]


def queue_question(spec: JobSpec) -> list[str]:
    """All that PBS tells beforehand: whether the queue takes and starts jobs, and its limits."""
    limit = clock(spec.resources.walltime)
    return ["sh", "-c", _QUEUE, "qstat", one_word(spec.queue), limit]


def read_queue(said: str) -> TrialAnswer:
    unknown = re.search(r"Unknown queue.*", said)
    if unknown:
        return TrialAnswer(refusal=unknown[0].strip())
    told = dict(_QUEUE_LINE.findall(said))
    if told.get("enabled") == "False":
        return TrialAnswer(refusal="the queue takes no jobs: enabled = False")
    most, asked = told.get("resources_max.walltime", ""), told.get("asked.walltime", "")
    if seconds(most) and seconds(most) < seconds(asked):
        return TrialAnswer(refusal=f"the queue allows {most} and the job asks for {asked}")
    if told.get("started") == "False":
        return TrialAnswer(refusal="the queue starts no jobs: started = False")
    return TrialAnswer()


def seconds(duration: str) -> int:
    """Of `HH:MM:SS`, or fewer of its parts; 0 for anything else."""
    if not re.fullmatch(r"\d{1,9}(:\d{1,2}){0,3}", duration, re.ASCII):
        return 0
    parts = [int(part) for part in reversed(duration.split(":"))]
    return sum(part * unit for part, unit in zip(parts, (1, 60, 3600, 86400), strict=False))


def submitted(output: str) -> JobId | None:
    """The last line that is nothing but a job's id."""
    found = _SUBMITTED.findall(output)
    return JobId(found[-1]) if found else None


def parts(output: str, headings: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """What each heading names, and the text from it to the next one."""
    starts = list(headings.finditer(output))
    ends = [start.start() for start in starts[1:]] + [len(output)]
    for start, end in zip(starts, ends, strict=False):
        yield start[1], output[start.end() : end]


def told_in_full(output: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each job of `qstat -f` and its values; lines cut short or of others are none."""
    for job, text in parts(output, _HEADING):
        values: dict[str, str] = {}
        name = ""
        for line in text.splitlines(keepends=True):
            if found := _VALUE.fullmatch(line):
                name = found[1]
                values.setdefault(name, found[2].rstrip("\r"))
            elif line[:1] == "\t" and line[-1:] == "\n" and name:
                values[name] += line[1:].rstrip("\r\n")
        yield job, values


def unfinished(
    letter: str, comment: str, depends: str, states: Mapping[str, JobState] = STATES
) -> JobStatus:
    """A job that is not over; one that is held for another job only waits."""
    if letter == "H" and depends:
        return JobStatus(JobState.QUEUED, letter, comment or f"waits: {depends}")
    return JobStatus(states.get(letter, JobState.UNKNOWN), letter, comment)


def again(state: JobState, begun: str) -> int:
    """How often a job was queued again, by how often it began."""
    if not re.fullmatch(r"\d{1,6}", begun, re.ASCII):
        return 0
    return max(0, int(begun) - (state not in (JobState.QUEUED, JobState.HELD)))


def ending(code: int, *, walltime: int) -> JobState:
    """How a job ended; each member has a code of its own for the time limit."""
    if code == walltime:
        return JobState.TIMEOUT
    if code in BY_QDEL:
        return JobState.CANCELLED
    return JobState.DONE if code == 0 else JobState.FAILED


def plain_code(code: int) -> int | None:
    """As a shell would tell it: PBS and Torque add 256 to the signal that ended a job."""
    if code < 0:
        return None
    return 128 + code - 256 if code > 256 else code
