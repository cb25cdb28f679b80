"""The far end of a push: what is missing here, the bytes that are, and the proof that all came.

A push is one conversation. The sender asks what is missing and is told; it orders what shall be
taken, the bytes follow, and it is told what was damaged. A sender that has nothing to order hangs
up after the first answer.

Everything that is sent is named by its digest. It grows in `<target>.partial`, whoever sends it and
however often the connection breaks, and is renamed when every file has the digest it should have.
Two senders may write the same partial at once: both write the same bytes to the same places.
"""

import errno
import os
import sys
from typing import List

from ..files import is_still_there
from ..own_program import program_path
from .push_protocol import Json, ReceivedParcel, SenderGone, answer, next_message, parcels

NO_SPACE = 75  # the exit code when the disk or a quota is full
CUT = 76  # when the sender stopped in the middle, or must ask again
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(words: List[str]) -> int:
    try:
        answer(missing(next_message()))
        answer(_taken(next_message()))
    except (SenderGone, FileNotFoundError):
        # Somebody else may have completed and renamed the same parcel: the sender asks again.
        return CUT
    except OSError as problem:
        if problem.errno not in _FULL:
            raise
        sys.stderr.write("{}\n".format(problem))
        return NO_SPACE
    return 0


def _taken(order: List[Json]) -> Json:
    from .write_received import take  # who asks in vain does not wait for it

    return {"damaged": take(parcels(order))}


def missing(question: List[Json]) -> Json:
    """What is missing, and whether there is room; if so, the folders for it are made."""
    is_still_there(program_path())
    absent = [parcel for parcel in parcels(question) if not _is_here(parcel)]
    arrived = {
        parcel.spelling: [parcel.arrived(file) for file in parcel.files] for parcel in absent
    }
    room = _make_room(absent) if absent else {}
    return {"missing": arrived, "room": room, "rsync": _has("rsync")}


def _is_here(parcel: ReceivedParcel) -> bool:
    """Whether nothing of it need come; if something must, what is here is where it shall grow."""
    if not is_still_there(parcel.target):
        return False
    if parcel.is_complete and not parcel.suspect:
        return True
    from .write_received import take_down

    take_down(parcel)
    return False


def _has(program: str) -> bool:
    # Not by shutil, which brings every compressor along: a push of nothing new waits for it.
    return any(os.access(os.path.join(path, program), os.X_OK) for path in os.get_exec_path())


def _make_room(absent: List[ReceivedParcel]) -> Json:
    from ..data.free_space import free_here

    needed_bytes = needed_files = 0
    for parcel in absent:
        needed_bytes += sum(file.size - parcel.arrived(file) for file in parcel.files)
        needed_files += 1 + sum(not os.path.exists(parcel.path(file)) for file in parcel.files)
    room = free_here(os.path.dirname(absent[0].target))
    short = [
        what._asdict()
        for what in room
        if (what.unit == "bytes" and what.free < needed_bytes)
        or (what.unit == "files" and what.free < needed_files)
    ]
    stripes = 0
    if not short:
        stripes = max([_make_folders(parcel) for parcel in absent])
    return {"bytes": needed_bytes, "files": needed_files, "short": short, "stripes": stripes}


def _make_folders(parcel: ReceivedParcel) -> int:
    """Over how many servers Lustre will spread its large files, if it was told so now."""
    from ..data.free_space import prepare_stripes

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
