"""Clusters as people see them: a row each, a profile, and a profile compared with its cluster."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import TYPE_CHECKING

from rabaska.domain.amounts import say_duration, say_size
from rabaska.views.words import counted

if TYPE_CHECKING:
    from rabaska.domain.clusters import (
        Cluster,
        Observations,
        Partition,
        ProfileFact,
        SiteDataset,
        Tier,
    )
    from rabaska.journeys.clusters import Added

# The headings of the fields of each kind of row, in their order.
CLUSTER_HEADINGS = ("cluster", "scheduler", "host", "")
QUEUE_HEADINGS = ("queue", "limit", "nodes", "cores", "memory", "GPUs", "with one GPU", "")
TIER_HEADINGS = ("tier", "where", "size", "files", "purged", "backup")
DATASET_HEADINGS = ("dataset", "where", "size", "files", "what it is")
COMPARISON_HEADINGS = ("", "key", "profile", "cluster")

_IN_TABLES = (
    "partitions",
    "storage",
    "tiers",
    "probe",
    "datasets",
)  # shown apart from the other keys
_TONES = {"ok": "good", "differs": "bad"}
_VERDICTS = {"cannot be told": "not checked"}


@dataclass(frozen=True)
class ClusterRow:
    """A cluster in the list of clusters."""

    name: str
    scheduler: str
    host: str
    title: str


@dataclass(frozen=True)
class QueueRow:
    """A queue of a cluster, with its limits."""

    name: str  # with a star: the default
    limit: str
    nodes: str
    cores: str
    memory: str
    gpus: str
    per_gpu: str
    note: str


@dataclass(frozen=True)
class TierRow:
    """A place to store files on a cluster."""

    name: str
    path: str
    size: str
    files: str
    purged: str
    backup: str


@dataclass(frozen=True)
class SiteDatasetRow:
    """A dataset that a site keeps for its users."""

    name: str  # as `at` spells it
    path: str
    size: str
    files: str
    about: str


@dataclass(frozen=True)
class ComparisonRow:
    """A key of a profile, compared with the cluster."""

    verdict: str
    tone: str
    key: str
    profile: str
    cluster: str


@dataclass(frozen=True)
class ProfileView:
    """A cluster's profile, and what was found when it was compared with the cluster."""

    facts: tuple[tuple[str, str], ...]
    queues: tuple[QueueRow, ...]
    storage: tuple[TierRow, ...]
    datasets: tuple[SiteDatasetRow, ...]
    checked: tuple[str, ...]


def cluster_row(cluster: "Cluster") -> ClusterRow:
    host = cluster.host or "this computer"
    return ClusterRow(cluster.name, cluster.scheduler, host, cluster.title)


def profile_view(cluster: "Cluster", observed: "Observations | None") -> ProfileView:
    keys = [field.name for field in fields(cluster) if field.name not in _IN_TABLES]
    return ProfileView(
        facts=tuple((key, line) for key in keys for line in _lines(getattr(cluster, key))),
        queues=tuple(_queue_row(partition) for partition in cluster.partitions),
        storage=tuple(tier_row(tier) for tier in cluster.storage),
        datasets=tuple(site_dataset_row(dataset) for dataset in cluster.datasets),
        checked=tuple(_checked(cluster, observed)),
    )


def tier_row(tier: "Tier") -> TierRow:
    return TierRow(
        name=tier.name,
        path=tier.path,
        size=say_size(tier.size) if tier.size else "",
        files=f"{tier.files:,}" if tier.files else "",
        purged=tier.purge,
        backup={True: "yes", False: "no", None: ""}[tier.backup],
    )


def site_dataset_row(dataset: "SiteDataset") -> SiteDatasetRow:
    where = f"{dataset.path} on each node" if dataset.nodes_only else dataset.path
    return SiteDatasetRow(
        name=f"site:{dataset.name}",
        path=where,
        size=say_size(dataset.size) if dataset.size else "",
        files=f"{dataset.files:,}" if dataset.files else "",
        about="; ".join(text for text in (dataset.about, dataset.layout) if text),
    )


def comparison_rows(facts: "Sequence[ProfileFact]") -> tuple[ComparisonRow, ...]:
    return tuple(
        ComparisonRow(
            _verdict(fact), _TONES.get(fact.verdict, "caution"), fact.key, fact.says, fact.found
        )
        for fact in facts
    )


def added_facts(added: "Added") -> dict[str, str]:
    """What a new profile was written from; what is empty is left out."""
    site = added.site
    gpus = {f"{part.gpus} x {part.gpu_model or 'a GPU'}" for part in site.partitions if part.gpus}
    untested = "not tested; the first run tests it, or `--probe` now"
    facts = {
        "scheduler": f"{site.scheduler} ({site.version})" if site.version else site.scheduler,
        "partitions": ", ".join(partition.name for partition in site.partitions),
        "GPUs per node": ", ".join(sorted(gpus)),
        "accounts": ", ".join(site.accounts or ()),
        "Python": ", ".join(f"{name} ({version})" for name, version in site.pythons.items()),
        "modules": f"{len(site.modules)} found" if site.modules else "",
        "wheelhouse": ", ".join(site.wheelhouse),
        "storage": ", ".join(f"{name}={path}" for name, path in site.variables.items()),
        "internet on nodes": {True: "yes", False: "no", None: untested}[site.internet],
    }
    return {label: text for label, text in facts.items() if text}


def _lines(value: object) -> list[str]:
    """One line, or one for each sentence; none for what is not known."""
    if isinstance(value, Mapping):
        return [", ".join(f"{name}={item}" for name, item in value.items())] if value else []
    if isinstance(value, tuple):
        sentences = any(" " in item for item in value)
        return list(value) if sentences or not value else [", ".join(value)]
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, timedelta):
        return [say_duration(value)]
    return [str(value)] if value else []


def _queue_row(partition: "Partition") -> QueueRow:
    per_gpu = [counted(partition.cores_per_gpu, "core")] if partition.cores_per_gpu else []
    per_gpu += [say_size(partition.memory_per_gpu)] if partition.memory_per_gpu else []
    return QueueRow(
        name=f"{partition.name}*" if partition.default else partition.name,
        limit=say_duration(partition.walltime) if partition.walltime else "",
        nodes=str(partition.nodes or ""),
        cores=str(partition.cores or ""),
        memory=say_size(partition.memory) if partition.memory else "",
        gpus=f"{partition.gpus} {partition.kind}".strip() if partition.gpus else "",
        per_gpu=", ".join(per_gpu),
        note=partition.note,
    )


def _checked(cluster: "Cluster", observed: "Observations | None") -> Iterator[str]:
    """What differed when the cluster was checked, and what the profile leaves unverified."""
    if observed:
        yield f"checked on {observed.day}: {counted(len(observed.facts), 'fact')} compared"
        for fact in observed.facts:
            if fact.verdict == "differs":
                profile = fact.says or "nothing"
                yield f"  {fact.key}: the profile says {profile}, the cluster says: {fact.found}"
    for key in cluster.probe:
        facts = observed.about(key) if observed else ()
        results = {f"{_verdict(fact)}: {fact.found or fact.says}" for fact in facts}
        yield f"unverified: {key} ({'; '.join(sorted(results)) or 'not checked yet'})"


def _verdict(fact: "ProfileFact") -> str:
    return _VERDICTS.get(fact.verdict, fact.verdict)
