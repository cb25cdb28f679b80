"""A pack back into the folder it was, found by the index: no tar header is read."""

import os
import zlib
from typing import Iterator, List, NamedTuple, Set, Tuple, Union

from . import workers
from .ahead import ahead
from .blocks import checked_block, damaged, forget, write_at
from .inspection import (
    Files,
    files_in,
    misplaced,
    no_folder,
    refuse_bad_files,
    refuse_bad_tree,
    twin,
)
from .packs import BLOCK, Entry, Index, Manifest

_WINDOW = 2**20  # read at once, for as many small files as lie in it
_SPAN_FILES = 4000
_SPAN_BYTES = 32 * 2**20
_LARGE = 2 * BLOCK  # files from this size on are written by several processes
# Never through a link, never over something that is there.
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class Span(NamedTuple):
    """Files that lie side by side in the index and in one shard: the work of one process."""

    shard: int
    begin: int
    end: int


class Piece(NamedTuple):
    """The part of one large file that lies in one block of its shard."""

    position: int
    block: int


Task = Union[Span, Piece]


class _Place(NamedTuple):
    """What every worker needs to know."""

    pack_folder: str
    target: str
    manifest: Manifest
    contents: Index
    folders: Set[bytes]


def unpack(
    pack_folder: str, target: str, manifest: Manifest, index: Index
) -> Iterator[Tuple[int, int]]:
    """Write the whole pack into the empty folder `target`; how many files and bytes, as it goes."""
    names, _ = refuse_bad_tree(index, manifest)
    place = _Place(os.path.abspath(pack_folder), target, manifest, index, names)
    folders = list(index.folders())
    for entry in folders:
        os.mkdir(_path(target, entry), 0o700)
    tasks, large = _tasks(index, manifest)
    for position in large:
        _make_room(place, position)
    yield from workers.share(lambda task: _work(place, task), tasks, workers.available())
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
    if isinstance(task, Piece):
        yield 0, _write_piece(place, task)
    else:
        yield from _write_span(place, task)


def _path(target: str, entry: Entry) -> bytes:
    return os.path.join(os.fsencode(target), entry.name)


def _tasks(index: Index, manifest: Manifest) -> Tuple[List[Task], List[int]]:
    """Spans of small files and pieces of large ones; and where the large files are."""
    tasks, large = [], []  # type: List[Task], List[int]
    begin = size = shard = 0
    for position, (length, number, offset) in enumerate(index.places()):
        if number >= len(manifest.shards) or offset + length > manifest.shards[number].size:
            raise misplaced(index.entry(position).name)
        alone = length >= _LARGE
        full = position - begin >= _SPAN_FILES or size >= _SPAN_BYTES
        if position > begin and (full or alone or number != shard):
            tasks.append(Span(shard, begin, position))
            begin, size = position, 0
        if alone:
            large.append(position)
            first, last = offset // BLOCK, (offset + length - 1) // BLOCK
            tasks.extend(Piece(position, block) for block in range(first, last + 1))
            begin, length = position + 1, 0
        shard, size = number, size + length
    if index.layout.files > begin:
        tasks.append(Span(shard, begin, index.layout.files))
    return tasks, large


def _write_span(place: _Place, span: Span) -> Iterator[Tuple[int, int]]:
    shard = place.manifest.shards[span.shard]
    path = os.path.join(place.pack_folder, shard.name)
    found = files_in(place.contents, span.begin, span.end)
    _refuse(place, found, span.shard)
    source = os.open(path, os.O_RDONLY)
    writer = _Writer()
    try:
        groups = list(_groups(found))
        windows = ahead(lambda group: _window(path, found, group), groups)
        for (begin, end), window in zip(groups, windows):
            contents = _contents(found, begin, end, window)
            for number in _wrong(found, begin, contents):
                contents[number] = _read_again(source, path, found, begin + number)
            writer.write(found, begin, contents)
            yield end - begin, sum(found.sizes[begin:end])
    finally:
        writer.close()
        os.close(source)


def _refuse(place: _Place, found: Files, shard: int) -> None:
    refuse_bad_files(found, shard, place.manifest.shards[shard].size)
    for parent in {name.rpartition(b"/")[0] for name in found.names} - place.folders:
        raise no_folder(parent)


def _groups(found: Files) -> Iterator[Tuple[int, int]]:
    """Neighbours that are read at once; a file larger than that stands alone."""
    begin = 0
    for number, (offset, size) in enumerate(zip(found.offsets, found.sizes)):
        start = found.offsets[begin]
        if number > begin and not 0 <= offset + size - start <= _WINDOW:
            yield begin, number
            begin = number
    yield begin, len(found.names)


def _window(path: str, found: Files, group: Tuple[int, int]) -> bytes:
    first, last = group[0], group[1] - 1
    start = found.offsets[first]
    # Opened anew: some file systems serve one read after the other on each descriptor.
    source = os.open(path, os.O_RDONLY)
    try:
        return read_at(source, found.offsets[last] + found.sizes[last] - start, start)
    finally:
        os.close(source)


def read_at(source: int, size: int, offset: int) -> bytes:
    """So many bytes from there; fewer where the file ends."""
    content = os.pread(source, size, offset)
    while 0 < len(content) < size:
        more = os.pread(source, size - len(content), offset + len(content))
        if not more:
            break
        content += more
    return content


def _contents(found: Files, begin: int, end: int, window: bytes) -> List[memoryview]:
    view, start = memoryview(window), found.offsets[begin]
    return [
        view[offset - start : offset - start + size]
        for offset, size in zip(found.offsets[begin:end], found.sizes[begin:end])
    ]


def _wrong(found: Files, begin: int, contents: List[memoryview]) -> List[int]:
    """Which of the contents are not what was packed."""
    crcs = found.crcs[begin : begin + len(contents)]
    if tuple(map(zlib.crc32, contents)) == crcs:
        return []
    return [
        number for number, content in enumerate(contents) if zlib.crc32(content) != crcs[number]
    ]


def _read_again(source: int, path: str, found: Files, number: int) -> memoryview:
    forget(source, found.offsets[number], found.sizes[number])
    content = read_at(source, found.sizes[number], found.offsets[number])
    if zlib.crc32(content) != found.crcs[number]:
        raise damaged(os.path.dirname(path), os.path.basename(path))
    return memoryview(content)


class _Writer:
    """Writes files into the folder it stands in, one folder below it after the other."""

    def __init__(self) -> None:
        self._folder = -1

    def write(self, found: Files, begin: int, contents: List[memoryview]) -> None:
        end = begin + len(contents)
        modes, times = found.modes[begin:end], found.times[begin:end]
        above, folder = None, self._folder
        for name, content, mode, time in zip(found.names[begin:end], contents, modes, times):
            parent, _, base = name.rpartition(b"/")
            if parent != above:
                above, folder = parent, self._enter(parent)
            try:
                target = os.open(base, _CREATE, mode, dir_fd=folder)
            except FileExistsError:
                raise twin(name)
            try:
                if os.write(target, content) != len(content):
                    write_at(target, content, 0)
                os.utime(target, ns=(time, time))
            finally:
                os.close(target)

    def _enter(self, name: bytes) -> int:
        self.close()
        self._folder = os.open(name or b".", _FOLDER)
        return self._folder

    def close(self) -> None:
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1


def _make_room(place: _Place, position: int) -> None:
    """Make a large file that others will fill."""
    found = files_in(place.contents, position, position + 1)
    number = found.shards[0]
    _refuse(place, found, number)
    path = os.path.join(os.fsencode(place.target), found.names[0])
    try:
        target = os.open(path, _CREATE, 0o600)
    except FileExistsError:
        raise twin(found.names[0])
    os.ftruncate(target, found.sizes[0])
    os.close(target)


def _write_piece(place: _Place, piece: Piece) -> int:
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
