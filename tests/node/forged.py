"""Packs whose digests are all right, whatever their index says."""

import hashlib
from pathlib import Path

from rabaska.node import files
from rabaska.node.data import pack_format
from rabaska.node.data.pack_format import FILE, FOLDER, LINK, RECORD, Entry, IndexLayout

CONTENT = b"meow"


def entry(name: bytes, kind: int = FILE, target: bytes = b"", **different) -> Entry:
    plain = Entry(name, kind, 512, len(CONTENT), 0, 0o644, 0, 0, -1, target)
    if kind != FILE:
        plain = plain._replace(offset=0, size=0)
    return plain._replace(**different)


def forge(folder: Path, entries: list[Entry], shard: bytes = bytes(4096), **lies) -> Path:
    folder.mkdir(parents=True)
    (folder / "shard-00000.tar").write_bytes(shard)
    files_ = sum(each.kind not in (LINK, FOLDER) for each in entries)
    links = sum(each.kind == LINK for each in entries)
    records, names = bytearray(), bytearray()
    for each in sorted(entries, key=lambda each: (each.kind == FOLDER, each.kind == LINK)):
        records += RECORD.pack(
            each.offset, each.size, each.mtime_ns, lies.get("name_at", len(names)),
            len(each.name), len(each.target), each.shard, each.crc, each.mode, each.kind,
            each.label, 0,
        )  # fmt: skip
        names += each.name + each.target
    layout = IndexLayout(files_, links, len(entries) - files_ - links, len(names))
    (folder / "index").write_bytes(layout.header() + records + names)
    write_manifest(folder, files_, sum(each.size for each in entries), lies.get("name", "x"))
    return folder


def write_manifest(folder: Path, count: int, size: int, name: str = "x") -> None:
    index, shard = (folder / "index").read_bytes(), (folder / "shard-00000.tar").read_bytes()
    described = pack_format.Shard(
        "shard-00000.tar", len(shard), hashlib.sha256(shard).hexdigest(), [0]
    )
    manifest = pack_format.Manifest(
        name, "", count, size, len(index), hashlib.sha256(index).hexdigest(), [described]
    )
    manifest = manifest._replace(digest=pack_format.digest_of(manifest))
    files.write_json(str(folder / "manifest.json"), pack_format.to_json(manifest))
