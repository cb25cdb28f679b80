"""The facts of the site the lab plays, SDumont, and what may vary from lab to lab."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Node:
    name: str
    gpu: str
    gpus: int
    cores: int
    memory: int  # MiB


@dataclass(frozen=True)
class Partition:
    name: str
    nodes: tuple[str, ...]
    walltime: str  # as Slurm writes it
    options: str = ""


@dataclass(frozen=True)
class Storage:
    """A place for files; an empty size means the machine's own disk, without a limit."""

    size: str = ""  # as tmpfs writes it, "64m"
    files: int = 0  # how many files and folders fit; 0 means no limit

    @property
    def mount_options(self) -> str:
        """Options for a tmpfs with these limits, or "" when a folder on disk will do."""
        limits = []
        if self.size:
            limits.append(f"size={self.size}")
        if self.files:
            limits.append(f"nr_inodes={self.files}")
        return ",".join(limits)


# Two kinds of thin node, the node for artificial intelligence and a Sequana node,
# with the cores and cards of the real ones.
NODES = (
    Node("sdumont3170", "k40", 2, 24, 64_000),
    Node("sdumont3171", "k40", 2, 24, 64_000),
    Node("sdumont4000", "v100", 8, 40, 384_000),
    Node("sdumont8000", "v100", 4, 48, 384_000),
)

THIN = ("sdumont3170", "sdumont3171")
KEPT = "PreemptMode=OFF"  # jobs of the site's own partitions never make way for others

PARTITIONS = (
    Partition("nvidia_dev", THIN, "00:20:00", f"Default=YES MaxNodes=2 {KEPT}"),
    Partition("nvidia", THIN, "2-00:00:00", KEPT),
    Partition("nvidia_small", THIN, "01:00:00", KEPT),
    Partition("nvidia_scal", THIN, "18:00:00", KEPT),
    Partition("nvidia_long", THIN, "31-00:00:00", KEPT),
    Partition("het_scal", THIN, "18:00:00", KEPT),
    Partition("gdl", ("sdumont4000",), "2-00:00:00", KEPT),
    Partition("sequana_gpu_shared", ("sdumont8000",), "4-00:00:00", KEPT),
    # SDumont has no such pair; the lab adds it so that preemption can be tested.
    Partition(
        "spare", ("sdumont8000",), "4-00:00:00", "PriorityTier=1 PreemptMode=REQUEUE GraceTime=1"
    ),
    Partition("urgent", ("sdumont8000",), "4-00:00:00", f"PriorityTier=9 {KEPT}"),
)


@dataclass(frozen=True)
class Site:
    """What one lab is made of; every default is what most tests want."""

    nodes: tuple[Node, ...] = NODES
    partitions: tuple[Partition, ...] = PARTITIONS
    user: str = "alice"
    others: tuple[str, ...] = ()  # more users, who have a home and nothing else
    project: str = "proj"
    local: Storage = Storage(size="512m")  # node-local disk, one for each node
    shared: Storage = Storage()
    home: Storage = Storage()
    warp: int = 1  # the controller's clock runs this many times too fast
    accounting: bool = False  # slurmdbd and MariaDB, for `sacct` and accounts that are enforced
    without: tuple[str, ...] = ()  # programs this site does not have, such as rsync
    banner: str = ""  # what every shell prints, asked or not

    def node(self, name: str) -> Node:
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(f"no node {name}; there are {', '.join(n.name for n in self.nodes)}")

    def address(self, name: str) -> str:
        """The address of a host in the lab's own network.

        It is the same in every lab: the network is in a namespace, so two labs never meet.
        """
        return f"10.77.0.{self.hosts.index(name) + 1}"

    @property
    def hosts(self) -> tuple[str, ...]:
        return ("control", "login1", *(node.name for node in self.nodes))
