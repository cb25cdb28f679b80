"""A job as every scheduler understands it: what is asked, what it is called, how it stands."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum


@dataclass(frozen=True)
class Resources:
    """What one job asks of a cluster; None leaves the choice to the cluster."""

    walltime: timedelta
    gpus: int = 0
    gpu_model: str = ""
    nodes: int = 1
    tasks: int = 1  # processes that the program is started as, per node
    cores: int | None = None  # per task
    memory: int | None = None  # bytes per node
    exclusive: bool = False  # whole nodes, shared with nobody


@dataclass(frozen=True)
class JobSpec:
    """One submission: as many `jobs` as it has run one after another, or so many `at_once`."""

    name: str
    resources: Resources
    folder: str  # where the scheduler writes what it catches of the job's output
    jobs: int = 1
    at_once: int = 1  # of them; where the scheduler has arrays that run several elements together
    warn_before: timedelta = timedelta(0)  # when to ask the program to save, before the limit
    account: str = ""
    queue: str = ""
    features: tuple[str, ...] = ()
    mail: str = ""
    requeue: bool = True  # may the cluster itself start a job again that it had to end
    native: tuple[str, ...] = ()  # options passed through untouched
    launch: str = "program"  # program, torchrun, srun or mpi: how processes are started


@dataclass(frozen=True)
class JobId:
    """A job as its cluster names it, and which element when it is one of an array.

    Where a chain is several submissions, their ids stand one after another: `71.hades 72.hades`.
    """

    native: str

    def __str__(self) -> str:
        return self.native

    @property
    def each(self) -> tuple["JobId", ...]:
        return tuple(JobId(native) for native in self.native.split())

    @property
    def key(self) -> str:
        """The id without the name of its server, which some commands print and others do not."""
        return re.sub(r"(?<=[\d\]])\..*", "", self.native)

    def holds(self, key: str) -> bool:
        """Whether a key that `read_status` gave is this job, or an element of it."""
        return any(key == job.key or key.startswith(f"{job.key}_") for job in self.each)


def together(jobs: Sequence[JobId]) -> JobId:
    """The jobs of one chain as one id."""
    return JobId(" ".join(job.native for job in jobs))


class JobState(Enum):
    QUEUED = "queued"
    HELD = "held"
    RUNNING = "running"
    SUSPENDED = "suspended"  # it began, and its scheduler lets it rest
    STOPPING = "stopping"
    DONE = "done"
    FAILED = "failed"
    TIMEOUT = "time limit"
    CANCELLED = "cancelled"
    PREEMPTED = "preempted"
    NODE_FAILED = "node failed"
    NEVER_RAN = "never ran"
    LOST = "lost"
    UNKNOWN = "unknown"

    @property
    def over(self) -> bool:
        return self not in _UNFINISHED


_UNFINISHED = {
    JobState.QUEUED,
    JobState.HELD,
    JobState.RUNNING,
    JobState.SUSPENDED,
    JobState.STOPPING,
    JobState.UNKNOWN,
}


@dataclass(frozen=True)
class UsedResources:
    """What a job used of its node; None where nobody counted."""

    seconds: float | None = None  # from the start of its program to its end
    processor: float | None = None  # seconds, of all its cores
    cores: int | None = None  # that it could use
    memory: int | None = None  # bytes, at its peak
    memory_limit: int | None = None  # bytes


@dataclass(frozen=True)
class JobStatus:
    """A job's state on its cluster."""

    state: JobState
    spelled: str = ""  # as the cluster wrote it
    reason: str = ""
    exit_code: int | None = None
    # Its name first, then its mark where it has one; nothing where the cluster does not tell.
    carries: tuple[str, ...] = ()
    # When it started or should: ISO 8601 by the cluster's clock, or `@` and seconds since 1970.
    starts: str = ""
    place: int | None = None  # in the line, 1 is next; None where the cluster does not tell
    again: int = 0  # how often its scheduler ended it and queued it again
    used: UsedResources | None = None  # of a job that is over, as its scheduler counted

    def is_anothers(self, ours: Collection[str]) -> bool:
        """Whether it carries none of these: a server that was set up anew gives ids again."""
        return bool(self.carries) and not set(self.carries) & set(ours)


@dataclass(frozen=True)
class TrialAnswer:
    """What a scheduler says of a job that is shown to it and not submitted; "": nothing."""

    start: str = ""  # when it might begin, in the scheduler's own words; a guess
    refusal: str = ""  # why it would be refused, or never start


@dataclass(frozen=True)
class Capabilities:
    """What a scheduler can do by itself; where it cannot, rabaska does it or says so."""

    array: bool = False  # a chain as one array that runs one element at a time
    array_at_once: bool = False  # an array that runs several elements together
    dependency: bool = False
    signal_before_limit: bool = False
    mail: bool = False
    features: bool = False
    accounts: bool = False
    # A command that finds a job whose id was lost. It prints a line for each of the user's jobs:
    # its id, then what it carries of the `{submission}` in the submit command; or, for those that
    # are called `{name}`, the id and the word `named`. Nothing where the queue tells neither.
    find: tuple[str, ...] = ()
    asked_by_id: bool = False  # the queue is asked about known jobs, for it lists everybody's
    # Exit codes of a status command that told what it knows though some jobs are unknown to it.
    partial_answers: tuple[int, ...] = ()
    # The cancel command gives a job time to save; where it does not, the program is asked first.
    lets_save: bool = False
    # What the cancel command says of a job whose node does not answer: a pattern.
    node_lost: str = ""
    # What the scheduler says of a job that is over or forgotten: a pattern.
    gone: str = ""
    # What each answer of the status command holds, that of an empty queue too: a pattern. Where the
    # queue is asked by id, each job is told, or told to be gone.
    answer: str = ""
    # What starts a command on the other nodes of a job: "srun", or a shell command that lists the
    # nodes, `; `, and the words before a command on one: `{host}` is its name, `{place}` its place
    # in the list, from 0. "" where nothing does.
    reach: str = ""
    dependency_over: str = ""  # said of a job that waits for one that is over or forgotten: pattern
    # Of cores and memory, what a job gets little of unless it asks. Others leave it to the site.
    shares: tuple[str, ...] = ()
    several_by: str = ""  # the native option without which a job has one node
    # Options by which a run's jobs, their ids and their logs are found, so that no user gives them.
    # `-N` stands for `-Nname` too, unless they are whole words.
    own_options: tuple[str, ...] = ()
    whole_words: bool = False  # one dash begins a word, as in Grid Engine's `-tc`

    def own_option(self, line: str) -> str:
        """The first option in a line of `native` that is ours; "" where there is none."""
        for word in line.partition("#")[0].split():
            if any(self._is(word, own) for own in self.own_options):
                return word.partition("=")[0]
        return ""

    def _is(self, word: str, own: str) -> bool:
        option = word.partition("=")[0]
        if own.startswith("--"):  # getopt takes a long one cut short
            return option == own or (len(option) > 4 and own.startswith(option))
        return option == own if self.whole_words else word.startswith(own)

    def is_gone(self, output: str) -> bool:
        return bool(self.gone) and re.search(self.gone, output) is not None

    def is_on_lost_node(self, output: str) -> bool:
        return bool(self.node_lost) and re.search(self.node_lost, output) is not None

    def is_dependency_over(self, said: str) -> bool:
        return bool(self.dependency_over) and re.search(self.dependency_over, said) is not None

    def is_answer(self, output: str) -> bool:
        return re.search(self.answer, output, re.MULTILINE) is not None


@dataclass(frozen=True)
class InJob:
    """Shell expressions that give, inside a job, what the agent needs to know of it."""

    job_id: str
    ends: str = ""  # when the scheduler will end the job: seconds since 1970, or local time
    local_space: str = ""
    umask: str = "077"  # of all but the program
    # The command that takes the jobs still waiting out of the queue; `{name}` is the run's there.
    cancel_rest: str = ""
    waiting: str = ""  # the command that prints a line for each of them
    spooled: bool = False  # what a job prints is out of sight until it is over
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Rank:
    """One of several processes that train together: seconds for a step until it met the others."""

    rank: int
    host: str = ""
    steps: int = 0
    waiting: float = 0.0  # for data
    forward: float = 0.0  # from the batch to the backward pass
