"""The tables and keys of rabaska.toml: the one place that says what may be written there."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from rabaska.domain.projects import CHECKPOINT_PATTERNS
from rabaska.settings.data_sources import Address, Images, Place, Sha256
from rabaska.settings.search_table import SearchTable
from rabaska.settings.validation import (
    Command,
    Duration,
    Line,
    Name,
    PathInside,
    Pattern,
    SignalName,
    Size,
    Variables,
    Words,
    variable_names,
)


class Table(BaseModel):
    """A table that refuses keys it does not know and values of another type."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True
    )


class DataTable(Table):
    """Data that the program reads. Any number of datasets, each with a name: `{data.NAME}` in the
    command, and `RABASKA_DATA_NAME` in its environment. One of `path`, `at`, `url` and `fetch` says
    where it comes from."""

    path: Line = ""
    """A folder on this computer: relative to the project folder, or absolute, or from `~`."""
    at: Place = ""
    """A folder or file that is on the cluster already, so that nothing is sent: a path that begins
    with `/`, `~` or `$`; `site:NAME`, a dataset that the cluster's profile lists; or `node:PATH`,
    which only its compute nodes have."""
    url: Address = ""
    """An address (`https://…`) from which it is downloaded on the cluster, once."""
    sha256: Sha256 = ""
    """The digest of what `url` gives; anything else is refused."""
    fetch: Line = ""
    """A command that downloads it on the cluster, once, into the folder in which it is started."""
    unpack: bool = True
    """Unpack an archive (`.tar`, `.tar.gz`, `.zip` …) that `at` or `url` names."""
    beside: list[Line] = []
    """More folders. They are packed side by side with `path`, and the program finds each of them,
    that of `path` too, under its own name."""
    mode: Annotated[Literal["files", "shards", "in place"] | None, Field(alias="as")] = None
    """How the program sees it on the node: `files` is the folder as it was, on the node's own disk;
    `shards` is tar shards read in place; `in place` is the folder that `at` names, where it is.
    When left out: `in place` with `at`, else `files`."""
    follow_links: bool = False
    """Pack what symbolic links point to, instead of the links themselves."""
    samples: bool = False
    """Files of one stem (`0001.jpg`, `0001.cls`) are one sample, as WebDataset reads them: say what
    samples there are, and refuse names that would split one."""
    images: Images = ""
    """`"max 512"`: pack JPEG pictures with no side longer than 512 pixels. It is done once, needs
    Pillow, and leaves the originals as they are, and other formats too."""


class EnvironmentTable(Table):
    """How the program gets its Python on the cluster."""

    kind: Literal["current", "activate", "virtualenv", "packed", "conda", "container"] | None = None
    """`current` uses the Python of the shell that submits; `activate` an existing environment
    at `path`; `virtualenv` builds one from `requirements`; `packed` unpacks one from a single
    file on the node; `conda` builds one from `file`, once, and unpacks it so; `container` runs the
    program in `image`. When left out: `container` if `image` is set, `conda` if `file` is,
    `virtualenv` if `requirements` is, `activate` if `path` is; else `current` on this computer,
    and on a cluster `virtualenv` from the project's own list of packages, where it has one.
    `current` is for this computer: on a cluster it counts only under `[cluster.NAME.environment]`,
    or next to `modules`, or where no packages are listed."""
    path: Line = ""
    """For `activate`: the virtual or conda environment, as the cluster sees it. For `packed`: an
    archive, such as conda-pack makes, or the folder of a virtualenv; a relative path is one in the
    project folder, any other is the cluster's."""
    requirements: Line = ""
    """For `virtualenv`: the list of packages in the project folder: a requirements file, a
    `uv.lock` (exact versions and hashes) or a `pyproject.toml`. When left out: the first of
    `requirements.txt`, `uv.lock` and `pyproject.toml` that is there."""
    extras: list[Line] = []
    """For a `uv.lock` or `pyproject.toml`: the optional lists and dependency groups to install as
    well, such as `train`."""
    file: Line = ""
    """For `conda`: an `environment.yml`, a `conda-lock.yml` or an explicit list in the project
    folder; `environment.yml` when left out."""
    image: Line = ""
    """For `container`: an image of Apptainer or Singularity. A relative path is a file in the
    project folder, which is sent; `/…`, `~/…` and `$…` are the cluster's; `docker://…`, `oras://…`,
    `library://…` and `https://…` are pulled there, once."""
    binds: list[Line] = []
    """For `container`: more folders that the program sees, as `SOURCE` or `SOURCE:TARGET`. Data,
    code, output and the node's own disk are always there."""
    build: Literal["job", "once"] | None = None
    """For `virtualenv`: `job` builds it in each job on the node's own disk, from wheels only, which
    costs two or three files of shared storage; `once` builds it one time next to the runs, where
    all its files count against the quota. When left out: `job`, but `once` on this computer."""
    python: Line = "python3"
    """The Python that builds a virtualenv."""
    modules: list[Line] = []
    """Environment modules to load first, in this order."""
    variables: Variables = {}
    """Variables set for the program."""
    secrets: Annotated[list[Line], AfterValidator(variable_names)] = []
    """Names of variables that are secrets, such as `WANDB_API_KEY`. Their values come from the
    shell that submits, or from `secrets_from`; they are sent in a file that only you can read, and
    are never shown."""
    secrets_from: Line = ""
    """A file on this computer with lines `NAME=value`, which only you may be able to read; without
    `secrets`, all that it names are passed to the program."""


class ResourcesTable(Table):
    """What one job requests from the cluster."""

    walltime: Duration = timedelta(hours=3)
    """How long one job may take. Short jobs start sooner; a chain makes up the rest."""
    gpus: Annotated[int, Field(ge=0, le=10_000)] = 0
    """GPUs per node."""
    gpu_model: Line = ""
    """The GPU model, as the cluster spells it, such as `v100`."""
    cores: Annotated[int | None, Field(ge=1, le=100_000)] = None
    """CPU cores for each task; the cluster's default when left out."""
    memory: Size | None = None
    """Memory per node; the cluster's default when left out."""
    nodes: Annotated[int, Field(ge=1, le=100_000)] = 1
    """Nodes per job. The program is started on all of them only as `launch` says."""
    tasks: Annotated[int | None, Field(ge=1, le=10_000)] = None
    """Processes per node that `launch` starts; one for each GPU, or one, when left out."""
    exclusive: bool = False
    """Whole nodes, not shared with other jobs."""


class ChainTable(Table):
    """How many jobs may follow one another to finish a run, and how each is asked to stop."""

    jobs: Annotated[int, Field(ge=1, le=1000)] = 1
    """Jobs that are queued at once, to follow one another. The chain ends early when the program
    finishes."""
    at_most: Annotated[int | None, Field(ge=1, le=1000)] = None
    """Jobs that the run may grow to: when its pace shows that those queued are too few, the last of
    them submits another. When left out: as many as `jobs` says; and 30 where that is left out
    too and the program resumes from a checkpoint."""
    grace: Duration | None = None
    """Time between asking the program to save and the limit; chosen by walltime when left out."""
    signal: Annotated[Literal["TERM", "INT", "USR1", "USR2", "HUP", "QUIT"], SignalName] = "TERM"
    """The signal that asks the program to save and stop."""
    requeue: bool = True
    """Whether the cluster may itself start a job again after it had to end it, as it does
    with jobs that were preempted or whose node failed. The run resumes where it was."""


class CheckpointsTable(Table):
    """What the program's checkpoints are called."""

    patterns: Annotated[list[Line], Field(min_length=1)] = list(CHECKPOINT_PATTERNS)
    """File name patterns. A run resumes from the newest complete file that matches."""


class OutputTable(Table):
    """What the program writes outside `{output}` and must outlive a job."""

    keep: list[PathInside] = []
    """Paths next to the code, such as `lightning_logs`, kept from job to job."""


class CodeTable(Table):
    """Which code is sent."""

    exclude: list[Line] = []
    """Patterns of files not to send, besides what `.gitignore` names; `/x` only at the root."""
    include: list[Line] = []
    """Patterns of files that are sent although they may hold secrets: `.env`, private keys and
    tokens are not sent otherwise."""


class ProgressTable(Table):
    """How to read the program's progress from what it prints."""

    pattern: Pattern = ""
    """A regular expression that finds step numbers, such as `step (?P<step>\\d+)`."""
    watch: bool = True
    """Whether steps, epochs and waiting for data are counted inside the program, and its saves are
    made atomic. `RABASKA_WATCH=0` among its variables does the same for one cluster."""


class NotifyTable(Table):
    """When somebody is told of a run. `mail` is the scheduler's; a command on this computer and a
    webhook are in a file of your own: see [the guide](../guides/watching.md#be-told)."""

    mail: Line = ""
    """The e-mail address to which the cluster writes when a job ends; that of `[cluster.NAME]`
    wins."""
    when: list[Literal["ends", "fails", "stalls", "idles"]] = ["ends", "fails", "stalls", "idles"]
    """What is told: that a run finished, that it failed or was interrupted, that it reports no step
    for long, that a GPU of it is idle."""
    stalled_after: Duration = timedelta(minutes=30)
    """How long a running program may report nothing; longer where it did so before."""
    idle_after: Duration = timedelta(minutes=15)
    """How long a GPU may be used less than 5 %."""


class ClusterTable(Table):
    """What differs on one cluster. Keys in its `resources`, `chain`, `environment` and `data`
    tables win over those of the same name above."""

    account: Line = ""
    """The account or allocation that pays, such as `def-prof`."""
    queue: Line = ""
    """The queue or partition; the cluster chooses when left out."""
    features: list[Line] = []
    """Node features to request."""
    mail: Line = ""
    """The e-mail address to which the cluster writes when a job ends."""
    native: list[Line] = []
    """Options passed to the scheduler unchanged, such as `--exclusive`; not those by which jobs and
    their logs are found: a name, an output, an array."""
    resources: ResourcesTable = ResourcesTable()
    """As `[resources]`, for this cluster."""
    chain: ChainTable = ChainTable()
    """As `[chain]`, for this cluster."""
    environment: EnvironmentTable = EnvironmentTable()
    """As `[environment]`, for this cluster."""
    data: dict[str, DataTable] = {}
    """As `[data]`, for this cluster: `[cluster.NAME.data.cats]` with `at = "/project/cats"` uses
    the copy that is there."""


class Settings(Table):
    """All of rabaska.toml."""

    name: Name | None = None
    """The project's name, from which runs take theirs; the folder's name when left out."""
    command: Command
    """How the program is started: text split as a shell would, or a list of words.
    `{data}`, `{data.NAME}`, `{output}`, `{checkpoints}` and `{checkpoint}` are filled in; without
    a checkpoint, words with `{checkpoint}` are left out, with the option before them."""
    on: Name | None = None
    """The cluster that commands use where `--on` is not given; this computer when left out.
    `rabaska use NAME` writes it."""
    launch: Literal["program", "torchrun", "srun", "mpi"] = "program"
    """How processes are started: `program` starts the command once, on the first node;
    `torchrun` starts one torchrun per node, with one worker per task; `srun` starts one process
    per task, with `RANK`, `LOCAL_RANK`, `WORLD_SIZE`, `MASTER_ADDR` and `MASTER_PORT` set; `mpi`
    starts one MPI process per task."""
    resume: Words = []
    """Words added to the command once there is a checkpoint."""
    data: dict[str, DataTable] = {}
    """Datasets."""
    environment: EnvironmentTable = EnvironmentTable()
    """How the program gets its Python on the cluster."""
    resources: ResourcesTable = ResourcesTable()
    """What one job requests from the cluster."""
    chain: ChainTable = ChainTable()
    """How many jobs may follow one another."""
    checkpoints: CheckpointsTable = CheckpointsTable()
    """What checkpoints are called."""
    output: OutputTable = OutputTable()
    """What else must outlive a job."""
    code: CodeTable = CodeTable()
    """Which code is sent."""
    progress: ProgressTable = ProgressTable()
    """How to read progress."""
    notify: NotifyTable = NotifyTable()
    """When somebody is told of a run."""
    search: SearchTable | None = None
    """What a search tries."""
    cluster: dict[str, ClusterTable] = {}
    """What differs on one cluster."""
