"""Push: what a run needs and its cluster does not have yet."""

from rabaska.journeys.station import Station
from rabaska.journeys.telling import Teller, telling
from rabaska.packing.pack import Pack
from rabaska.packing.snapshot import Snapshot


def push(station: Station, snapshot: Snapshot, packs: tuple[Pack, ...], teller: Teller) -> None:
    """Send snapshot and packs; their names are their digests, so what is there is not sent."""
    station.place.send(snapshot.path, f"{station.store}/code/{snapshot.path.name}")
    for pack in packs:
        target = f"{station.store}/packs/{pack.identity}"
        station.place.send(pack.folder, target, moved=telling(f"sending {pack.identity}", teller))
