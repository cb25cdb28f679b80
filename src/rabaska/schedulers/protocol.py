"""What every scheduler must be able to say: text in, text out, nothing is run here."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rabaska.domain.clusters import Cluster, Partition, ProfileFact
from rabaska.domain.jobs import Capabilities, InJob, JobId, JobSpec, JobStatus, TrialAnswer

COMMENT = "rabaska-"  # begins what a job carries where it has room for the mark of its submission


@dataclass(frozen=True)
class Setting:
    """What a scheduler may need to know of the cluster it is spoken to on."""

    program: tuple[str, ...]  # the words that start our node side there
    queue: str  # the folder of the embedded cluster's queue
    gpus_as_gres: bool = False  # how Slurm is asked for GPUs
    names_cores: bool = True  # false where cores come with GPUs and may not be asked for


# The answer to a question, by its name; "" where it failed or was not asked.
Answer = Callable[[str], str]


@dataclass(frozen=True)
class SiteQueries:
    """What a site is asked to find out whether it has this scheduler, and with which queues.

    All schedulers ask at once, in one script: those that are not there cost nothing.
    """

    programs: tuple[str, ...] = ()  # looked for; `is_there` is told which of them were found
    version_commands: tuple[str, ...] = ()
    version: str = ""  # its pattern in what all version commands printed
    questions: Mapping[str, str] = field(default_factory=dict)  # name: shell words; for each visit
    first_questions: Mapping[str, str] = field(default_factory=dict)  # of a new site, and checked
    local_variables: tuple[str, ...] = ()  # by which a job knows its own space on its node
    # By the programs that were found, and what all version commands printed.
    is_there: Callable[[Collection[str], str], bool] = lambda programs, versions: False
    partitions: Callable[[Answer], tuple[Partition, ...]] = lambda answer: ()
    accounts: Callable[[Answer], tuple[str, ...]] = lambda answer: ()
    limits: Callable[[Answer], Mapping[str, str]] = lambda answer: {}
    # What of a profile the scheduler's version, as it says it, confirms or contradicts.
    compare: Callable[[Cluster, str], Iterable[ProfileFact]] = lambda cluster, version: ()


class Scheduler(Protocol):
    """How one scheduler spells things.

    Commands are argument lists that the caller quotes and runs on the cluster. Readers take
    what those commands printed, banners and noise included, and never raise on unknown text:
    an unheard-of state is UNKNOWN, and a job that is not mentioned is simply absent.
    """

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def site(self) -> SiteQueries: ...

    def directives(self, spec: JobSpec) -> list[str]:
        """The lines at the top of the job script, each with its prefix."""

    def unmet(self, spec: JobSpec) -> list[str]:
        """What is asked and this scheduler cannot do, one sentence each."""

    def submit_command(
        self, script: str, spec: JobSpec, *, after: JobId | None = None
    ) -> list[str]:
        """Submits the script; with `after`, to begin when that job is over, however it ended."""

    def read_job_id(self, output: str) -> JobId | None:
        """The id in what the submit command printed, or None if it holds none."""

    def prospect_command(self, spec: JobSpec) -> list[str]:
        """Shows the scheduler a job, its script on standard input, and submits nothing.

        Empty where the scheduler cannot be asked that.
        """

    def read_prospect(self, said: str) -> TrialAnswer: ...

    def status_command(self, jobs: Sequence[JobId]) -> list[str]: ...

    def read_status(self, output: str) -> Mapping[str, JobStatus]:
        """How each job mentioned stands, by its `JobId.key`.

        A chain submitted as an array gives one entry for each element, `<id>_<number>`.
        """

    def history_command(self, jobs: Sequence[JobId]) -> list[str]:
        """Asks about jobs that left the queue; nothing where the queue remembers them itself."""

    def read_history(self, output: str) -> Mapping[str, JobStatus]: ...

    def cancel_command(self, jobs: Sequence[JobId]) -> list[str]: ...

    def carried_command(self, job: JobId) -> list[str]:
        """Prints what the job carries, a line each: its name, and its mark where it has one.

        It fails with the scheduler's words where there is no such job, and is empty where the
        scheduler tells neither.
        """

    def interactive_command(self, spec: JobSpec, script: str, *, terminal: bool) -> list[str]:
        """Waits for an allocation and runs `script` in it, in the foreground.

        The script is an executable file of bash on the cluster: Torque takes no words after it.
        """

    def waited_command(self, command: Sequence[str], *, account: str) -> list[str]:
        """Runs `command` in a job of one minute, waits for it and prints what it printed.

        Empty where the scheduler has no such word.
        """

    def beside_command(self, job: str, command: Sequence[str], *, terminal: bool) -> list[str]:
        """Runs `command` on the first node of a job that is running."""

    def in_job(self) -> InJob: ...
