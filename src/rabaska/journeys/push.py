"""Push: what a run needs and its cluster does not have yet."""

from rabaska.domain.amounts import say_size
from rabaska.journeys.station import Station
from rabaska.journeys.telling import Teller, telling
from rabaska.node.data.packs import INDEX, load_manifest
from rabaska.packing.pack import Pack
from rabaska.packing.snapshot import Snapshot
from rabaska.packing.squeezing import pays, shrinks_to
from rabaska.remote.place import Parcel


def push(station: Station, snapshot: Snapshot, packs: tuple[Pack, ...], teller: Teller) -> None:
    """Send snapshot and packs; their names are their digests, so what is there is not sent.

    All are asked after in one question: a project that did not change needs no more than that.
    """
    code = Parcel(snapshot.path, f"{station.store}/code/{snapshot.path.name}")
    data = [_parcel(pack, f"{station.store}/packs/{pack.identity}") for pack in packs]
    moved = telling(f"sending to {station.cluster.name}", teller)
    sent = station.place.deliver([code, *data], station, moved)
    if sent.missing and not station.cluster.is_here:
        spread = f", spread over {sent.stripes} servers of Lustre" if sent.stripes > 1 else ""
        teller.step(f"sent to {station.cluster.name}: {say_size(sent.missing)}{spread}")


def _parcel(pack: Pack, target: str) -> Parcel:
    manifest = load_manifest(str(pack.folder))
    digests = {shard.name: shard.sha256 for shard in manifest.shards}
    return Parcel(
        pack.folder,
        target,
        {**digests, INDEX: manifest.index_sha256},
        shrinks=lambda: pays(shrinks_to(str(pack.folder))),
    )
