"""The tables and keys of a cluster profile: the one place that says what may be written there."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from rabaska.settings.project_tables import Table
from rabaska.settings.validation import Duration, Line, Size, Trimmed, Variables


class ReachTable(Table):
    """How to connect."""

    host: Trimmed = ""
    """The name that `ssh` knows the cluster by; empty for this computer."""
    transfer: Trimmed = ""
    """The host for large transfers, where the site has one."""
    options: list[Line] = Field(default_factory=list)
    """Options for ssh besides those in ~/.ssh/config, such as `-F` and another file."""
    forwarding: bool | None = None
    """Whether ssh may forward ports there; leave it out if that is not known."""
    advice: list[Line] = Field(default_factory=list)
    """What to know before the first connection: a VPN, a second factor, a bastion."""
    downloads: Literal["transfer", "login", "nowhere", ""] = ""
    """Where datasets with a `url` are downloaded: on the `transfer` host, on the `login` node, or
    `nowhere`, so that this computer downloads and sends them; left out: `transfer` where there is
    such a host, else `login`."""
    globus: Line = ""
    """The id of the site's Globus endpoint (collection)."""
    globus_root: Line = ""
    """The folder that the endpoint shows as its `/`; left out: the cluster's own `/`."""


class TierTable(Table):
    """One kind of storage, and what the site promises about it."""

    path: Line = ""
    """Where it is, as the cluster sets it; `{account}` and `{project}` are for you to fill in."""
    size: Size | None = None
    """How much one user or group may store."""
    files: Annotated[int, Field(ge=0)] = 0
    """How many files one user or group may store; 0 if no such limit is known."""
    purge: Line = ""
    """When the site deletes files there."""
    backup: bool | None = None
    """Whether the site makes backups."""
    scope: Literal["user", "group", "node", ""] = ""
    """Whose quota it is; `node` storage is deleted with the job."""
    speed: Line = ""
    """How fast it is, in the site's own words."""
    on_nodes: Literal["written", "read", "absent", ""] = ""
    """What compute nodes may do with it; left out: write."""


def _as_table(value: object) -> object:
    """A path alone says less, and is enough."""
    return {"path": value} if isinstance(value, str) else value


Tier = Annotated[TierTable, BeforeValidator(_as_table)]


class SiteDatasetTable(Table):
    """A dataset that the site keeps for its users."""

    path: Line
    """Where it is; may hold shell variables, as the cluster sets them."""
    about: Line = ""
    """What it is."""
    layout: Line = ""
    """How it is laid out: `train/<class>/*.JPEG`, tar shards, an LMDB."""
    size: Size | None = None
    """How large it is."""
    files: Annotated[int, Field(ge=0)] = 0
    """How many files it has; 0 if that is not known."""
    nodes_only: bool = False
    """Whether it is on the compute nodes' own disks, where a login node does not see it."""


class StorageTable(Table):
    """Where files are stored. Paths may hold shell variables, as the cluster sets them."""

    store: Trimmed = ""
    """Where packs, runs and environments are stored; rabaska's own folder when left out."""
    share: Literal["nobody", "group"] = "nobody"
    """Who else may read the store: `nobody`, or the `group` of its folder, so that colleagues see
    runs and results. Secrets are never shared."""
    local: Trimmed = ""
    """Node-local space inside a job; the scheduler's own when left out."""
    tiers: dict[str, Tier] = Field(default_factory=dict)
    """Other storage that users have: `project = "$PROJECT"`, or a table of facts about it."""
    quota: Trimmed = ""
    """The site's command that shows your quota."""
    striped: bool = False
    """Whether files are spread over servers with `lfs setstripe`, as on Lustre."""


class SoftwareTable(Table):
    """What environments are built from there."""

    modules: list[Line] = Field(default_factory=list)
    """Environment modules to load before every environment."""
    wheelhouse: list[Line] = Field(default_factory=list)
    """Folders of wheels that the site has for `pip install --no-index`."""
    find: Trimmed = ""
    """The site's command that finds a wheel there."""


class NodesTable(Table):
    """What compute nodes can do."""

    internet: bool | None = None
    """Whether they have internet access; leave it out if that is not known."""
    processor: Line = ""
    """Their processor, if wheels for x86-64 do not run there: `aarch64`, `ppc64le`."""


class JobsTable(Table):
    """How jobs are requested there."""

    gpus: Literal["gpus-per-node", "gres"] = "gpus-per-node"
    """Slurm's option for GPUs; `gres` is understood by the oldest versions too."""
    mpi: Line = ""
    """What starts MPI programs: `mpirun`, or the name that `srun --mpi=` knows, such as `pmix`;
    the site's own choice of the latter when left out."""
    native: list[Line] = Field(default_factory=list)
    """Options passed to the scheduler unchanged, for every job."""
    names_queue: bool = True
    """Whether jobs name a queue; false where the site chooses it."""
    names_model: bool = False
    """Whether the site refuses a job that requests GPUs without naming a model."""
    names_cores: bool = True
    """Whether jobs request cores; false where cores come with each GPU."""
    account: Line = ""
    """What accounts look like, as a regular expression, where a job must name one."""
    shortest: Duration | None = None
    """The shortest time limit that the site accepts."""
    usual: Duration = timedelta(days=1)
    """How long jobs of a long training should be: `rabaska plan` proposes a chain of them, as short
    jobs start sooner. A day when left out; set it to the longest limit where long jobs start as
    soon."""
    most: Annotated[int, Field(ge=0)] = 0
    """How many jobs one user may have in the queue, each job of a chain counted."""
    whole_nodes: bool = False
    """Whether jobs get whole nodes only."""
    inside_jobs: bool = True
    """Whether a job may submit another one."""
    submit_from: Line = ""
    """The only place from which the site accepts jobs."""
    interactive: Line = ""
    """How the site wants interactive jobs to be requested."""


class PartitionTable(Table):
    """A queue, or a kind of node where the site chooses the queue, and what a job may ask of it."""

    queue: Line | None = None
    """Its name in the scheduler, if the table has another; empty: jobs do not name it."""

    walltime: Duration | None = None
    """The longest that one job may take; no limit when left out."""
    nodes: Annotated[int, Field(ge=0)] = 0
    """Nodes in it."""
    cores: Annotated[int, Field(ge=0)] = 0
    """CPU cores of each node."""
    memory: Size | None = None
    """Memory of each node."""
    gpus: Annotated[int, Field(ge=0)] = 0
    """GPUs of each node."""
    gpu_model: Line = ""
    """The GPU model, as the scheduler spells it."""
    gpu: Line = ""
    """The GPU model in rabaska's table of GPUs, if the scheduler spells it differently."""
    gpu_memory: Size | None = None
    """Memory of each GPU."""
    cores_per_gpu: Annotated[int, Field(ge=0)] = 0
    """The cores that go with one GPU: a request for more costs more, and waits longer."""
    memory_per_gpu: Size | None = None
    """The memory that goes with one GPU."""
    shortest: Duration | None = None
    """The shortest time limit that it accepts."""
    most_nodes: Annotated[int, Field(ge=0)] = 0
    """Nodes that one job may have."""
    gpu_counts: list[int] = Field(default_factory=list)
    """The numbers of GPUs per node that jobs may request, if not all are allowed."""
    whole_nodes: bool = False
    """Whether its jobs get whole nodes only."""
    on_request: bool = False
    """Whether users must apply for access."""
    without_gpus: bool = False
    """Whether it accepts jobs without GPUs, as queues of PBS and Grid Engine do."""
    local: Size | None = None
    """Local disk of each node."""
    features: list[Line] = Field(default_factory=list)
    """Node features that its jobs must request."""
    native: list[Line] = Field(default_factory=list)
    """Options that its jobs need, such as `--qos=regular`."""
    note: Line = ""
    """What else users should know."""
    default: bool = False
    """Whether it is the default queue."""


class Profile(Table):
    """All of a cluster profile."""

    title: Line
    """The cluster's full name."""
    scheduler: Trimmed
    """The scheduler that runs there."""
    python: Trimmed = "python3"
    """The Python, 3.6 or newer, that runs rabaska's own part there."""
    status: Literal["live", "retired", "course"] = "live"
    """Whether it still exists; a `course` cluster is short-lived, and its profile a template."""
    retired: Line = ""
    """The day on which it was shut down."""
    successor: list[Line] = Field(default_factory=list)
    """The profiles of the clusters that replaced it."""
    source: Line = ""
    """Where these facts were found."""
    probe: list[Line] = Field(default_factory=list)
    """Keys of this file that are not verified: `clusters check` asks the site itself."""
    checked: Line = ""
    """The day on which these facts were checked."""
    notes: list[Line] = Field(default_factory=list)
    """What a new user should know."""
    reach: ReachTable = ReachTable()
    """How to connect."""
    storage: StorageTable = StorageTable()
    """Where files are stored."""
    accounts: list[Line] = Field(default_factory=list)
    """The accounts that may pay for your jobs."""
    software: SoftwareTable = SoftwareTable()
    """What environments are built from there."""
    nodes: NodesTable = NodesTable()
    """What compute nodes can do."""
    jobs: JobsTable = JobsTable()
    """How jobs are requested there."""
    partitions: dict[str, PartitionTable] = Field(default_factory=dict)
    """The queues."""
    variables: Variables = Field(default_factory=dict)
    """Variables that every program needs there."""
    datasets: dict[str, SiteDatasetTable] = Field(default_factory=dict)
    """Datasets that the site keeps for its users: `at = "site:NAME"` uses one."""
