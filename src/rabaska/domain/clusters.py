"""A cluster: how to reach it, how it schedules, where it stores."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    gpu_model: str = ""
    default: bool = False


@dataclass(frozen=True)
class Cluster:
    name: str
    title: str
    scheduler: str  # a name in `schedulers`
    host: str = ""  # as ssh knows it; empty: this computer
    transfer_host: str = ""  # for large transfers, where the site has one
    ssh_options: tuple[str, ...] = ()
    store: str = ""  # where packs, runs and environments are kept; may hold shell variables
    local_space: str = ""  # node-local storage, as a shell expression
    python: str = "python3"  # what runs the node side there
    modules: tuple[str, ...] = ()  # loaded before every environment
    wheelhouse: tuple[str, ...] = ()  # folders of wheels that the site keeps
    internet: bool | None = None  # whether compute nodes reach it; None: not known
    accounts: tuple[str, ...] = ()  # that may pay for jobs
    partitions: tuple["Partition", ...] = ()
    tiers: Mapping[str, str] = field(default_factory=dict)  # other storage: its name → where
    quota: str = ""  # the command that shows how much may still be stored
    gpus_as_gres: bool = False  # for Slurm older than `--gpus-per-node`
    mpi: str = ""  # "mpirun", or what `srun --mpi=` calls it; "" leaves it to the site
    native: tuple[str, ...] = ()  # scheduler options of every job, passed through untouched
    source: str = ""
    checked: str = ""
    notes: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_here(self) -> bool:
        return not self.host
