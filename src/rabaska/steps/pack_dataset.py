"""Pack datasets of a project on this computer, and say what came of it.

`rabaska pack` waits for whatever is imported here, so it is little.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rabaska.domain.amounts import say_count, say_size
from rabaska.node import files
from rabaska.packing.dataset_sources import pack_origin
from rabaska.packing.make_pack import Pack, PackOptions, Progress
from rabaska.packing.shrinking import compression_pays, shrinks_to

if TYPE_CHECKING:
    from rabaska.domain.projects import Project
    from rabaska.packing.shard_borders import Samples
    from rabaska.packing.shrink_pictures import Shrunk
    from rabaska.records.home import Home
    from rabaska.steps.progress import Reporter

_WORTH_REPORTING = 10**7  # bytes; what is smaller travels in no time, compressed or not


class Packable(Protocol):
    """What packing needs to know of a dataset."""

    @property
    def name(self) -> str: ...
    @property
    def paths(self) -> tuple[Path, ...]: ...
    @property
    def follow_links(self) -> bool: ...
    @property
    def samples(self) -> bool: ...
    @property
    def largest_side(self) -> int: ...


def pack_datasets(project: "Project", home: "Home", reporter: "Reporter") -> tuple[Pack, ...]:
    """Those that are on this computer."""
    return pack_all([dataset for dataset in project.datasets if dataset.paths], home, reporter)


def pack_all(datasets: Sequence[Packable], home: "Home", reporter: "Reporter") -> tuple[Pack, ...]:
    """Pack them one after the other; what is remembered of them is written at the end."""
    later: list[Callable[[], None]] = []
    try:
        return tuple(pack_dataset(each, home, reporter, later.append) for each in datasets)
    finally:
        for remember in later:
            remember()


def _at_once(remember: Callable[[], None]) -> None:
    remember()


def pack_dataset(
    dataset: Packable,
    home: "Home",
    reporter: "Reporter",
    afterwards: Callable[[Callable[[], None]], None] = _at_once,
) -> Pack:
    options = PackOptions(
        dataset.name,
        follow_links=dataset.follow_links,
        progress=_progress(f"packing {dataset.name}", reporter),
        samples=dataset.samples,
        afterwards=afterwards,
    )
    packed, shrunk = _packed(dataset, home, options)
    if not files.is_still_there(str(packed.folder)):  # cleaned away since it was found
        packed, shrunk = _packed(dataset, home, options)
    if packed.damaged:
        reporter.warn(f"pack {packed.identity} was damaged; packed again")
    did = "packed" if packed.new else "unchanged since it was packed"
    reporter.step(
        f"data {dataset.name}: {say_count(packed.files, 'file')}, {say_size(packed.bytes)}, {did} "
        f"as {packed.identity} ({packed.shards} shard{'s' if packed.shards != 1 else ''})"
    )
    if packed.new and packed.bytes >= _WORTH_REPORTING:
        reporter.step(f"  {_compression(shrinks_to(str(packed.folder)))}")
    if packed.stripes:
        reporter.step(f"  Lustre spreads each shard over {packed.stripes} servers")
    if packed.samples:
        _report_samples(packed.samples, reporter)
    if shrunk:
        _report_shrunk(shrunk, dataset.largest_side, reporter)
    return packed


def _packed(dataset: Packable, home: "Home", options: PackOptions) -> "tuple[Pack, Shrunk | None]":
    store = home.store / "packs"
    if not dataset.largest_side:
        return pack_origin(dataset.paths, store, options), None
    from rabaska.packing.shrink_pictures import pack_shrunk

    # The copies are gone afterwards, so what is remembered of them is written at once.
    return pack_shrunk(
        dataset.paths, store, replace(options, afterwards=_at_once), dataset.largest_side
    )


def _progress(what: str, reporter: "Reporter") -> Callable[[Progress], None]:
    begun = time.monotonic()

    def report(done: Progress) -> None:
        rate = done.files / max(time.monotonic() - begun, 1e-3)
        reporter.moved(what, done.bytes, done.total_bytes, aside=f"{rate:,.0f} files/s")

    return report


def _compression(part: float) -> str:
    if compression_pays(part):
        return f"shrinks to {part:.0%}, so it is compressed on its way to a cluster"
    return f"does not shrink ({part:.0%} would be left), so it travels as it is"


def _report_samples(samples: "Samples", reporter: "Reporter") -> None:
    endings = ", ".join(f".{ending}" for ending in samples.endings)
    reporter.step(f"  {samples.count:,} samples of {endings}")
    if samples.odd:
        have = "has" if samples.odd == 1 else "have"
        reporter.warn(f"{samples.odd:,} of them {have} other files, such as {samples.first_odd}")


def _report_shrunk(shrunk: "Shrunk", side: int, reporter: "Reporter") -> None:
    for line in shrunk.lines(side):
        reporter.step(f"  {line}")
    if shrunk.warning:
        reporter.warn(shrunk.warning)
