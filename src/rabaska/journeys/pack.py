"""Pack: every dataset of a project becomes shards on this computer, if it changed."""

import time
from collections.abc import Callable

from rabaska.domain.amounts import say_size
from rabaska.domain.projects import Dataset, Project
from rabaska.node import files
from rabaska.packing.dataset_sources import pack_origin
from rabaska.packing.make_pack import Pack, PackOptions, Progress
from rabaska.packing.pack_advice import compression_pays, shrinks_to
from rabaska.packing.shard_borders import Samples
from rabaska.records.home import Home
from rabaska.steps.progress import Reporter, SilentReporter

_WORTH_TELLING = 10**7  # bytes; what is smaller travels in no time, compressed or not


def pack(project: Project, home: Home, teller: Reporter | None = None) -> tuple[Pack, ...]:
    teller = teller or SilentReporter()
    return tuple(pack_dataset(dataset, home, teller) for dataset in project.datasets)


def pack_dataset(dataset: Dataset, home: Home, teller: Reporter) -> Pack:
    wish = PackOptions(
        dataset.name,
        follow_links=dataset.follow_links,
        progress=_telling(f"packing {dataset.name}", teller),
        samples=dataset.samples,
    )
    packed = pack_origin(dataset.paths, home.store / "packs", wish)
    if not files.is_still_there(str(packed.folder)):  # cleaned away since it was found
        packed = pack_origin(dataset.paths, home.store / "packs", wish)
    if packed.damaged:
        teller.warn(f"pack {packed.identity} was damaged; packed again")
    did = "packed" if packed.new else "unchanged since it was packed"
    teller.step(
        f"data {dataset.name}: {packed.files:,} files, {say_size(packed.bytes)}, {did} "
        f"as {packed.identity} ({packed.shards} shard{'s' if packed.shards != 1 else ''})"
    )
    if packed.new and packed.bytes >= _WORTH_TELLING:
        teller.step(f"  {_said_of_squeezing(shrinks_to(str(packed.folder)))}")
    if packed.stripes:
        teller.step(f"  Lustre spreads each shard over {packed.stripes} servers")
    if packed.samples:
        _tell_of_samples(packed.samples, teller)
    return packed


def _telling(what: str, teller: Reporter) -> Callable[[Progress], None]:
    begun = time.monotonic()

    def told(came: Progress) -> None:
        rate = came.files / max(time.monotonic() - begun, 1e-3)
        teller.moved(what, came.bytes, came.total_bytes, aside=f"{rate:,.0f} files/s")

    return told


def _said_of_squeezing(part: float) -> str:
    if compression_pays(part):
        return f"shrinks to {part:.0%}, so it is compressed on its way to a cluster"
    return f"does not shrink ({part:.0%} would be left), so it travels as it is"


def _tell_of_samples(found: Samples, teller: Reporter) -> None:
    endings = ", ".join(f".{ending}" for ending in found.endings)
    teller.step(f"  {found.count:,} samples of {endings}")
    if found.odd:
        have = "has" if found.odd == 1 else "have"
        teller.warn(f"{found.odd:,} of them {have} other files, such as {found.first_odd}")
