"""Saves that are there complete, durably, or as they were before; and the hooks for them."""

import contextlib
import errno
import functools
import itertools
import os
import shutil
import stat
import time
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from rabaska.training.watching.watcher import Watcher

PARTIAL = ".partial"  # no checkpoint is looked for in such a folder
_number = itertools.count(1)

_LARGE = 1 << 20  # bytes; from there on, writing takes as long as waiting
_AT_ONCE = 20  # small files of one checkpoint
_PER_SECOND = 1.0  # small files that are saved steadily

Save = Callable[..., Any]
Told = Callable[[float, Any], None]  # seconds that a save took, and where to; None: it failed
Begins = Callable[[], None]


def whole(
    save: Save,
    place: int,
    keyword: str,
    told: Told,
    endings: Sequence[str] = (),
    begins: Begins = lambda: None,
) -> Save:
    """`save`, whose path is its argument `keyword`, or the one in that `place`."""
    sparing = Sparing()

    @functools.wraps(save)
    def saved(*given: Any, **named: Any) -> Any:
        began, written = time.perf_counter(), None
        path = named.get(keyword) if keyword in named or len(given) <= place else given[place]
        begins()
        room = _room(path, tuple(endings))
        try:
            if room is None:
                result, written = save(*given, **named), path
                return result
            target, partial = room
            inside = os.path.join(partial, os.path.basename(target))
            if keyword in named:
                named[keyword] = inside
            else:
                given = (*given[:place], inside, *given[place + 1 :])
            write = functools.partial(save, *given, **named)
            result, written = _in_its_room(write, target, partial, sparing), target
            return result
        finally:
            told(time.perf_counter() - began, written)

    return saved


def _room(path: Any, endings: Tuple[str, ...]) -> Optional[Tuple[str, str]]:
    """The target and a new folder beside it; None when the program shall save by itself."""
    try:
        target = os.fspath(path)
        if not isinstance(target, str) or (endings and not target.endswith(endings)):
            return None
        ending = os.path.splitext(target)[1]
        target = os.path.realpath(target)
        # A link is followed, but to a name with another ending, which may mean another format.
        if os.path.splitext(target)[1] != ending or PARTIAL + os.sep in target:
            return None
        if not _replaceable(target):
            return None
        partial = "{}.{}-{}{}".format(target, os.getpid(), next(_number), PARTIAL)
        os.mkdir(partial)
    except (TypeError, OSError, ValueError):
        return None
    return target, partial


def _replaceable(target: str) -> bool:
    """Whether a rename may do what the program could have done by writing.

    A file that it may not write must refuse it in its own words, and one of somebody else, in a
    folder that both write to, must stay theirs. A second name of a file keeps the older save.
    """
    try:
        found = os.stat(target)
    except FileNotFoundError:
        return True
    own = found.st_uid == os.geteuid() or os.geteuid() == 0
    return stat.S_ISREG(found.st_mode) and own and _may_write(target)


def _may_write(path: str) -> bool:
    by_effect = os.access in os.supports_effective_ids
    return os.access(path, os.W_OK, effective_ids=by_effect)


class Sparing:
    """Says which saves are worth the wait for the disk: all but a flood of small new files."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at = clock()
        self._left = float(_AT_ONCE)

    def worth(self, size: int, replaces: bool) -> bool:
        if size >= _LARGE or replaces:
            return True
        now = self._clock()
        self._left = min(_AT_ONCE, self._left + (now - self._at) * _PER_SECOND)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


def _in_its_room(save: Save, target: str, partial: str, sparing: Sparing) -> Any:
    folder = os.path.dirname(target)
    try:
        result = save()
        for name in sorted(os.listdir(partial)):
            fresh, old = os.path.join(partial, name), os.path.join(folder, name)
            replaces = _made_alike(fresh, old)
            durable = sparing.worth(os.path.getsize(fresh), replaces)
            if durable:
                _sync(fresh)
            _put_in_place(fresh, old)
            if durable:
                _sync(folder)
    finally:
        _remove(partial)
    return result


def _made_alike(fresh: str, old: str) -> bool:
    """Give the new file owner, mode and rights of the old one; False when there is no old one."""
    try:
        found = os.stat(old)
    except OSError:
        return False
    now = os.stat(fresh)
    if (now.st_uid, now.st_gid) != (found.st_uid, found.st_gid):
        with contextlib.suppress(OSError):  # a group that we have left
            os.chown(fresh, found.st_uid, found.st_gid)
    with contextlib.suppress(OSError):
        os.chmod(fresh, stat.S_IMODE(found.st_mode))
    if hasattr(os, "listxattr"):
        # Lists of access rights among them. Some file systems have none.
        with contextlib.suppress(OSError):
            for name in os.listxattr(old):
                os.setxattr(fresh, name, os.getxattr(old, name))
    return True


def _put_in_place(fresh: str, old: str) -> None:
    try:
        os.replace(fresh, old)
    except OSError as problem:
        # A file that is mounted by itself, as containers do, can be written and not replaced.
        if problem.errno not in (errno.EBUSY, errno.EXDEV):
            raise
        shutil.copyfile(fresh, old)
        _sync(old)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        if not os.path.isdir(path):
            raise  # some network file systems refuse to sync a folder
    finally:
        os.close(descriptor)


def _remove(partial: str) -> None:
    try:
        for name in os.listdir(partial):
            os.unlink(os.path.join(partial, name))
        os.rmdir(partial)
    except OSError:
        pass  # the next job clears it away


def _make_whole(
    owner: Any, name: str, place: int, keyword: str, watcher: Watcher, *endings: str
) -> None:
    if hasattr(owner, name):
        save = getattr(owner, name)
        save = whole(save, place, keyword, watcher.saved, endings, watcher.save_begins)
        setattr(owner, name, save)


def _torch(module: Any, watcher: Watcher) -> None:
    _make_whole(module, "save", 1, "f", watcher)


def _numpy(module: Any, watcher: Watcher) -> None:
    for name in ("save", "savez", "savez_compressed"):
        if hasattr(module, name):
            # Data, for all that can be told; a state in this format is known by its name.
            save = getattr(module, name)
            save = whole(
                save,
                0,
                "file",
                lambda took, _: watcher.saved(took),
                begins=watcher.save_begins,
            )
            setattr(module, name, save)


def _safetensors(module: Any, watcher: Watcher) -> None:
    _make_whole(module, "save_file", 1, "filename", watcher)


def _keras(module: Any, watcher: Watcher) -> None:
    _make_whole(module, "save_model", 1, "filepath", watcher, ".keras")
    _make_whole(module, "save_weights_only", 1, "filepath", watcher, ".weights.h5")


def _keras_h5(module: Any, watcher: Watcher) -> None:
    _make_whole(module, "save_model_to_hdf5", 1, "filepath", watcher, ".h5", ".hdf5")


def _lightning(module: Any, watcher: Watcher) -> None:
    """Its own way moves a file from TMPDIR, which is a copy where that is another disk."""
    save = module._atomic_save

    @functools.wraps(save)
    def atomic_save(checkpoint: Any, filepath: Any) -> None:
        if os.path.isdir(os.path.dirname(os.path.abspath(str(filepath)))):
            module.torch.save(checkpoint, str(filepath))
        else:
            save(checkpoint, filepath)

    module._atomic_save = atomic_save


KNOWN: Dict[str, Callable[[Any, Watcher], None]] = {
    "torch.serialization": _torch,
    "numpy": _numpy,
    "safetensors.torch": _safetensors,
    "safetensors.numpy": _safetensors,
    "keras.src.saving.saving_lib": _keras,
    "keras.src.legacy.saving.legacy_h5_format": _keras_h5,
    "lightning.fabric.utilities.cloud_io": _lightning,
    "lightning_fabric.utilities.cloud_io": _lightning,
}
