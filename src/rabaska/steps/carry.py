"""Carry: the code of a project and its packs, brought to a cluster that does not have them yet."""

import os
import posixpath
from pathlib import Path

from rabaska.domain.amounts import say_size
from rabaska.domain.projects import Project
from rabaska.node.data.pack_format import INDEX, load_manifest
from rabaska.node.record.plan import Plan
from rabaska.packing.code_files import not_code
from rabaska.packing.code_snapshot import CodeSnapshot, is_as_named, snapshot
from rabaska.packing.make_pack import Pack
from rabaska.packing.pack_advice import compression_pays, shrinks_to
from rabaska.packing.pack_cache import complete_manifest as whole
from rabaska.records.home import Home
from rabaska.remote.git import own_files
from rabaska.remote.place import Parcel
from rabaska.settings.project_file import FILE
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.progress import Reporter, progress_of
from rabaska.steps.project_secrets import known


def push(
    station: ConnectedCluster, snapshot: CodeSnapshot, packs: tuple[Pack, ...], teller: Reporter
) -> None:
    """Send snapshot and packs; their names are their digests, so what is there is not sent.

    All are asked after in one question: a project that did not change needs no more than that.
    """
    code = _code(snapshot.path, station)
    data = [parcel_of(pack.folder, station) for pack in packs]
    moved = progress_of(f"sending to {station.cluster.name}", teller)
    sent = station.place.deliver([code, *data], station, moved)
    if sent.missing and not station.cluster.is_here:
        spread = f", spread over {sent.stripes} servers of Lustre" if sent.stripes > 1 else ""
        teller.step(f"sent to {station.cluster.name}: {say_size(sent.missing)}{spread}")


def complete(station: ConnectedCluster, plan: Plan, home: Home) -> None:
    """Send what its site deleted of what a run needs, as far as this computer still has it."""
    code = home.store / "code" / f"{plan.code}.tar"
    data = [home.store / "packs" / each.pack for each in plan.datasets]
    parcels = [_code(code, station)] if is_as_named(code) else []
    parcels += [parcel_of(pack, station) for pack in data if whole(pack)]
    if parcels:
        station.place.deliver(parcels, station)


def _code(snapshot: Path, station: ConnectedCluster) -> Parcel:
    return Parcel(snapshot, f"{station.store}/code/{snapshot.name}")


def parcel_of(pack: Path, station: ConnectedCluster, *, doubted: bool = False) -> Parcel:
    """A pack on its way; when the copy there is `doubted`, it is proven byte by byte."""
    manifest = load_manifest(str(pack))
    digests = {shard.name: shard.sha256 for shard in manifest.shards}
    return Parcel(
        pack,
        f"{station.store}/packs/{pack.name}",
        {**digests, INDEX: manifest.index_sha256},
        doubted,
        shrinks=lambda: compression_pays(shrinks_to(str(pack))),
    )


def take_snapshot(project: Project, home: Home, teller: Reporter) -> CodeSnapshot:
    code = taken(project, home, home.store / "code", teller)
    teller.step(f"code: {code.files} files, snapshot {code.digest[:12]}")
    return code


def taken(project: Project, home: Home, folder: Path, teller: Reporter) -> CodeSnapshot:
    """A snapshot in `folder`; what may hold secrets stays behind, and is named."""
    code = snapshot(
        project.folder,
        folder,
        exclude=not_code(project, home.folder),
        include=project.include,
        listed=own_files,
        secrets=known(project.environment, os.environ),
    )
    files = [name for name in code.withheld if posixpath.basename(name) != FILE]
    if files:
        teller.warn(
            f"not sent, for it may hold secrets: {', '.join(files)}; `secrets` under "
            "[environment] hands keys to the program, `include` under [code] sends the file"
        )
    for name in {*code.withheld} - {*files}:
        teller.warn(
            f"{name} is not sent with the code, for a secret in it could not be taken out; name "
            "the variable in `secrets` under [environment] instead"
        )
    return code
