"""A cluster as its profile describes it, and what was observed on it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta


@dataclass(frozen=True)
class Partition:
    """A queue of the cluster: what its jobs may ask for. None or 0: not known, or no limit."""

    name: str
    walltime: timedelta | None = None
    nodes: int = 0
    cores: int = 0  # per node
    memory: int = 0  # bytes per node
    gpus: int = 0  # per node
    gpu_model: str = ""  # as the scheduler spells it
    default: bool = False
    gpu: str = ""  # as our table of GPUs spells it, where that is another spelling
    gpu_memory: int = 0  # bytes of each
    cores_per_gpu: int = 0  # that go with one GPU; more bills more, and waits longer
    memory_per_gpu: int = 0  # bytes that go with one GPU
    shortest: timedelta | None = None
    most_nodes: int = 0  # that one job may have
    gpu_counts: tuple[int, ...] = ()  # per node, where not every number may be asked for
    whole_nodes: bool = False
    on_request: bool = False  # one must apply to use it
    without_gpus: bool = False  # it has GPUs, and takes jobs that ask for none
    local: int = 0  # bytes of local disk of each node
    features: tuple[str, ...] = ()  # that its jobs must ask for
    native: tuple[str, ...] = ()  # options that its jobs need
    note: str = ""
    queue: str | None = None  # its name for the scheduler, where it has another; "": jobs name none
    closed: str = field(default="", compare=False)  # why no job starts there today

    @property
    def called(self) -> str:
        """What jobs call it; nothing where the site chooses queues by itself."""
        return self.name if self.queue is None else self.queue

    def takes(self, gpus: int) -> bool:
        """Whether it is for jobs that ask for as many GPUs, some or none."""
        return bool(self.gpus) == bool(gpus) or (self.without_gpus and not gpus)

    @property
    def kind(self) -> str:
        """Its GPU, as our table of GPUs spells it."""
        return self.gpu or self.gpu_model


@dataclass(frozen=True)
class Tier:
    """One kind of storage of a cluster; 0, None or "": not known."""

    name: str
    path: str = ""  # may hold shell variables
    size: int = 0  # bytes that one may keep
    files: int = 0  # that one may keep
    purge: str = ""  # when the site deletes what lies there
    backup: bool | None = None
    scope: str = ""  # whose quota it is: user, group, or node
    speed: str = ""
    on_nodes: str = ""  # written, read or absent


@dataclass(frozen=True)
class NodeDisk:
    """The own disk of a node; "" where that is not known."""

    size: int  # bytes
    path: str = ""
    host: str = ""  # where a job saw it; "": the profile says so

    def __str__(self) -> str:
        where = f"{self.path} on {self.host}" if self.path and self.host else self.path
        return where or "the nodes' own disk"


@dataclass(frozen=True)
class SiteDataset:
    """A dataset that the site keeps for its users; 0 or "": not known."""

    name: str
    path: str  # may hold shell variables
    about: str = ""
    layout: str = ""
    size: int = 0  # bytes
    files: int = 0
    nodes_only: bool = False  # whether it lies on the nodes' own disks


@dataclass(frozen=True)
class Cluster:
    """A place that runs jobs: how to reach it, how it schedules, where it stores."""

    name: str
    title: str
    scheduler: str  # a name in `schedulers`
    host: str = ""  # as ssh knows it; empty: this computer
    transfer_host: str = ""  # for large transfers, where the site has one
    ssh_options: tuple[str, ...] = ()
    store: str = ""  # where packs, runs and environments are kept; may hold shell variables
    share: str = "nobody"  # who else may read the store: nobody, or its "group"
    local_space: str = ""  # node-local storage, as a shell expression
    python: str = "python3"  # what runs the node side there
    modules: tuple[str, ...] = ()  # loaded before every environment
    wheelhouse: tuple[str, ...] = ()  # folders of wheels that the site keeps
    find_wheel: str = ""  # the site's command that looks for one
    disks: Mapping[str, NodeDisk] = field(default_factory=dict)  # of nodes, by queue, as jobs saw
    processor: str = ""  # of compute nodes, where wheels for x86-64 do not run
    internet: bool | None = None  # whether compute nodes reach it; None: not known
    accounts: tuple[str, ...] = ()  # that may pay for jobs
    partitions: tuple["Partition", ...] = ()
    tiers: Mapping[str, str] = field(default_factory=dict)  # other storage: its name → where
    storage: tuple["Tier", ...] = ()  # the same, with what the site promises about each
    striped: bool = False  # whether files are spread over servers, as on Lustre
    quota: str = ""  # the command that shows how much may still be stored
    gpus_as_gres: bool = False  # for Slurm older than `--gpus-per-node`
    mpi: str = ""  # "mpirun", or what `srun --mpi=` calls it; "" leaves it to the site
    native: tuple[str, ...] = ()  # scheduler options of every job, passed through untouched
    names_queue: bool = True  # false where the site wants to choose it by itself
    names_model: bool = False  # whether GPUs must be asked for by model
    names_cores: bool = True  # false where cores come with GPUs and may not be asked for
    account_form: str = ""  # what accounts look like, where a job must name one
    shortest: timedelta | None = None  # time limit that the site accepts
    usual: timedelta = timedelta(days=1)  # of the jobs of a long training
    most_jobs: int = 0  # of one user in the queue
    whole_nodes: bool = False
    inside_jobs: bool = True  # whether a job may submit another
    submit_from: str = ""  # the only place from which jobs are accepted
    interactive: str = ""  # how the site wants interactive jobs to be asked for
    forwarding: bool | None = None  # whether ssh may forward ports
    advice: tuple[str, ...] = ()  # before the first connection
    status: str = "live"  # live, retired or course
    retired: str = ""  # the day
    successors: tuple[str, ...] = ()  # profiles of what replaced it
    probe: tuple[str, ...] = ()  # keys that nobody has verified
    source: str = ""
    checked: str = ""
    notes: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    datasets: tuple["SiteDataset", ...] = ()  # that the site keeps for its users
    downloads: str = ""  # where addresses are downloaded: transfer, login or nowhere
    globus: str = ""  # the id of its Globus endpoint
    globus_root: str = ""  # the folder that the endpoint shows as its root

    @property
    def umask(self) -> str:
        """Of all that we do there, in the digits of the shell."""
        return "027" if self.share == "group" else "077"

    @property
    def is_here(self) -> bool:
        return not self.host

    @property
    def internet_is_unsure(self) -> bool:
        """Whether nobody knows if its nodes reach it: the profile is silent, or unsure."""
        return self.internet is None or "nodes.internet" in self.probe

    @property
    def store_tier(self) -> Tier | None:
        """The tier that the store lies in, as the profile spells both."""
        shared = [tier for tier in self.storage if tier.path and tier.scope != "node"]
        holding = [tier for tier in shared if self.store.startswith(tier.path)]
        return max(holding, key=lambda tier: len(tier.path), default=None)

    @property
    def retirement(self) -> str:
        """What to know of a cluster that is no longer there; nothing of one that is."""
        if self.status == "live":
            return ""
        day = f" on {self.retired}" if self.retired else ""
        gone = f"{self.title} was shut down{day}"
        if self.status == "course":
            gone = f"{self.title} existed only for its course"
        return f"{gone}; use {' or '.join(self.successors)}" if self.successors else gone

    def partition(self, name: str) -> Partition | None:
        """The queue that jobs call `name`, or the one they go to that name none."""
        chosen = [
            partition
            for partition in self.partitions
            if name and name in (partition.name, partition.called)
        ]
        usual = [partition for partition in self.partitions if partition.default and not name]
        return next(iter(chosen or usual), None)


_COMPARED_AS = {"jobs.account": "accounts"}


@dataclass(frozen=True)
class ProfileFact:
    """One key of a profile: what it says, what came of looking, and what the site says."""

    key: str
    says: str
    verdict: str  # ok, differs, cannot be told
    found: str = ""


@dataclass(frozen=True)
class SiteScheduler:
    """The scheduler of a site, and what it said of itself."""

    name: str = "local"
    version: str = ""  # as it says it itself
    partitions: tuple[Partition, ...] = ()
    accounts: tuple[str, ...] | None = None  # None: nobody could say
    limits: Mapping[str, str] = field(default_factory=dict)
    local_variables: tuple[str, ...] = ()  # by which its jobs know their own space on a node


@dataclass(frozen=True)
class Observations:
    """What was found when a cluster was last checked."""

    day: str
    facts: tuple[ProfileFact, ...] = ()
    partitions: tuple[Partition, ...] = ()  # as they are today
    accounts: tuple[str, ...] = ()
    wheelhouse: tuple[str, ...] = ()
    internet: bool | None = None  # None: nobody has tried

    def about(self, key: str) -> tuple[ProfileFact, ...]:
        """What was found out about a key, or about all below it; `*` stands for any name."""
        key = _COMPARED_AS.get(key, key.removesuffix(".path"))
        first, _, last = key.partition(".*")
        return tuple(
            fact
            for fact in self.facts
            if fact.key == key or (fact.key.startswith(f"{first}.") and fact.key.endswith(last))
        )


def updated(cluster: Cluster, observed: Observations | None) -> Cluster:
    """The cluster as it was seen, where its profile was silent or unsure."""
    if observed is None:
        return cluster
    unsure = set(cluster.probe)
    changes: dict[str, object] = {"partitions": _partitions(cluster, observed)}
    if observed.accounts and not cluster.accounts:
        changes["accounts"] = observed.accounts
    if observed.wheelhouse and (not cluster.wheelhouse or "software.wheelhouse" in unsure):
        changes["wheelhouse"] = observed.wheelhouse
    if observed.internet is not None and cluster.internet_is_unsure:
        changes["internet"] = observed.internet
    if any(fact.verdict == "differs" for fact in observed.about("jobs.gpus")):
        changes["gpus_as_gres"] = True  # its Slurm is too old for the other way
    return replace(cluster, **changes)  # type: ignore[arg-type]


def _partitions(cluster: Cluster, observed: Observations) -> tuple[Partition, ...]:
    """Limits change oftener than profiles; what the site does not tell stays as it was."""
    by_name = {partition.name: partition for partition in observed.partitions}
    if not cluster.partitions or not by_name:
        return cluster.partitions or observed.partitions
    return tuple(
        _renewed(partition, by_name[partition.called]) if partition.called in by_name else partition
        for partition in cluster.partitions
        # A table may tell of a kind of node, of whose name no queue is.
        if partition.called in by_name or partition.called != partition.name
    )


def _renewed(profile: Partition, observed: Partition) -> Partition:
    return replace(
        profile,
        walltime=observed.walltime or profile.walltime,
        nodes=observed.nodes or profile.nodes,
        cores=profile.cores or observed.cores,
        memory=profile.memory or observed.memory,
        gpus=profile.gpus or observed.gpus,
        gpu_model=profile.gpu_model or observed.gpu_model,
        without_gpus=profile.without_gpus or observed.without_gpus,
        closed=observed.closed,
    )
