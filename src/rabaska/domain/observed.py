"""What a cluster showed of itself, and its profile brought up to date by it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rabaska.domain.clusters import Cluster, Partition

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
