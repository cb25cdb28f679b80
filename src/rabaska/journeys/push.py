"""Push: what a run needs and its cluster does not have yet."""

from pathlib import Path

from rabaska.domain.amounts import say_size
from rabaska.journeys.station import Station
from rabaska.journeys.telling import Teller, telling
from rabaska.node.data.packs import INDEX, load_manifest
from rabaska.node.record.plan import Plan
from rabaska.packing.memory import whole
from rabaska.packing.pack import Pack
from rabaska.packing.snapshot import Snapshot, is_as_named
from rabaska.packing.squeezing import pays, shrinks_to
from rabaska.records.home import Home
from rabaska.remote.place import Parcel


def push(station: Station, snapshot: Snapshot, packs: tuple[Pack, ...], teller: Teller) -> None:
    """Send snapshot and packs; their names are their digests, so what is there is not sent.

    All are asked after in one question: a project that did not change needs no more than that.
    """
    code = _code(snapshot.path, station)
    data = [parcel_of(pack.folder, station) for pack in packs]
    moved = telling(f"sending to {station.cluster.name}", teller)
    sent = station.place.deliver([code, *data], station, moved)
    if sent.missing and not station.cluster.is_here:
        spread = f", spread over {sent.stripes} servers of Lustre" if sent.stripes > 1 else ""
        teller.step(f"sent to {station.cluster.name}: {say_size(sent.missing)}{spread}")


def complete(station: Station, plan: Plan, home: Home) -> None:
    """Send what its site deleted of what a run needs, as far as this computer still has it."""
    code = home.store / "code" / f"{plan.code}.tar"
    data = [home.store / "packs" / each.pack for each in plan.datasets]
    parcels = [_code(code, station)] if is_as_named(code) else []
    parcels += [parcel_of(pack, station) for pack in data if whole(pack)]
    if parcels:
        station.place.deliver(parcels, station)


def _code(snapshot: Path, station: Station) -> Parcel:
    return Parcel(snapshot, f"{station.store}/code/{snapshot.name}")


def parcel_of(pack: Path, station: Station, *, doubted: bool = False) -> Parcel:
    """A pack on its way; when the copy there is `doubted`, it is proven byte by byte."""
    manifest = load_manifest(str(pack))
    digests = {shard.name: shard.sha256 for shard in manifest.shards}
    return Parcel(
        pack,
        f"{station.store}/packs/{pack.name}",
        {**digests, INDEX: manifest.index_sha256},
        doubted,
        shrinks=lambda: pays(shrinks_to(str(pack))),
    )
