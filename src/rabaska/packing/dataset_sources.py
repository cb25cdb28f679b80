"""Whatever a dataset is (a folder, several, an archive, one large file), it becomes a pack."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rabaska.errors import DatasetError
from rabaska.node import files, partial_folder
from rabaska.node.data import pack_format
from rabaska.packing import archives
from rabaska.packing.archives import unpack
from rabaska.packing.make_pack import Pack, PackOptions, pack, put_in_place
from rabaska.packing.pack_cache import whole
from rabaska.packing.refusals import refuse_name, refuse_secrets, space_needed


def pack_origin(sources: Sequence[Path], store: Path, wish: PackOptions) -> Pack:
    """Pack one folder, archive or file, or several folders side by side."""
    paths = [source.absolute() for source in sources]
    for path in paths:
        refuse_secrets(str(path))
    if len(paths) == 1 and not paths[0].is_file():
        return pack(paths[0], store, wish)
    refuse_name(wish.name)
    with space_needed(store, f"pack {wish.name}"):
        store.mkdir(parents=True, exist_ok=True)
        if len(paths) == 1 and archives.is_plain_tar(paths[0]):
            return _tar(paths[0], store, wish)
        if len(paths) == 1 and archives.is_compressed(paths[0]):
            return _unpacked(paths[0], store, wish)
        return _side_by_side(paths, store, wish)


def _tar(archive: Path, store: Path, wish: PackOptions) -> Pack:
    known = _recall(archive, store, wish)
    if known:
        return replace(_described(known, store, reused=True), new=False)
    status = archive.stat()
    folder = partial_folder.begin(str(store), wish.name)
    try:
        manifest = archives.index_in_place(archive, wish.name, Path(folder.path))
        if _version(archive.stat()) != _version(status):
            raise DatasetError(
                f"{archive} changed while it was packed", hint="run the command again"
            )
    except archives.NeedsUnpacking:
        partial_folder.abandon(folder)
        return _unpacked(archive, store, wish)
    except BaseException:
        partial_folder.abandon(folder)
        raise
    placed = put_in_place(folder, manifest)
    _remember(archive, store, wish, manifest.identity)
    return replace(_described(manifest, store, reused=False), **placed._asdict())


def _unpacked(archive: Path, store: Path, wish: PackOptions) -> Pack:
    known = _recall(archive, store, wish)
    if known:
        return replace(_described(known, store, reused=True), new=False)
    folder = partial_folder.begin(str(store), f"unpacked-{wish.name}")
    try:
        unpack(archive, Path(folder.path))
        made = pack(Path(folder.path), store, replace(wish, follow_links=False))
    finally:
        partial_folder.abandon(folder)
    _remember(archive, store, wish, made.identity)
    return made


def _side_by_side(paths: Sequence[Path], store: Path, wish: PackOptions) -> Pack:
    """Several folders, or one file, as if they lay in one folder: by links that are followed."""
    names = [path.name for path in paths]
    twins = {name for name in names if names.count(name) > 1}
    if twins:
        raise DatasetError(
            f"two folders of dataset {wish.name} are called {', '.join(sorted(twins))}",
            why="both would have the same path in the pack",
            hint="rename one, or pack the folder that holds both",
        )
    folder = partial_folder.begin(str(store), f"links-{wish.name}")
    try:
        for path in paths:
            os.symlink(path, os.path.join(folder.path, path.name))
        known_as = "\n".join(map(str, paths))
        return pack(Path(folder.path), store, replace(wish, follow_links=True, known_as=known_as))
    finally:
        partial_folder.abandon(folder)


def _recall(archive: Path, store: Path, wish: PackOptions) -> pack_format.Manifest | None:
    """The pack made of this very archive, if it is still there."""
    try:
        known = files.read_json(str(_note(archive, store, wish))) or {}
    except ValueError:
        return None
    if known.get("version") != list(_version(archive.stat())):
        return None
    return whole(store / str(known.get("pack")))


def _remember(archive: Path, store: Path, wish: PackOptions, identity: str) -> None:
    path = _note(archive, store, wish)
    path.parent.mkdir(exist_ok=True)
    version = list(_version(archive.stat()))
    files.write_json(str(path), {"version": version, "pack": identity})


def _note(archive: Path, store: Path, wish: PackOptions) -> Path:
    text = json.dumps([pack_format.FORMAT, str(archive), wish.name, wish.shard_size])
    return store / ".listings" / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def _version(status: os.stat_result) -> tuple[int, int, int]:
    # Not the time of the last status change: linking to the archive changes that.
    return status.st_size, status.st_mtime_ns, status.st_ino


def _described(manifest: pack_format.Manifest, store: Path, *, reused: bool) -> Pack:
    return Pack(
        manifest.identity,
        store / manifest.identity,
        manifest.files,
        manifest.bytes,
        len(manifest.shards),
        reused,
    )
