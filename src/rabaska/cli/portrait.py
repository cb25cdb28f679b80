"""How a cluster's profile reads: its facts, its queues and storage as tables, and what was seen."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import timedelta
from typing import TYPE_CHECKING

from rabaska.cli import show
from rabaska.cli.columns import columns
from rabaska.cli.counsel import TIERS, tier_row
from rabaska.domain.amounts import say_duration, say_size

if TYPE_CHECKING:
    from rabaska.domain.clusters import Cluster, Partition
    from rabaska.domain.seen import Seen

_QUEUES = ("queue", "limit", "nodes", "cores", "memory", "GPUs", "with one GPU", "")
_RIGHT = ("nodes", "cores", "memory")
_APART = ("partitions", "storage", "tiers", "probe")  # told in a table of their own


def cluster(told: "Cluster", seen: "Seen | None") -> None:
    names = [each.name for each in fields(told) if each.name not in _APART]
    lines = [(name, line) for name in names for line in _lines(getattr(told, name))]
    show.data("\n".join(columns(lines, ("", ""))[1:]))
    if told.partitions:
        show.data("\n" + "\n".join(columns(map(_queue, told.partitions), _QUEUES, right=_RIGHT)))
    if told.storage:
        rows = map(tier_row, told.storage)
        show.data("\n" + "\n".join(columns(rows, TIERS, right=("size", "files"))))
    for line in _verified(told, seen):
        show.data(line)


def _lines(value: object) -> list[str]:
    """One line, or one for each sentence; none for what is not known."""
    if isinstance(value, Mapping):
        return [", ".join(f"{name}={each}" for name, each in value.items())] if value else []
    if isinstance(value, tuple):
        sentences = any(" " in each for each in value)
        return list(value) if sentences or not value else [", ".join(value)]
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, timedelta):
        return [say_duration(value)]
    return [str(value)] if value else []


def _queue(each: "Partition") -> tuple[object, ...]:
    bundle = [f"{each.cores_per_gpu} cores"] if each.cores_per_gpu else []
    bundle += [say_size(each.memory_per_gpu)] if each.memory_per_gpu else []
    return (
        f"{each.name}*" if each.default else each.name,
        say_duration(each.walltime) if each.walltime else "",
        each.nodes or "", each.cores or "", say_size(each.memory) if each.memory else "",
        f"{each.gpus} {each.kind}".strip() if each.gpus else "", ", ".join(bundle), each.note,
    )  # fmt: skip


def _verified(told: "Cluster", seen: "Seen | None") -> Iterator[str]:
    """What nobody had verified when the profile was written, and what came of looking."""
    if seen:
        differing = [fact for fact in seen.facts if fact.verdict == "differs"]
        yield f"\nlooked at on {seen.day}: {len(seen.facts)} facts compared"
        for fact in differing:
            says = fact.says or "nothing"
            yield f"  {fact.key}: the profile says {says}, the cluster says: {fact.found}"
    for key in told.probe:
        found = seen.about(key) if seen else ()
        known = {f"{fact.verdict}: {fact.found or fact.says}" for fact in found}
        yield f"unverified: {key} ({'; '.join(sorted(known)) or 'nobody has looked yet'})"
