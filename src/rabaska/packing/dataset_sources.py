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
from rabaska.packing.make_pack import Pack, PackOptions, pack, put_in_place
from rabaska.packing.pack_cache import complete_manifest
from rabaska.packing.refusals import refuse_name, refuse_secrets, space_needed


def pack_origin(sources: Sequence[Path], store: Path, options: PackOptions) -> Pack:
    """Pack one folder, archive or file, or several folders side by side."""
    paths = [source.absolute() for source in sources]
    for path in paths:
        refuse_secrets(str(path))
    if len(paths) == 1 and not paths[0].is_file():
        return pack(paths[0], store, options)
    from rabaska.packing import archives  # what reads them takes long to import

    refuse_name(options.name)
    with space_needed(store, f"pack {options.name}"):
        store.mkdir(parents=True, exist_ok=True)
        if len(paths) == 1 and archives.is_plain_tar(paths[0]):
            return _tar(paths[0], store, options)
        if len(paths) == 1 and archives.is_compressed(paths[0]):
            return _unpacked(paths[0], store, options)
        return _side_by_side(paths, store, options)


def _tar(archive: Path, store: Path, options: PackOptions) -> Pack:
    from rabaska.packing import archives

    manifest_before = _recall(archive, store, options)
    if manifest_before:
        return replace(_pack_of(manifest_before, store, reused=True), new=False)
    status = archive.stat()
    folder = partial_folder.begin(str(store), options.name)
    try:
        manifest = archives.index_in_place(archive, options.name, Path(folder.path))
        if _version(archive.stat()) != _version(status):
            raise DatasetError(
                f"{archive} changed while it was packed", hint="run the command again"
            )
    except archives.NeedsUnpacking:
        partial_folder.abandon(folder)
        return _unpacked(archive, store, options)
    except BaseException:
        partial_folder.abandon(folder)
        raise
    placed = put_in_place(folder, manifest)
    _remember(archive, store, options, manifest.identity)
    return replace(_pack_of(manifest, store, reused=False), **placed._asdict())


def _unpacked(archive: Path, store: Path, options: PackOptions) -> Pack:
    from rabaska.packing.archives import unpack

    manifest_before = _recall(archive, store, options)
    if manifest_before:
        return replace(_pack_of(manifest_before, store, reused=True), new=False)
    folder = partial_folder.begin(str(store), f"unpacked-{options.name}")
    try:
        unpack(archive, Path(folder.path))
        packed = pack(Path(folder.path), store, replace(options, follow_links=False))
    finally:
        partial_folder.abandon(folder)
    _remember(archive, store, options, packed.identity)
    return packed


def _side_by_side(paths: Sequence[Path], store: Path, options: PackOptions) -> Pack:
    """Several folders, or one file, as if they lay in one folder: by links that are followed."""
    names = [path.name for path in paths]
    twins = {name for name in names if names.count(name) > 1}
    if twins:
        raise DatasetError(
            f"two folders of dataset {options.name} are called {', '.join(sorted(twins))}",
            why="both would have the same path in the pack",
            hint="rename one, or pack the folder that contains both",
        )
    folder = partial_folder.begin(str(store), f"links-{options.name}")
    try:
        for path in paths:
            os.symlink(path, os.path.join(folder.path, path.name))
        known_as = "\n".join(map(str, paths))
        return pack(
            Path(folder.path), store, replace(options, follow_links=True, known_as=known_as)
        )
    finally:
        partial_folder.abandon(folder)


def _recall(archive: Path, store: Path, options: PackOptions) -> pack_format.Manifest | None:
    """The pack made of this very archive, if it is still there."""
    try:
        record = files.read_json(str(_note(archive, store, options))) or {}
    except ValueError:
        return None
    if record.get("version") != list(_version(archive.stat())):
        return None
    return complete_manifest(store / str(record.get("pack")))


def _remember(archive: Path, store: Path, options: PackOptions, identity: str) -> None:
    path = _note(archive, store, options)
    path.parent.mkdir(exist_ok=True)
    version = list(_version(archive.stat()))
    files.write_json(str(path), {"version": version, "pack": identity})


def _note(archive: Path, store: Path, options: PackOptions) -> Path:
    text = json.dumps([pack_format.FORMAT, str(archive), options.name, options.shard_size])
    return store / ".listings" / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def _version(status: os.stat_result) -> tuple[int, int, int]:
    # Not the time of the last status change: linking to the archive changes that.
    return status.st_size, status.st_mtime_ns, status.st_ino


def _pack_of(manifest: pack_format.Manifest, store: Path, *, reused: bool) -> Pack:
    return Pack(
        manifest.identity,
        store / manifest.identity,
        manifest.files,
        manifest.bytes,
        len(manifest.shards),
        reused,
    )
