"""Shards that arrive while the program already trains.

The program is given a folder that holds index and manifest from the start. Each shard appears in it
whole and checked, in order; one that is not there yet is read from where the pack lies. Whoever
reads the folder therefore finds every sample, at any moment.
"""

import fcntl
import os
import signal
import sys
from contextlib import contextmanager
from typing import Iterator, List

from .. import files, partial
from . import stage
from .blocks import blocks_of, copy_blocks
from .packs import INDEX, MANIFEST, DamagedPack, Manifest
from .sealed import open_manifest

ENDING = ".arriving"
SOURCE = "arriving-from"  # in the folder: where the whole pack lies
PROBLEM = "arriving-stopped"  # in the folder: why no more shards come
_COMING = "coming"  # in the folder: shards that are not whole yet
_AT_ONCE = 4  # shards that are copied together, so that several storage targets are used

_carriers = []  # type: List[int]


def begin(pack_folder: str, target_parent: str) -> str:
    """A folder that can be read at once; a process of ours goes on to fill it."""
    pack_folder = os.path.abspath(pack_folder)
    manifest = open_manifest(pack_folder)
    target = os.path.join(target_parent, manifest.identity + ENDING)
    if not os.path.isdir(target):
        _make(pack_folder, target, manifest)
    if _missing(target, manifest):
        _carriers.append(_start(pack_folder, target, manifest))
    return target


def _make(pack_folder: str, target: str, manifest: Manifest) -> None:
    target_parent = os.path.dirname(target)
    os.makedirs(target_parent, exist_ok=True)
    folder = partial.begin(target_parent, os.path.basename(target))
    try:
        stage.describe(pack_folder, folder.path, manifest)
        for name in (INDEX, MANIFEST):
            files.sync_file(os.path.join(folder.path, name))
        files.write_whole(os.path.join(folder.path, SOURCE), os.fsencode(pack_folder))
    except BaseException:
        partial.abandon(folder)
        raise
    partial.finish(folder, target)


def _missing(target: str, manifest: Manifest) -> List[int]:
    """The shards that have not arrived."""
    arrived = set(os.listdir(target))
    return [number for number, shard in enumerate(manifest.shards) if shard.name not in arrived]


def end() -> None:
    """End the processes that still fill folders."""
    while _carriers:
        pid = _carriers.pop()
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


def _start(pack_folder: str, target: str, manifest: Manifest) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.nice(5)  # the training comes first
        carry(pack_folder, target, manifest)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(0)
    raise AssertionError("unreachable")


def carry(pack_folder: str, target: str, manifest: Manifest) -> None:
    """Bring every shard, as long as there is room; the program can do without."""
    try:
        with _alone(target):
            partial.remove_tree(os.path.join(target, _COMING))
            files.remove_if_there(os.path.join(target, PROBLEM))
            missing = _missing(target, manifest)
            for first in range(0, len(missing), _AT_ONCE):
                _bring(pack_folder, target, manifest, missing[first : first + _AT_ONCE])
    except (OSError, DamagedPack) as problem:
        if os.path.isdir(target):  # otherwise the job is over
            files.write_whole(os.path.join(target, PROBLEM), str(problem))


@contextmanager
def _alone(target: str) -> Iterator[None]:
    """While nobody else fills the folder: runs that share it take turns, until it is full."""
    lock = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError:
        pass  # without locks no folder is shared
    try:
        yield
    finally:
        os.close(lock)


def _bring(pack_folder: str, target: str, manifest: Manifest, numbers: List[int]) -> None:
    coming = os.path.join(target, _COMING)
    os.mkdir(coming)
    try:
        for number in numbers:
            shard = manifest.shards[number]
            with open(os.path.join(coming, shard.name), "wb") as stream:
                stream.truncate(shard.size)
        for _ in copy_blocks(pack_folder, coming, manifest, blocks_of(manifest, numbers)):
            pass
        for number in numbers:
            name = manifest.shards[number].name
            # A shared copy is kept for days: a crash of the node must not leave a shard of zeros.
            files.sync_file(os.path.join(coming, name))
            os.rename(os.path.join(coming, name), os.path.join(target, name))
    finally:
        partial.remove_tree(coming)
