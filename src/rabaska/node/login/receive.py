"""The far end of a push: what is missing here, the bytes that are, and the proof that all came.

Everything that is sent is named by its digest. It grows in `<target>.partial`, whoever sends it and
however often the connection breaks, and is renamed when every file has the digest it should have.
Two senders may write the same partial at once: both write the same bytes to the same places.
"""

import errno
import fcntl
import hashlib
import json
import os
import shutil
import struct
import sys
import zlib
from typing import Any, Dict, List, NamedTuple

from ..files import PARTIAL, is_still_there, native, remove_if_there, sync_folder
from ..itself import program_path

NO_SPACE = 75  # the exit code of `take` when the disk or a quota is full
CUT = 76  # when the sender stopped in the middle, or must ask again
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
CHUNK = 1 << 20  # bytes that are compressed together
PIECE = 256 << 10  # bytes that stay in the processor's cache until they are hashed and written
_STRETCH = 2 << 20  # bytes that the disk is given at once
_PIPE = 1 << 20  # bytes that may wait for us; with the usual 64 KiB sshd waits instead
_SET_PIPE_SIZE = 1031  # on Linux; Python has a name for it since 3.10
_LENGTH = struct.Struct("<I")
_SENDER = 0  # the descriptor that bytes come from

Json = Dict[str, Any]


class SenderGone(Exception):
    """The bytes ended before all were there."""


class File(NamedTuple):
    name: str  # relative to the parcel; empty when the parcel is one file
    size: int
    sha256: str = ""  # not told when the question is only what is here
    comes: int = 0  # so many of its bytes follow the order, its last ones


class Parcel(NamedTuple):
    told: str  # the target as the sender spells it
    files: List[File]
    squeezed: bool = False  # its bytes come compressed, chunk by chunk

    @property
    def target(self) -> str:
        return native(self.told)

    @property
    def partial(self) -> str:
        return self.target + PARTIAL

    @property
    def is_there(self) -> bool:
        return os.path.exists(self.target)

    def path(self, file: File) -> str:
        return os.path.join(self.partial, native(file.name)) if file.name else self.partial

    def arrived(self, file: File) -> int:
        """How many bytes of a file are here; all of it may still be wrong."""
        try:
            return min(os.path.getsize(self.path(file)), file.size)
        except OSError:
            return 0


def main(words: List[str]) -> int:
    """`begin` or `take`, and how long the order is that stands before all else on our input."""
    act, length = words
    order = json.loads(bytes(_read(int(length))).decode("utf-8"))
    try:
        answer = {"begin": begin, "take": take}[act](order)
    except (SenderGone, FileNotFoundError):
        # Somebody else may have completed and renamed the same parcel: the sender asks again.
        return CUT
    except OSError as problem:
        if problem.errno not in _FULL:
            raise
        sys.stderr.write("{}\n".format(problem))
        return NO_SPACE
    print(json.dumps(answer))
    return 0


def _parcels(order: List[Json]) -> List[Parcel]:
    return [
        Parcel(
            each["target"], [File(*fields) for fields in each["files"]], each.get("squeezed", False)
        )
        for each in order
    ]


def _read(length: int) -> memoryview:
    """So many bytes from the sender, and not one more."""
    return _filled(memoryview(bytearray(length)))


def _filled(room: memoryview) -> memoryview:
    done = 0
    while done < len(room):
        came = os.readv(_SENDER, [room[done:]])
        if not came:
            raise SenderGone()
        done += came
    return room


def begin(order: List[Json]) -> Json:
    """What is missing, and whether there is room; if so, the folders for it are made."""
    is_still_there(program_path())
    missing = [parcel for parcel in _parcels(order) if not is_still_there(parcel.target)]
    arrived = {parcel.told: [parcel.arrived(file) for file in parcel.files] for parcel in missing}
    room = _make_room(missing) if missing else {}
    return {"missing": arrived, "room": room, "rsync": shutil.which("rsync") is not None}


def _make_room(missing: List[Parcel]) -> Json:
    from ..data.room import free_here  # `take` does not wait for it

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
    stripes = 0
    if not short:
        stripes = max([_make_folders(parcel) for parcel in missing])
    return {"bytes": needed_bytes, "files": needed_files, "short": short, "stripes": stripes}


def _make_folders(parcel: Parcel) -> int:
    """Over how many servers Lustre will spread its large files, if it was told so now."""
    from ..data.room import prepare_stripes

    stripes = None
    os.makedirs(os.path.dirname(parcel.partial), exist_ok=True)
    if not parcel.files or not parcel.files[0].name:
        return 0
    if not os.path.isdir(parcel.partial):
        os.makedirs(parcel.partial, exist_ok=True)
        stripes = prepare_stripes(parcel.partial, max(file.size for file in parcel.files))
    for folder in {os.path.dirname(parcel.path(file)) for file in parcel.files}:
        os.makedirs(folder, exist_ok=True)
    return stripes or 0


def take(order: List[Json]) -> Json:
    """Take the bytes that follow, prove every file, rename what is whole.

    The answer names the files that were not what they should be; they must be sent again.
    """
    damaged = {}
    _widen_pipe()
    for parcel in _parcels(order):
        wrong = [file.name for file in parcel.files if not _take_one(parcel, file)]
        if wrong:
            damaged[parcel.told] = wrong
        else:
            _put_in_place(parcel)
    return {"damaged": damaged}


def _widen_pipe() -> None:
    try:
        fcntl.fcntl(_SENDER, _SET_PIPE_SIZE, _PIPE)
    except OSError:
        pass  # no pipe, or too many large ones: it is slower


def squeezed(chunk: memoryview) -> bytes:
    """A chunk as it travels when it is worth compressing: its length there, then itself."""
    small = zlib.compress(chunk, 1)
    return _LENGTH.pack(len(small)) + small


def _chunk(parcel: Parcel, left: int, room: memoryview) -> memoryview:
    """The next chunk of a file of which so many bytes are still to come; in `room` if it fits."""
    if not parcel.squeezed:
        return _filled(room[:left])
    length = _LENGTH.unpack(_read(_LENGTH.size))[0]
    try:
        whole = zlib.decompressobj().decompress(_read(min(length, 2 * CHUNK)), min(CHUNK, left))
    except zlib.error:
        raise SenderGone()
    if not whole:
        raise SenderGone()
    return memoryview(whole)


def _take_one(parcel: Parcel, file: File) -> bool:
    """Add what comes to what is there; whether the whole is proven."""
    path = parcel.path(file)
    digest, known, left = hashlib.sha256(), file.size - file.comes, file.comes
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    with open(descriptor, "r+b", buffering=0) as stream:
        for start in range(0, known, CHUNK):
            digest.update(stream.read(min(CHUNK, known - start)))
        stream.seek(known)
        room = memoryview(bytearray(PIECE))
        while left:
            piece = _chunk(parcel, left, room)
            _write(stream, piece)
            digest.update(piece)
            left -= len(piece)
            _begin_to_write_out(descriptor, file.size - left, len(piece))
        stream.truncate(file.size)
        os.fsync(descriptor)
    if digest.hexdigest() == file.sha256:
        return True
    remove_if_there(path)
    return False


def _begin_to_write_out(descriptor: int, end: int, new: int) -> None:
    """Set the disk to work whenever a stretch is full, so that fsync finds little left to do."""
    full = end - end % _STRETCH
    if full <= end - new:
        return
    try:
        os.posix_fadvise(descriptor, full - _STRETCH, _STRETCH, os.POSIX_FADV_DONTNEED)
    except (AttributeError, OSError):
        pass  # a system that takes no advice writes later


def _write(stream: Any, piece: memoryview) -> None:
    """A raw file may take less than it is given when the disk is nearly full."""
    while piece:
        piece = piece[stream.write(piece) :]


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
