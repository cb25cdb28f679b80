"""Shards that arrive while the program already trains.

The program is given a folder that holds index and manifest from the start. Each shard appears in it
whole and checked, in order; one that is not there yet is read from where the pack lies. Whoever
reads the folder therefore finds every sample, at any moment.
"""

import fcntl
import os
import signal
import sys
import time
from contextlib import contextmanager
from typing import Callable, Iterator, List

from .. import files, partial_folder
from . import pack_proof, stage
from .blocks import blocks_of, copy_blocks
from .free_space import free_memory
from .pack_format import INDEX, MANIFEST, BadPack, Manifest
from .pack_proof import is_as_made, open_manifest

ENDING = ".arriving"
SOURCE = "arriving-from"  # in the folder: where the whole pack lies
PROBLEM = "arriving-stopped"  # in the folder: why no more shards come
_COMING = "coming"  # in the folder: shards that are not whole yet
_READ_THROUGH = 0.5  # of the free memory
_AT_ONCE = 4  # shards that are copied together, so that several storage targets are used

_carriers = []  # type: List[int]


def begin(pack_folder: str, target_parent: str) -> str:
    """A folder that can be read at once; a process of ours goes on to fill it."""
    pack_folder = os.path.abspath(pack_folder)
    manifest = open_manifest(pack_folder)
    target = os.path.join(target_parent, manifest.identity + ENDING)
    if not os.path.isdir(target):
        _make(pack_folder, target, manifest)
    else:
        pack_proof.begin(target, manifest)  # what was proven days ago is proven anew
    _carriers.append(_start(lambda: carry(pack_folder, target, manifest)))
    return target


def begin_proof(folder: str) -> None:
    """Have a process of ours read all shards of a folder that is read where it lies."""
    manifest = open_manifest(folder)
    _carriers.append(_start(lambda: pack_proof.prove(folder, manifest)))


def _make(pack_folder: str, target: str, manifest: Manifest) -> None:
    target_parent = os.path.dirname(target)
    os.makedirs(target_parent, exist_ok=True)
    folder = partial_folder.begin(target_parent, os.path.basename(target))
    try:
        stage.describe(pack_folder, folder.path, manifest)
        pack_proof.begin(folder.path, manifest)
        for name in (INDEX, MANIFEST):
            files.sync_file(os.path.join(folder.path, name))
        files.write_whole(os.path.join(folder.path, SOURCE), os.fsencode(pack_folder))
    except BaseException:
        partial_folder.abandon(folder)
        raise
    partial_folder.finish(folder, target)


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


def finish(patience: float) -> None:
    """Wait for the processes that still fill or prove folders, but not for ever."""
    until = time.monotonic() + patience
    while _carriers and time.monotonic() < until:
        try:
            if os.waitpid(_carriers[-1], os.WNOHANG)[0]:
                _carriers.pop()
                continue
        except ChildProcessError:
            _carriers.pop()
            continue
        time.sleep(0.02)


def _start(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.nice(5)  # the training comes first
        work()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(0)
    raise AssertionError("unreachable")


def carry(pack_folder: str, target: str, manifest: Manifest) -> None:
    """Bring every shard, as long as there is room; the program can do without."""
    try:
        with _alone(target):
            partial_folder.remove_tree(os.path.join(target, _COMING))
            files.remove_if_there(os.path.join(target, PROBLEM))
            _prove_arrived(target, manifest)
            missing = _missing(target, manifest)
            for first in range(0, len(missing), _AT_ONCE):
                _bring(pack_folder, target, manifest, missing[first : first + _AT_ONCE])
    except BadPack as problem:
        if os.path.isdir(target):  # otherwise the job is over
            pack_proof.note_damage(target, str(problem))
    except OSError as problem:
        if os.path.isdir(target):
            files.write_whole(os.path.join(target, PROBLEM), str(problem))


def stopped(folder: str) -> str:
    """Why no more shards come, if so: they are read from where the pack lies."""
    try:
        with open(os.path.join(folder, PROBLEM)) as stream:
            return stream.read()
    except OSError:
        return ""


def _prove_arrived(target: str, manifest: Manifest) -> None:
    """Prove what came for an earlier job; a shard that is damaged here comes once more.

    What is larger than memory would only be read for this: its samples are compared one by one.
    """
    if sum(shard.size for shard in manifest.shards) > _READ_THROUGH * free_memory():
        return
    for number, shard in enumerate(manifest.shards):
        if not os.path.exists(os.path.join(target, shard.name)):
            continue
        if is_as_made(target, shard):
            pack_proof.mark(target, number)
        else:
            os.unlink(os.path.join(target, shard.name))


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
            pack_proof.mark(target, number)
    finally:
        partial_folder.remove_tree(coming)
