"""A pack back into the folder it was, found by the index: no tar header is read."""

import os
from typing import Iterator, List, NamedTuple, Set, Tuple, Union

from . import worker_pool, write_files
from .blocks import checked_block, crc32, damaged, forget, write_at
from .index_columns import (
    OFFSET,
    SHARD,
    SIZE,
    Files,
    FileSpan,
    column,
    files_in,
    groups,
    parts,
    steps,
)
from .pack_format import BLOCK, Entry, Index, Manifest, Shard
from .pack_proof import open_sealed
from .pack_safety import misplaced, refuse_bad_files, refuse_bad_parents, refuse_bad_tree, twin
from .read_ahead import read_at, windows
from .write_files import CREATE, FOLDER, FileWriter

_SPAN_FILES = 1000
_SPAN_BYTES = 32 * 2**20
_LARGE = 2 * BLOCK  # files from this size on are written by several processes


class UnpackPiece(NamedTuple):
    """The part of one large file that lies in one block of its shard."""

    position: int
    block: int


Task = Union[FileSpan, UnpackPiece]  # of one process


class _Place(NamedTuple):
    """What every worker needs to know."""

    pack_folder: str
    target: str
    manifest: Manifest
    contents: Index
    folders: Set[bytes]


def unpack(pack_folder: str, target: str, manifest: Manifest) -> Iterator[Tuple[int, int]]:
    """Write the whole pack into the empty folder `target`; how many files and bytes, as it goes."""
    index = open_sealed(pack_folder)[1]
    try:
        yield from _unpack(pack_folder, target, manifest, index)
    finally:
        index.close()


def _unpack(
    pack_folder: str, target: str, manifest: Manifest, index: Index
) -> Iterator[Tuple[int, int]]:
    names, _ = refuse_bad_tree(index, manifest)
    place = _Place(os.path.abspath(pack_folder), os.path.abspath(target), manifest, index, names)
    folders = list(index.folders())
    for entry in folders:
        os.mkdir(_path(target, entry), 0o700)
    tasks, large = _tasks(index, manifest)
    for position in large:
        _make_room(place, position)
    yield from worker_pool.share(lambda task: _work(place, task), tasks, worker_pool.available())
    for position in large:
        _set_time(place, index.entry(position))
        yield 1, 0
    _write_links(target, index)
    # From the inside out: writing into a folder changes its time.
    for entry in reversed(folders):
        os.chmod(_path(target, entry), entry.mode)
        os.utime(_path(target, entry), ns=(entry.mtime_ns, entry.mtime_ns))


def _work(place: _Place, task: Task) -> Iterator[Tuple[int, int]]:
    # A process of its own: it may stand in the target, where names are short and exact.
    os.chdir(place.target)
    os.umask(0)
    if isinstance(task, UnpackPiece):
        yield 0, _write_piece(place, task)
    else:
        yield _write_span(place, task)


def _path(target: str, entry: Entry) -> bytes:
    return os.path.join(os.fsencode(target), entry.name)


def _tasks(index: Index, manifest: Manifest) -> Tuple[List[Task], List[int]]:
    """Spans of small files and pieces of large ones; and where the large files are."""
    tasks, large = [], []  # type: List[Task], List[int]
    for begin, end in steps(index, _SPAN_FILES):
        shards = set(column(index, SHARD, begin, end))
        if max(shards) >= len(manifest.shards):
            raise misplaced(index.entry(begin).name)
        if len(shards) == 1 and sum(column(index, SIZE, begin, end)) < _SPAN_BYTES:
            tasks.append(FileSpan(shards.pop(), begin, end))
        else:
            large += _cut(index, begin, end, manifest, tasks)
    return tasks, large


def _cut(
    index: Index, first: int, last: int, manifest: Manifest, tasks: List[Task]
) -> Iterator[int]:
    """Add the tasks of files that are too much for one span; where the large ones are."""
    offsets, sizes, shards = (column(index, word, first, last) for word in (OFFSET, SIZE, SHARD))
    begin, size, shard = first, 0, shards[0]
    for position, (offset, length, number) in enumerate(zip(offsets, sizes, shards), first):
        if offset + length > manifest.shards[number].size:
            raise misplaced(index.entry(position).name)
        alone = length >= _LARGE
        if position > begin and (size >= _SPAN_BYTES or alone or number != shard):
            tasks.append(FileSpan(shard, begin, position))
            begin, size = position, 0
        if alone:
            blocks = range(offset // BLOCK, (offset + length - 1) // BLOCK + 1)
            tasks.extend(UnpackPiece(position, block) for block in blocks)
            yield position
            begin, length = position + 1, 0
        shard, size = number, size + length
    if last > begin:
        tasks.append(FileSpan(shard, begin, last))


def _write_span(place: _Place, span: FileSpan) -> Tuple[int, int]:
    shard = place.manifest.shards[span.shard]
    path = os.path.join(place.pack_folder, shard.name)
    top = os.open(".", FOLDER)
    try:
        done = write_files.write(place.contents, span, path, shard.size, top)
        if span.begin + done < span.end:
            _write_plainly(place, span._replace(begin=span.begin + done), path, top)
    finally:
        os.close(top)
    sizes = column(place.contents, SIZE, span.begin, span.end)
    return len(sizes), sum(sizes)


def _write_plainly(place: _Place, span: FileSpan, path: str, top: int) -> None:
    listed = files_in(place.contents, span.begin, span.end)
    _refuse(place, listed, place.manifest.shards[span.shard], span.shard)
    together = list(groups(listed))
    writer = FileWriter(top)
    source = os.open(path, os.O_RDONLY)
    try:
        for (begin, end), window in zip(together, windows(path, parts(listed, together))):
            contents = _contents(listed, begin, end, window)
            for number in _wrong(listed, begin, contents):
                contents[number] = _read_again(source, path, listed, begin + number)
            writer.write(listed, begin, contents)
    finally:
        os.close(source)


def _refuse(place: _Place, listed: Files, shard: Shard, number: int) -> None:
    refuse_bad_files(listed, number, shard.size)
    refuse_bad_parents(listed, place.folders)


def _contents(listed: Files, begin: int, end: int, window: memoryview) -> List[memoryview]:
    start = listed.offsets[begin]
    return [
        window[offset - start : offset - start + size]
        for offset, size in zip(listed.offsets[begin:end], listed.sizes[begin:end])
    ]


def _wrong(listed: Files, begin: int, contents: List[memoryview]) -> List[int]:
    """Which of the contents are not what was packed."""
    crcs = listed.crcs[begin : begin + len(contents)]
    if list(map(crc32, contents)) == crcs:
        return []
    return [number for number, content in enumerate(contents) if crc32(content) != crcs[number]]


def _read_again(source: int, path: str, listed: Files, number: int) -> memoryview:
    forget(source, listed.offsets[number], listed.sizes[number])
    content = read_at(source, listed.sizes[number], listed.offsets[number])
    if crc32(content) != listed.crcs[number]:
        raise damaged(os.path.dirname(path), os.path.basename(path))
    return memoryview(content)


def _make_room(place: _Place, position: int) -> None:
    """Make a large file that others will fill."""
    listed = files_in(place.contents, position, position + 1)
    number = listed.shards[0]
    _refuse(place, listed, place.manifest.shards[number], number)
    path = os.path.join(os.fsencode(place.target), listed.names[0])
    try:
        target = os.open(path, CREATE, 0o600)
    except FileExistsError:
        raise twin(listed.names[0])
    os.ftruncate(target, listed.sizes[0])
    os.close(target)


def _write_piece(place: _Place, piece: UnpackPiece) -> int:
    entry = place.contents.entry(piece.position)
    start = piece.block * BLOCK
    content = memoryview(checked_block(place.pack_folder, place.manifest, entry.shard, piece.block))
    begin = max(entry.offset, start)
    end = min(entry.offset + entry.size, start + len(content))
    target = os.open(entry.name, os.O_WRONLY | os.O_NOFOLLOW)
    try:
        write_at(target, content[begin - start : end - start], begin - entry.offset)
    finally:
        os.close(target)
    return end - begin


def _set_time(place: _Place, entry: Entry) -> None:
    path = _path(place.target, entry)
    os.chmod(path, entry.mode)
    os.utime(path, ns=(entry.mtime_ns, entry.mtime_ns))


def _write_links(target: str, index: Index) -> None:
    """Links last, so that nothing is ever written through one."""
    for entry in index.links():
        path = _path(target, entry)
        try:
            os.symlink(entry.target, path)
        except FileExistsError:
            raise twin(entry.name)
        os.utime(path, ns=(entry.mtime_ns, entry.mtime_ns), follow_symlinks=False)
