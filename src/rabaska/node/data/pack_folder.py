"""A folder of this cluster as a pack, made here: for data that is too large to travel.

The packs are those of `rabaska pack`, in the same format; small ones are the same byte for byte.
"""

import hashlib
import os
import zlib
from typing import Callable, Dict, Iterator, List, NamedTuple, Tuple

from .. import files, partial_folder
from . import pack_format, pack_tail, tar_headers, worker_pool
from .list_folder import CannotPack, ListedFile, Tree, unreadable
from .pack_format import BLOCK, FILE, NO_CLASS, RECORD, TIME, IndexLayout, Manifest, Shard
from .pack_proof import is_complete
from .tree_digest import tree_digest

_SMALLEST, _LARGEST = 16 * 2**20, 2**30  # bytes of a shard
_SHARDS_WANTED = 64
_PIECE = 2**20
_REPORT = 2**24  # bytes after which a worker says how far it is

Progress = Callable[[int, int], None]  # bytes packed so far, and of how many


class _Range(NamedTuple):
    """The files that become one shard."""

    number: int
    begin: int
    end: int
    names_at: int  # where the name of the first is in the index
    last: bool


class _Written(NamedTuple):
    number: int
    shard: Shard
    records: bytes


def pack_folder(
    source: str, tree: Tree, store: str, name: str, progress: Progress, damaged: str = ""
) -> Manifest:
    """Pack what was listed of `source` into `<store>/<name>-<digest>`, unless it is there.

    A pack there that is known to be `damaged`, or of which a part is gone, is replaced.
    """
    os.makedirs(store, exist_ok=True)
    partial_folder.sweep(store)
    folder = partial_folder.begin(store, name)
    try:
        written = _write_shards(source, folder.path, tree, progress)
        manifest = _describe(folder.path, name, tree, written)
    except BaseException:
        partial_folder.abandon(folder)
        raise
    target = os.path.join(store, manifest.identity)
    aside = ""
    if os.path.isdir(target) and (manifest.identity == damaged or not is_complete(target)):
        aside = partial_folder.set_aside(target)
    partial_folder.finish(folder, target)
    if aside:
        partial_folder.remove_tree(aside)
    return manifest


def _write_shards(source: str, folder: str, tree: Tree, progress: Progress) -> List[_Written]:
    """Each worker writes the next shard that nobody has begun."""
    root = os.path.dirname(source) if os.path.isfile(source) else source
    classes = pack_tail.classes(tree.folders)
    done, total = 0, tree.bytes
    written = {}  # type: Dict[int, _Written]

    def write(part: _Range) -> Iterator[object]:
        return _Writer(os.fsencode(root), folder, tree, classes).write(part)

    ranges = _ranges(tree)
    for event in worker_pool.share(write, ranges, worker_pool.available()):
        if isinstance(event, _Written):
            written[event.number] = event
        else:
            done += int(event)
            progress(done, total)
    return [written[part.number] for part in ranges]


def _ranges(tree: Tree) -> List[_Range]:
    """Shards of about one size; the files of one sample (`1.jpg`, `1.cls`) stay together."""
    wanted = max(_SMALLEST, min(_LARGEST, tree.bytes // _SHARDS_WANTED))
    size = 1 << (wanted.bit_length() - 1)
    begins, filled = [0], 0
    for place, file in enumerate(tree.files):
        length = tar_headers.length(file.name, file.size)
        full = filled and filled + length > size * 5 // 4
        if full and _stem(file.name) != _stem(tree.files[place - 1].name):
            begins.append(place)
            filled = 0
        filled += length
    ranges, names_at = [], 0
    for number, (begin, end) in enumerate(zip(begins, begins[1:] + [len(tree.files)])):
        ranges.append(_Range(number, begin, end, names_at, end == len(tree.files)))
        names_at += sum(len(file.name) for file in tree.files[begin:end])
    return ranges


def _stem(name: bytes) -> bytes:
    folder, slash, base = name.rpartition(b"/")
    return folder + slash + base.partition(b".")[0]


class _Writer:
    """Runs in a process of its own."""

    def __init__(self, root: bytes, folder: str, tree: Tree, classes: Dict[bytes, int]) -> None:
        self._root = root
        self._folder = folder
        self._tree = tree
        self._classes = classes
        self._digest = tree_digest()
        self._crcs = []  # type: List[int]
        self._size = 0

    def write(self, part: _Range) -> Iterator[object]:
        """How many bytes were packed since the last word; at the end, what was written."""
        name, records = pack_format.shard_name(part.number), []
        names_at, told = part.names_at, 0
        with open(os.path.join(self._folder, name), "wb") as self._stream:
            for file in self._tree.files[part.begin : part.end]:
                for size in self._add_file(file):
                    told += size
                    if told >= _REPORT:
                        yield told
                        told = 0
                records.append(self._record(file, names_at, part.number))
                names_at += len(file.name)
            if part.last:
                self._add(_tail(self._tree)[0])
            self._add(tar_headers.END)
            self._stream.flush()
            os.fsync(self._stream.fileno())
        yield told
        shard = Shard(name, self._size, self._digest.hexdigest(), self._crcs)
        yield _Written(part.number, shard, b"".join(records))

    def _add_file(self, file: ListedFile) -> Iterator[int]:
        path, left = os.path.join(self._root, file.name), file.size
        (mode,) = tar_headers.kept_modes([file.mode])
        self._add(tar_headers.header(file.name, size=file.size, mode=mode, mtime=TIME))
        self._at, self._crc, self._mode = self._size, 0, mode
        try:
            with open(path, "rb", buffering=0) as stream:
                for piece in iter(lambda: stream.read(_PIECE), b""):
                    left -= len(piece)
                    self._crc = zlib.crc32(piece, self._crc)
                    self._add(piece)
                    yield len(piece)
        except OSError as problem:
            raise _Changed(str(unreadable(path, problem)))
        if left:
            raise _Changed("{} changed while it was packed".format(os.fsdecode(path)))
        self._add(bytes(tar_headers.padding(file.size)))

    def _record(self, file: ListedFile, names_at: int, shard: int) -> bytes:
        first, inside, _ = file.name.partition(b"/")
        label = self._classes[first] if inside else NO_CLASS
        return RECORD.pack(
            self._at, file.size, TIME * 10**9, names_at, len(file.name), 0,
            shard, self._crc & 0xFFFFFFFF, self._mode, FILE, label, 0,
        )  # fmt: skip

    def _add(self, piece: bytes) -> None:
        self._digest.update(piece)
        rest = memoryview(piece)
        while rest:
            room = BLOCK - self._size % BLOCK
            if room == BLOCK:
                self._crcs.append(0)
            part, rest = rest[:room], rest[room:]
            self._crcs[-1] = zlib.crc32(part, self._crcs[-1]) & 0xFFFFFFFF
            self._size += len(part)
        self._stream.write(piece)


class _Changed(CannotPack):
    """Crosses from a worker to its parent, so it is made of one text."""

    def __init__(self, what: str) -> None:
        super().__init__(what, "", "run the command again when no program writes into the folder")


def _tail(tree: Tree) -> Tuple[bytes, List[bytes]]:
    """Links and folders, whose names come after those of the files."""
    names_at = sum(len(file.name) for file in tree.files)
    return pack_tail.tail(tree.links, tree.folders, names_at)


def _describe(folder: str, name: str, tree: Tree, written: List[_Written]) -> Manifest:
    """Write the index and, last, the manifest."""
    texts = [file.name for file in tree.files]
    texts += [entry.name + entry.target for entry in tree.links + tree.folders]
    layout = IndexLayout(
        len(tree.files), len(tree.links), len(tree.folders), sum(len(text) for text in texts)
    )
    records = [part.records for part in written] + _tail(tree)[1]
    index = layout.header() + b"".join(records) + b"".join(texts)
    files.write_whole(os.path.join(folder, pack_format.INDEX), index)
    digest = hashlib.sha256(index).hexdigest()
    shards = [part.shard for part in written]
    manifest = Manifest(name, "", len(tree.files), tree.bytes, len(index), digest, shards)
    manifest = manifest._replace(digest=pack_format.digest_of(manifest))
    files.write_json(os.path.join(folder, pack_format.MANIFEST), pack_format.to_json(manifest))
    return manifest
