"""Cluster profiles: one TOML file of facts for each place, the user's before the built-in."""

from importlib import resources
from pathlib import Path as File
from typing import Annotated, Literal

from pydantic import Field

from rabaska.domain.clusters import Cluster, Partition
from rabaska.errors import SettingsError
from rabaska.settings import document
from rabaska.settings.checking import checked
from rabaska.settings.mistakes import nearest, refusal
from rabaska.settings.model import Table
from rabaska.settings.values import Duration, Line, Size, Variable


class ReachTable(Table):
    """How to get there."""

    host: Line = ""
    """The name that `ssh` knows the cluster by; empty for this computer."""
    transfer: Line = ""
    """The host for large transfers, where the site has one."""
    options: list[Line] = Field(default_factory=list)
    """Options for ssh beside those of ~/.ssh/config, such as `-F` and another file."""


class StorageTable(Table):
    """Where things are kept. Paths may hold shell variables, as the cluster sets them."""

    store: Line = ""
    """Where packs, runs and environments are kept; rabaska's own folder when left out."""
    local: Line = ""
    """Node-local space inside a job; the scheduler's own when left out."""
    tiers: dict[str, Line] = Field(default_factory=dict)
    """Other storage that users have, such as `project = "$PROJECT"`."""
    quota: Line = ""
    """The site's command that shows how much you may still store."""


class SoftwareTable(Table):
    """What environments are made of there."""

    modules: list[Line] = Field(default_factory=list)
    """Environment modules to load before every environment."""
    wheelhouse: list[Line] = Field(default_factory=list)
    """Folders of wheels that the site keeps for `pip install --no-index`."""


class NodesTable(Table):
    """What compute nodes can do."""

    internet: bool | None = None
    """Whether they reach the internet; left out where nobody has tried."""


class JobsTable(Table):
    """How jobs are asked for there."""

    gpus: Literal["gpus-per-node", "gres"] = "gpus-per-node"
    """Slurm's option for GPUs; `gres` is understood by the oldest versions too."""
    mpi: Line = ""
    """What starts MPI programs: `mpirun`, or the name that `srun --mpi=` knows, such as `pmix`;
    the site's own choice of the latter when left out."""
    native: list[Line] = Field(default_factory=list)
    """Options passed to the scheduler untouched, for every job."""


class PartitionTable(Table):
    """A queue, and what one of its jobs may ask for."""

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
    """Which GPU, as the scheduler spells it."""
    default: bool = False
    """Whether jobs go there that name no other."""


class Profile(Table):
    """All of a cluster profile."""

    title: Line
    """The cluster as people call it."""
    scheduler: Line
    """The scheduler that runs there."""
    python: Line = "python3"
    """What runs rabaska's own part there: Python 3.6 or newer."""
    source: Line = ""
    """Where these facts were found."""
    checked: Line = ""
    """The day on which they were."""
    notes: list[Line] = Field(default_factory=list)
    """What a newcomer should know."""
    reach: ReachTable = ReachTable()
    """How to get there."""
    storage: StorageTable = StorageTable()
    """Where things are kept."""
    accounts: list[Line] = Field(default_factory=list)
    """The accounts that may pay for your jobs."""
    software: SoftwareTable = SoftwareTable()
    """What environments are made of there."""
    nodes: NodesTable = NodesTable()
    """What compute nodes can do."""
    jobs: JobsTable = JobsTable()
    """How jobs are asked for there."""
    partitions: dict[str, PartitionTable] = Field(default_factory=dict)
    """The queues that were found."""
    variables: dict[str, Variable] = Field(default_factory=dict)
    """Variables that every program needs there."""


def load_cluster(name: str, *, user_profiles: File | None = None) -> Cluster:
    """The cluster called `name`; SettingsError when no profile has that name or it is wrong."""
    files = _files(user_profiles)
    if name not in files:
        known = ", ".join(f"`{each}`" for each in files)
        raise SettingsError(
            f"unknown cluster `{name}`", hint=nearest(name, files) or f"known are {known}"
        )
    file = files[name]
    shown = str(file) if file.parent == user_profiles else f"the built-in {file.name}"
    written = document.read(file, shown)
    profile, mistakes = checked(Profile, written.values)
    if profile is None or mistakes:
        raise refusal(mistakes, written)
    return _cluster(name, profile)


def names(user_profiles: File | None = None) -> tuple[str, ...]:
    """Every cluster that has a profile, this computer first."""
    return tuple(_files(user_profiles))


def _files(user_profiles: File | None) -> dict[str, File]:
    with resources.as_file(resources.files("rabaska.settings") / "profiles") as built_in:
        found = {file.stem: file for file in built_in.glob("*.toml")}
    if user_profiles and user_profiles.is_dir():
        found |= {file.stem: file for file in user_profiles.glob("*.toml")}
    return {name: found[name] for name in sorted(found, key=lambda name: (name != "here", name))}


def _cluster(name: str, profile: Profile) -> Cluster:
    return Cluster(
        name=name,
        title=profile.title,
        scheduler=profile.scheduler,
        host=profile.reach.host,
        transfer_host=profile.reach.transfer,
        ssh_options=tuple(profile.reach.options),
        store=profile.storage.store,
        local_space=profile.storage.local,
        tiers=dict(profile.storage.tiers),
        quota=profile.storage.quota,
        python=profile.python,
        modules=tuple(profile.software.modules),
        wheelhouse=tuple(profile.software.wheelhouse),
        internet=profile.nodes.internet,
        gpus_as_gres=profile.jobs.gpus == "gres",
        mpi=profile.jobs.mpi,
        native=tuple(profile.jobs.native),
        accounts=tuple(profile.accounts),
        partitions=tuple(_partition(name, table) for name, table in profile.partitions.items()),
        source=profile.source,
        checked=profile.checked,
        notes=tuple(profile.notes),
        variables=dict(profile.variables),
    )


def _partition(name: str, table: PartitionTable) -> Partition:
    return Partition(
        name=name,
        walltime=table.walltime,
        nodes=table.nodes,
        cores=table.cores,
        memory=table.memory or 0,
        gpus=table.gpus,
        gpu_model=table.gpu_model,
        default=table.default,
    )
