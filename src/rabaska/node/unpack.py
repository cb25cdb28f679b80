"""A pack back into the folder it was, found by the index: no tar header is read."""

import os
import zlib
from typing import Iterator, List, NamedTuple, Tuple, Union

from . import workers
from .packs import DamagedPack, Entry, Index, Manifest

_WINDOW = 4 * 2**20  # read at once, for as many small files as lie in it
_SPAN_FILES = 2000
_SPAN_BYTES = 64 * 2**20
# Never through a link, never over something that is there.
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class _Span(NamedTuple):
    """Files that lie side by side in one shard: the work of one process for a while."""

    shard: int
    begin: int
    end: int


def unpack(
    pack_folder: str, target: str, manifest: Manifest, index: Index
) -> Iterator[Tuple[int, int]]:
    """Write the whole pack into the empty folder `target`; how many files and bytes, as it goes."""
    pack_folder = os.path.abspath(pack_folder)
    folders = list(index.folders())
    for entry in folders:
        os.mkdir(_path(target, entry), 0o700)

    def work(span: _Span) -> Iterator[Tuple[int, int]]:
        # A process of its own: it may stand in the target, where names are short and exact.
        os.chdir(target)
        os.umask(0)
        shard = os.path.join(pack_folder, manifest.shards[span.shard].name)
        yield from _write_span(shard, index, span)

    yield from workers.share(work, _spans(index), workers.available())
    _write_links(target, index)
    # From the inside out: writing into a folder changes its time.
    for entry in reversed(folders):
        os.chmod(_path(target, entry), entry.mode)
        os.utime(_path(target, entry), ns=(entry.mtime_ns, entry.mtime_ns))


def _path(target: str, entry: Entry) -> bytes:
    return os.path.join(os.fsencode(target), entry.name)


def _spans(index: Index) -> List[_Span]:
    spans = []  # type: List[_Span]
    begin, size, shard = 0, 0, 0
    for position, entry in enumerate(index.files()):
        full = position - begin >= _SPAN_FILES or size >= _SPAN_BYTES
        if position > begin and (full or entry.shard != shard):
            spans.append(_Span(shard, begin, position))
            begin, size = position, 0
        shard, size = entry.shard, size + entry.size
    if index.layout.files:
        spans.append(_Span(shard, begin, index.layout.files))
    return spans


def _write_span(shard: str, index: Index, span: _Span) -> Iterator[Tuple[int, int]]:
    source = os.open(shard, os.O_RDONLY)
    try:
        for group in _groups(index.entries(span.begin, span.end)):
            if len(group) == 1 and group[0].size > _WINDOW:
                _write_large(source, shard, group[0])
            else:
                _write_group(source, shard, group)
            yield len(group), sum(entry.size for entry in group)
    finally:
        os.close(source)


def _groups(entries: Iterator[Entry]) -> Iterator[List[Entry]]:
    """Neighbours that can be read at once; a file larger than that stands alone."""
    group = []  # type: List[Entry]
    for entry in entries:
        if group and entry.offset + entry.size - group[0].offset > _WINDOW:
            yield group
            group = []
        group.append(entry)
    if group:
        yield group


def _write_group(source: int, shard: str, group: List[Entry]) -> None:
    start = group[0].offset
    window = memoryview(os.pread(source, group[-1].offset + group[-1].size - start, start))
    for entry in group:
        content = window[entry.offset - start : entry.offset - start + entry.size]
        if not _is_right(content, entry):
            forget(source, entry.offset, entry.size)
            content = memoryview(os.pread(source, entry.size, entry.offset))
            if not _is_right(content, entry):
                raise damaged(os.path.dirname(shard), os.path.basename(shard))
        target = os.open(entry.name, _CREATE, entry.mode)
        try:
            write_at(target, content, 0)
            os.utime(target, ns=(entry.mtime_ns, entry.mtime_ns))
        finally:
            os.close(target)


def _is_right(content: memoryview, entry: Entry) -> bool:
    return len(content) == entry.size and zlib.crc32(content) == entry.crc


def _write_large(source: int, shard: str, entry: Entry) -> None:
    target = os.open(entry.name, _CREATE, entry.mode)
    try:
        for _ in range(2):
            if _copied(source, target, entry) == entry.crc:
                os.utime(target, ns=(entry.mtime_ns, entry.mtime_ns))
                return
            forget(source, entry.offset, entry.size)
    finally:
        os.close(target)
    raise damaged(os.path.dirname(shard), os.path.basename(shard))


def _copied(source: int, target: int, entry: Entry) -> int:
    crc = done = 0
    while done < entry.size:
        piece = os.pread(source, min(_WINDOW, entry.size - done), entry.offset + done)
        if not piece:
            return -1  # cut short
        crc = zlib.crc32(piece, crc)
        write_at(target, piece, done)
        done += len(piece)
    return crc


def _write_links(target: str, index: Index) -> None:
    """Links last, so that nothing is ever written through one."""
    for entry in index.links():
        path = _path(target, entry)
        os.symlink(entry.target, path)
        os.utime(path, ns=(entry.mtime_ns, entry.mtime_ns), follow_symlinks=False)


def write_at(descriptor: int, content: Union[bytes, memoryview], offset: int) -> None:
    rest = memoryview(content)
    while rest:
        written = os.pwrite(descriptor, rest, offset)
        rest, offset = rest[written:], offset + written


def forget(descriptor: int, offset: int, size: int) -> None:
    """Drop what the system remembers of a file, so that the next read fetches it again."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, offset, size, os.POSIX_FADV_DONTNEED)


def damaged(pack_folder: str, shard: str) -> DamagedPack:
    return DamagedPack("{} in {} is damaged: it was read twice".format(shard, pack_folder))
