"""Files and folders copied so that they are there complete, durably, or as they were before.

What a running program writes may change while it is copied. A file that is replaced by a rename
stays readable through the descriptor that was opened first, however often it is replaced; one that
is rewritten in place shows it by its size or time, and is copied again. Of a folder all files are
held by hard links first, so that they are of one save.
"""

import errno
import os
import shutil
import tempfile
from contextlib import contextmanager
from typing import Callable, Dict, Iterator, Tuple

from .. import files, partial_folder

CHANGED = "it changes faster than it can be copied"
REPLACED = ".replaced" + files.PARTIAL  # a folder that is about to be replaced by a newer one
_BLOCK = 1 << 20
_AT_WORKING_FOLDER, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE

Going = Callable[[], bool]  # whether there is time to go on
State = Tuple[int, int, int]  # inode, size and time of a file


class Changed(OSError):
    """Something changed while it was copied."""


class OutOfTime(OSError):
    """There was no time to copy all of it."""


def always() -> bool:
    return True


def copy_whole(source: str, target: str, going: Going = always) -> int:
    """Copy a file (or a link); its size. `target` is as it was before when that fails."""
    fresh = os.path.join(
        os.path.dirname(target), partial_folder.temporary_name(os.path.basename(target))
    )
    try:
        size = _copy(source, fresh, going)
        os.replace(fresh, target)
    except BaseException:
        files.remove_if_there(fresh)
        raise
    files.sync_folder(os.path.dirname(target))
    return size


def make_link(target: str, leads_to: str) -> None:
    """Put a symbolic link in the place of `target`, at one moment."""
    fresh = os.path.join(
        os.path.dirname(target), partial_folder.temporary_name(os.path.basename(target))
    )
    try:
        os.symlink(leads_to, fresh)
        os.replace(fresh, target)
    except BaseException:
        files.remove_if_there(fresh)
        raise
    files.sync_folder(os.path.dirname(target))


def _copy(source: str, fresh: str, going: Going) -> int:
    if os.path.islink(source):
        os.symlink(os.readlink(source), fresh)
        return 0
    try:
        reader = open(source, "rb")
    except FileNotFoundError:
        raise Changed(errno.EBUSY, "it was removed while it was copied", source)
    with reader, open(fresh, "wb") as writer:
        before = os.fstat(reader.fileno())
        left = before.st_size  # no more: a log may grow faster than it is copied
        while left > 0:
            if not going():
                raise OutOfTime(errno.ETIME, "there was no time left to copy it")
            block = reader.read(min(_BLOCK, left))
            if not block:
                break
            writer.write(block)
            left -= len(block)
        writer.flush()
        os.fsync(writer.fileno())
        if state(os.fstat(reader.fileno())) != state(before):
            raise Changed(errno.EBUSY, CHANGED, source)
        # By descriptors: by now the name may be that of a newer file.
        os.fchmod(writer.fileno(), before.st_mode & 0o777)
        os.utime(writer.fileno(), ns=(before.st_atime_ns, before.st_mtime_ns))
    return before.st_size


def state(status: os.stat_result) -> State:
    return status.st_ino, status.st_size, status.st_mtime_ns


def states(folder: str) -> Dict[str, State]:
    """Every file below a folder, as it is now."""
    found = {}  # type: Dict[str, State]
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            try:
                found[os.path.relpath(path, folder)] = state(os.stat(path))
            except OSError:
                continue  # gone since it was listed, or a link to nowhere
    return found


def copy_folder_whole(source: str, target: str, room: str, going: Going = always) -> int:
    """Copy a folder; its size. It appears complete, or stays as it was before.

    `room` is a folder of ours on the same disk as the source.
    """
    size = 0
    made = partial_folder.begin(os.path.dirname(target), os.path.basename(target))
    try:
        with _held(source, room) as held:
            for name, path in sorted(held.items()):
                fresh = os.path.join(made.path, name)
                os.makedirs(os.path.dirname(fresh), exist_ok=True)
                size += _copy(os.path.realpath(path), fresh, going)
        for parent, _, _ in os.walk(made.path):
            files.sync_folder(parent)
        _take_place(made, target)
    except BaseException:
        if os.path.exists(made.path):
            partial_folder.remove_tree(made.path)
        raise
    return size


@contextmanager
def _held(folder: str, room: str) -> Iterator[Dict[str, str]]:
    """The files of a folder under names of our own, which keep them when they are replaced."""
    before = states(folder)
    made = tempfile.mkdtemp(prefix="held-", dir=room)
    try:
        held = {}  # type: Dict[str, str]
        for number, name in enumerate(sorted(before)):
            held[name] = _link(os.path.join(folder, name), os.path.join(made, str(number)))
        if states(folder) != before:
            raise Changed(errno.EBUSY, CHANGED, folder)
        yield held
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _link(path: str, fresh: str) -> str:
    """Another name of the same file; where there can be none, its own."""
    if os.path.islink(path):
        return path
    try:
        os.link(path, fresh)
    except FileNotFoundError:
        raise Changed(errno.EBUSY, CHANGED, path)
    except OSError:
        return path
    return fresh


def _take_place(made: partial_folder.PartialFolder, target: str) -> None:
    """Give a finished folder its name, also when an older one has it."""
    try:
        os.rename(made.path, target)
    except OSError as problem:
        if problem.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise
        _replace(made.path, target)
    os.close(made.lock)
    files.sync_folder(os.path.dirname(target))


def _replace(fresh: str, target: str) -> None:
    if _exchange(fresh, target):
        _remove(fresh)
        return
    # Killed between the two, `recover` brings the older one back.
    older = target + REPLACED
    _remove(older)
    os.rename(target, older)
    os.rename(fresh, target)
    _remove(older)


def _exchange(one: str, other: str) -> bool:
    """Swap two names at one moment; False where system or storage cannot."""
    try:
        import ctypes  # some clusters' Pythons were built without it

        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (ImportError, OSError, AttributeError):
        return False
    words = (ctypes.c_char_p(os.fsencode(one)), ctypes.c_char_p(os.fsencode(other)))
    here = ctypes.c_int(_AT_WORKING_FOLDER)
    return bool(renameat2(here, words[0], here, words[1], ctypes.c_uint(_EXCHANGE)) == 0)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        partial_folder.remove_tree(path)
    else:
        files.remove_if_there(path)


def recover(folder: str) -> None:
    """After a kill: older folders whose place is empty come back, half-made copies go."""
    for parent, inside, names in os.walk(folder):
        for name in [name for name in inside if name.endswith(REPLACED)]:
            older = os.path.join(parent, name)
            if os.path.lexists(older[: -len(REPLACED)]):
                _remove(older)
            else:
                os.rename(older, older[: -len(REPLACED)])
            inside.remove(name)
        for name in [name for name in inside + names if partial_folder.is_temporary(name)]:
            _remove(os.path.join(parent, name))
        inside[:] = [name for name in inside if not partial_folder.is_temporary(name)]


def remove_folder(path: str) -> None:
    """Take the name away first: half a deleted folder must not look like one."""
    doomed = os.path.join(
        os.path.dirname(path), partial_folder.temporary_name(os.path.basename(path))
    )
    try:
        os.rename(path, doomed)
    except FileNotFoundError:
        return
    _remove(doomed)
