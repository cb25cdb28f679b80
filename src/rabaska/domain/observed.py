"""What a cluster showed of itself, and its profile brought up to date by it."""

from dataclasses import dataclass, replace

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
            each
            for each in self.facts
            if each.key == key or (each.key.startswith(f"{first}.") and each.key.endswith(last))
        )


def updated(cluster: Cluster, seen: Observations | None) -> Cluster:
    """The cluster as it was seen, where its profile was silent or unsure."""
    if seen is None:
        return cluster
    unsure = set(cluster.probe)
    found: dict[str, object] = {"partitions": _partitions(cluster, seen)}
    if seen.accounts and not cluster.accounts:
        found["accounts"] = seen.accounts
    if seen.wheelhouse and (not cluster.wheelhouse or "software.wheelhouse" in unsure):
        found["wheelhouse"] = seen.wheelhouse
    if seen.internet is not None and cluster.wonders_about_internet:
        found["internet"] = seen.internet
    if any(fact.verdict == "differs" for fact in seen.about("jobs.gpus")):
        found["gpus_as_gres"] = True  # its Slurm is too old for the other way
    return replace(cluster, **found)  # type: ignore[arg-type]


def _partitions(cluster: Cluster, seen: Observations) -> tuple[Partition, ...]:
    """Limits change oftener than profiles; what the site does not tell stays as it was."""
    there = {each.name: each for each in seen.partitions}
    if not cluster.partitions or not there:
        return cluster.partitions or seen.partitions
    return tuple(
        _renewed(each, there[each.called]) if each.called in there else each
        for each in cluster.partitions
        # A table may tell of a kind of node, of whose name no queue is.
        if each.called in there or each.called != each.name
    )


def _renewed(known: Partition, found: Partition) -> Partition:
    return replace(
        known,
        walltime=found.walltime or known.walltime,
        nodes=found.nodes or known.nodes,
        cores=known.cores or found.cores,
        memory=known.memory or found.memory,
        gpus=known.gpus or found.gpus,
        gpu_model=known.gpu_model or found.gpu_model,
        without_gpus=known.without_gpus or found.without_gpus,
        closed=found.closed,
    )
