"""The bytes of a push: taken as they come, proven, and put in place."""

import fcntl
import os
import zlib
from typing import Any, Dict, List

from ..data.tree_digest import digest_like
from ..files import remove_if_there, sync_folder
from . import push_protocol
from .push_protocol import File, ReceivedParcel

CHUNK = 1 << 20  # bytes that are compressed together
PIECE = 256 << 10  # bytes that stay in the processor's cache until they are hashed and written
_STRETCH = 2 << 20  # bytes that the disk is given at once
_PIPE = 1 << 20  # bytes that may wait for us; with the usual 64 KiB sshd waits instead
_SET_PIPE_SIZE = 1031  # on Linux; Python has a name for it since 3.10


def take(ordered: List[ReceivedParcel]) -> Dict[str, List[str]]:
    """Take the bytes that follow, prove every file, rename what is whole.

    The files that were not what they should be are named; they must be sent again.
    """
    damaged = {}
    _widen_pipe()
    for parcel in ordered:
        wrong = [file.name for file in parcel.files if not _take_one(parcel, file)]
        if wrong:
            damaged[parcel.spelling] = wrong
        else:
            _put_in_place(parcel)
    return damaged


def _widen_pipe() -> None:
    try:
        fcntl.fcntl(push_protocol.DESCRIPTOR, _SET_PIPE_SIZE, _PIPE)
    except OSError:
        pass  # no pipe, or too many large ones: it is slower


def compressed(chunk: memoryview) -> bytes:
    """A chunk as it travels when it is worth compressing: its length there, then itself."""
    small = zlib.compress(chunk, 1)
    return push_protocol.LENGTH.pack(len(small)) + small


def _chunk(parcel: ReceivedParcel, left: int, room: memoryview) -> memoryview:
    """The next chunk of a file of which so many bytes are still to come; in `room` if it fits."""
    if not parcel.compressed:
        return push_protocol.filled(room[:left])
    length = push_protocol.LENGTH.unpack(push_protocol.read(push_protocol.LENGTH.size))[0]
    try:
        whole = zlib.decompressobj().decompress(
            push_protocol.read(min(length, 2 * CHUNK)), min(CHUNK, left)
        )
    except zlib.error:
        raise push_protocol.SenderGone()
    if not whole:
        raise push_protocol.SenderGone()
    return memoryview(whole)


def _take_one(parcel: ReceivedParcel, file: File) -> bool:
    """Add what comes to what is there; whether the whole is proven."""
    path = parcel.path(file)
    digest, known, left = digest_like(file.digest), file.size - file.comes, file.comes
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
    if digest.hexdigest() == file.digest:
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


def _put_in_place(parcel: ReceivedParcel) -> None:
    if os.path.isdir(parcel.partial):
        sync_folder(parcel.partial)
    try:
        os.rename(parcel.partial, parcel.target)
    except OSError:
        if not parcel.is_there:
            raise
        _drop(parcel.partial)  # somebody else sent the same thing first
    sync_folder(os.path.dirname(parcel.target))


def take_down(parcel: ReceivedParcel) -> None:
    """Make what is in place partial again, so that it is completed and proven as if it came now."""
    if os.path.exists(parcel.partial):
        _drop(parcel.target)
    else:
        os.rename(parcel.target, parcel.partial)


def _drop(path: str) -> None:
    if os.path.isdir(path):
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    else:
        remove_if_there(path)
