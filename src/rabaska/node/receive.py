"""The far end of a push: what is missing here, the bytes that are, and the proof that all came.

Everything that is sent is named by its digest. It grows in `<target>.partial`, whoever sends it and
however often the connection breaks, and is renamed when every file has the digest it should have.
Two senders may write the same partial at once: both write the same bytes to the same places.
"""

import errno
import hashlib
import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Dict, List, NamedTuple, Optional

from .files import PARTIAL, remove_if_there, sync_folder
from .room import free_here, prepare_stripes

NO_SPACE = 75  # the exit code of `take` when the disk or a quota is full
CUT = 76  # when the sender stopped in the middle
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CHUNK = 1 << 20
_HASHING = 4  # files at once; hashlib lets go of the interpreter while it works

Json = Dict[str, Any]


class File(NamedTuple):
    name: str  # relative to the parcel; empty when the parcel is one file
    size: int
    sha256: str


class Parcel(NamedTuple):
    target: str
    files: List[File]

    @property
    def partial(self) -> str:
        return self.target + PARTIAL

    @property
    def is_there(self) -> bool:
        return os.path.exists(self.target)

    def path(self, file: File) -> str:
        return os.path.join(self.partial, file.name) if file.name else self.partial

    def arrived(self, file: File) -> int:
        """How many bytes of a file are here; all of it may still be wrong."""
        try:
            return min(os.path.getsize(self.path(file)), file.size)
        except OSError:
            return 0


def parcels_from(text: str) -> List[Parcel]:
    return [
        Parcel(each["target"], [File(*fields) for fields in each["files"]])
        for each in json.loads(text)
    ]


def main(words: List[str]) -> int:
    act = {"begin": begin, "finish": finish, "take": take}[words[0]]
    return act()


def begin() -> int:
    """Tell what is missing and how much room there is; make the folders if there is enough."""
    missing = [parcel for parcel in parcels_from(sys.stdin.read()) if not parcel.is_there]
    sizes = {parcel.target: [parcel.arrived(file) for file in parcel.files] for parcel in missing}  # type: Dict[str, List[int]]
    answer = {"missing": sizes, "rsync": shutil.which("rsync") is not None}  # type: Json
    if missing:
        answer["room"] = _make_room(missing)
    print(json.dumps(answer))
    return 0


def _make_room(missing: List[Parcel]) -> Json:
    needed_bytes = needed_files = 0
    for parcel in missing:
        needed_bytes += sum(file.size - parcel.arrived(file) for file in parcel.files)
        needed_files += 1 + sum(not os.path.exists(parcel.path(file)) for file in parcel.files)
    room = free_here(os.path.dirname(missing[0].target))
    short = [
        what._asdict()
        for what in room
        if (what.unit == "bytes" and what.free < needed_bytes)
        or (what.unit == "files" and what.free < needed_files)
    ]
    if not short:
        for parcel in missing:
            _make_folders(parcel)
    return {"bytes": needed_bytes, "files": needed_files, "short": short}


def _make_folders(parcel: Parcel) -> None:
    os.makedirs(os.path.dirname(parcel.partial), exist_ok=True)
    if not parcel.files or not parcel.files[0].name:
        return
    if not os.path.isdir(parcel.partial):
        os.makedirs(parcel.partial, exist_ok=True)
        prepare_stripes(parcel.partial, max(file.size for file in parcel.files))
    for folder in {os.path.dirname(parcel.path(file)) for file in parcel.files}:
        os.makedirs(folder, exist_ok=True)


def take() -> int:
    """Read a line that lists path, offset and length, then all those bytes one after another."""
    source = sys.stdin.buffer
    try:
        for path, offset, length in json.loads(source.readline().decode("utf-8")):
            if not _take_one(source, path, offset, length):
                return CUT
    except OSError as problem:
        sys.stderr.write("{}\n".format(problem))
        return NO_SPACE if problem.errno in _FULL else 1
    return 0


def _take_one(source: BinaryIO, path: str, offset: int, length: int) -> bool:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
    with open(descriptor, "wb", buffering=0) as stream:
        stream.seek(offset)
        while length:
            piece = source.read(min(_CHUNK, length))
            if not piece:
                return False
            _write_all(stream, piece)
            length -= len(piece)
    return True


def _write_all(stream: Any, piece: bytes) -> None:
    """Raw files may take less than they are given when the disk is nearly full."""
    while piece:
        piece = piece[stream.write(piece) :]


def finish() -> int:
    """Prove every file, rename what is whole, and tell which files must be sent again."""
    damaged = {}  # type: Dict[str, List[str]]
    for parcel in parcels_from(sys.stdin.read()):
        wrong = _finish_one(parcel)
        if wrong:
            damaged[parcel.target] = wrong
    print(json.dumps({"damaged": damaged}))
    return 0


def _finish_one(parcel: Parcel) -> List[str]:
    if parcel.is_there:
        _drop(parcel.partial)
        return []
    with ThreadPoolExecutor(_HASHING) as threads:
        wrong = [
            name
            for name in threads.map(lambda file: _wrong(parcel, file), parcel.files)
            if name is not None
        ]
    if not wrong:
        _put_in_place(parcel)
    return wrong


def _wrong(parcel: Parcel, file: File) -> Optional[str]:
    """The file's name if it is not what it should be; it is removed, to be sent again."""
    path = parcel.path(file)
    try:
        # Size first: a transfer cut short is the common case, and this costs no reading.
        if os.path.getsize(path) == file.size and _proven(path) == file.sha256:
            return None
    except FileNotFoundError:
        return file.name
    if os.path.getsize(path) >= file.size:
        remove_if_there(path)
    return file.name


def _proven(path: str) -> str:
    """The digest of a file that is on the disk for good."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for piece in iter(lambda: stream.read(_CHUNK), b""):
            digest.update(piece)
        os.fsync(stream.fileno())
    return digest.hexdigest()


def _put_in_place(parcel: Parcel) -> None:
    if os.path.isdir(parcel.partial):
        sync_folder(parcel.partial)
    try:
        os.rename(parcel.partial, parcel.target)
    except OSError:
        if not parcel.is_there:
            raise
        _drop(parcel.partial)  # somebody else sent the same thing first
    sync_folder(os.path.dirname(parcel.target))


def _drop(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        remove_if_there(path)
