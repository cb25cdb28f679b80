"""Pack: every dataset of a project becomes shards on this computer, if it changed."""

from rabaska.domain.amounts import say_size
from rabaska.domain.projects import Dataset, Project
from rabaska.journeys.telling import Silent, Teller, telling
from rabaska.node import files
from rabaska.packing.origins import How, pack_origin
from rabaska.packing.pack import Pack
from rabaska.records.home import Home


def pack(project: Project, home: Home, teller: Teller | None = None) -> tuple[Pack, ...]:
    teller = teller or Silent()
    return tuple(pack_dataset(dataset, home, teller) for dataset in project.datasets)


def pack_dataset(dataset: Dataset, home: Home, teller: Teller) -> Pack:
    moved = telling(f"packing {dataset.name}", teller)
    how = How(
        dataset.name,
        follow_links=dataset.follow_links,
        progress=lambda came: moved(came.bytes, came.total_bytes),
    )
    packed = pack_origin([dataset.path], home.store / "packs", how)
    if not files.is_still_there(str(packed.folder)):  # cleaned away since it was found
        packed = pack_origin([dataset.path], home.store / "packs", how)
    did = "unchanged since it was packed" if packed.reused else "packed"
    teller.step(
        f"data {dataset.name}: {packed.files:,} files, {say_size(packed.bytes)}, {did} "
        f"as {packed.identity} ({packed.shards} shard{'s' if packed.shards != 1 else ''})"
    )
    return packed
