"""A project: its command, its data, its environment, what it requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from rabaska.domain.jobs import Resources
from rabaska.domain.search import Search
from rabaska.domain.secrets import Secrets
from rabaska.node.checkpoints.newest_checkpoint import DEFAULT_PATTERNS
from rabaska.node.record.plan import IN_PLACE

PLACEHOLDERS = ("data", "output", "checkpoint", "checkpoints")

FILL_IN = "FILL-IN"  # what `init` writes for a value that it cannot know

CHECKPOINT_PATTERNS = tuple(DEFAULT_PATTERNS)

__all__ = ["IN_PLACE"]


@dataclass(frozen=True)
class Dataset:
    """Where samples are, and how the program wants to see them on the node."""

    name: str
    path: Path | None = None  # on this computer
    mode: str = "files"  # "files": as it was; "shards": tar shards read in place; or IN_PLACE
    follow_links: bool = False
    beside: tuple[Path, ...] = ()  # more folders, packed side by side with it
    samples: bool = False  # files of one stem are one sample
    at: str = ""  # on the cluster: a path that its shell expands, `site:NAME` or `node:PATH`
    url: str = ""  # from which the cluster downloads it
    sha256: str = ""  # of what the address gives
    fetch: str = ""  # a command that downloads it there
    unpack: bool = True  # whether an archive is unpacked
    largest_side: int = 0  # pixels to which JPEG pictures are shrunk when packed; 0: as they are

    @property
    def paths(self) -> tuple[Path, ...]:
        """On this computer; none where the data is, or comes from, elsewhere."""
        return (self.path, *self.beside) if self.path else ()

    @property
    def is_downloaded(self) -> bool:
        return bool(self.url or self.fetch)

    @property
    def source(self) -> str:
        """Where it comes from, as it was written."""
        return self.at or self.url or self.fetch or str(self.path or "")


@dataclass(frozen=True)
class EnvironmentRecipe:
    """How the program's Python comes to be on the cluster."""

    kind: str = "current"  # current, activate, virtualenv, packed, conda or container
    path: str = ""  # for activate and packed: an environment on the cluster
    here: Path | None = None  # for packed and container: where it lies on this computer instead
    requirements: str = ""  # for virtualenv: the text of the requirements file
    listed_in: str = ""  # the name of that file
    file: str = ""  # for conda: the name of its file, by which conda tells its format
    conda: str = ""  # and the text
    image: str = ""  # for container: a path on the cluster, or an address
    binds: tuple[str, ...] = ()  # for container: SOURCE or SOURCE:TARGET
    build: str = ""  # for virtualenv: in each "job" or "once"; "" leaves it to the cluster
    python: str = "python3"
    modules: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    hidden: Secrets = field(default_factory=Secrets)  # variables that are likely to be secrets
    handed: Secrets = field(default_factory=Secrets)  # what a job of our own needs to know
    secrets: tuple[str, ...] = ()  # names whose values are found when a run needs them
    secrets_from: Path | None = None  # a file that holds them


@dataclass(frozen=True)
class Chain:
    """How many jobs may follow one another, and how each is asked to stop."""

    jobs: int = 1
    grace: timedelta | None = None  # between asking to save and the limit; None: chosen by walltime
    signal: str = "TERM"
    requeue: bool = True  # may the cluster itself start a job again that it had to end
    at_most: int | None = None  # jobs that the run may grow to by itself; None: nobody said


@dataclass(frozen=True)
class CheckpointSettings:
    patterns: tuple[str, ...] = CHECKPOINT_PATTERNS


@dataclass(frozen=True)
class Project:
    """All of `rabaska.toml`, resolved for one cluster."""

    name: str
    folder: Path
    command: tuple[str, ...]
    resources: Resources
    launch: str = "program"  # program, torchrun, srun or mpi
    resume: tuple[str, ...] = ()  # words added to the command once there is a checkpoint
    datasets: tuple[Dataset, ...] = ()
    environment: EnvironmentRecipe = EnvironmentRecipe()
    chain: Chain = Chain()
    checkpoints: CheckpointSettings = CheckpointSettings()
    keep: tuple[str, ...] = ()  # what the program writes beside its code and must outlive a job
    exclude: tuple[str, ...] = ()  # code that does not travel, beside what .gitignore says
    include: tuple[str, ...] = ()  # code that is sent though it may hold secrets
    progress: str = ""  # a regular expression that finds step numbers in the log
    watch: bool = True  # whether the program is watched from inside
    search: Search | None = None
    account: str = ""
    queue: str = ""
    features: tuple[str, ...] = ()
    mail: str = ""
    native: tuple[str, ...] = ()
    cluster_tables: tuple[str, ...] = ()  # the clusters that have a table of their own
    # Keys of what a job requests that nobody wrote: `queue`, `walltime`, `gpus`, ….
    left_out: frozenset[str] = frozenset()
    # And where the others stand: a table of rabaska.toml, or "" for the command line.
    written_in: Mapping[str, str] = field(default_factory=dict)

    @property
    def continues(self) -> bool:
        """Whether a job of it goes on where the last one stopped, as far as its command tells."""
        words = (*self.command, *self.resume)
        told = any("{checkpoint}" in word for word in words)
        return self.chain.jobs > 1 or told or bool(self.resume)
