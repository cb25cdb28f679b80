"""A full disk: which one it was, how large it is, and the line that makes room."""

import errno
import os
import re
import shutil
import socket
from typing import Callable, NamedTuple, Optional

from ..data import free_space
from ..record.out_of_memory import say_size
from ..record.plan import Plan

PATTERN = re.compile(r"No space left on device|\[Errno 28\]|\(os error 28\)")
_PATH = re.compile(r"No space left on device: '([^']+)'")
_NO_ROOM = 2**24  # bytes left on a disk that counts as full


class Disks(NamedTuple):
    """The folders that a program may have filled."""

    store: str
    local: str
    free: Callable[[str], int] = lambda folder: shutil.disk_usage(folder).free
    size: Callable[[str], int] = lambda folder: shutil.disk_usage(folder).total


class FullDisk(NamedTuple):
    said: str
    remedy: str


def path_in(line: str) -> str:
    """The file that could not be written, as Python names it; "" where it is not named."""
    named = _PATH.search(line)
    return named.group(1) if named else ""


def of_program(plan: Plan, line: str, disks: Disks) -> FullDisk:
    """For a program that printed `line`."""
    path = path_in(line)
    if _is_on(path, disks.store) or (not path and _is_full(disks.store, disks)):
        return of_storage(plan, line)
    if _is_on(path, disks.local) or (not path and _is_full(disks.local, disks)):
        said = "the node's own disk is full: {} ({})".format(named(disks.local, disks), line)
        return FullDisk(said, _more_local(plan))
    said = "a disk is full ({})".format(line)
    return FullDisk(said, "write to {output}, or make room there; then `rabaska run`")


def of_storage(plan: Plan, line: str) -> FullDisk:
    on = plan.origin.cluster or "here"
    remedy = (
        "make room (`rabaska storage --on {0}`, `rabaska clean --on {0}`), then "
        "`rabaska resume {1}`"
    )
    return FullDisk("the storage of {} is full ({})".format(on, line), remedy.format(on, plan.run))


def of_environment(plan: Plan, line: str, disks: Disks) -> FullDisk:
    """For an environment that is built on the node's disk, and did not fit there."""
    said = "the environment does not fit on the node's own disk: {} ({})"
    return FullDisk(said.format(named(disks.local, disks), line), _elsewhere(plan))


def of_preparation(plan: Plan, problem: OSError, disks: Disks) -> Optional[FullDisk]:
    """For a job that found no room for its code or data; None where that was not the problem."""
    path = problem.filename if isinstance(problem.filename, str) else ""
    if problem.errno != errno.ENOSPC or not path:
        return None
    line = "{}: '{}'".format(problem.strerror, path)
    if _is_on(path, disks.store):
        return of_storage(plan, line)
    said = "the node's own disk is full: {} ({})".format(named(path, disks), line)
    again = "`rabaska resume {}` tries again, on another node if there is one".format(plan.run)
    return FullDisk(
        said, "{}; if it is full because of this job, {}".format(again, _more_local(plan))
    )


def named(folder: str, disks: Disks) -> str:
    """`/lscratch on node3 has 512 MB in all`."""
    where = "{} on {}".format(disk_of(folder), socket.gethostname())
    try:
        folder = free_space.nearest(folder)
        size = disks.size(folder)
    except OSError:
        return where
    return "{} has {} in all".format(where, say_size(size))


def disk_of(folder: str) -> str:
    """The folder where the disk begins, as `df` names it."""
    path = os.path.realpath(folder)
    try:
        while path != "/" and not os.path.ismount(path):
            path = os.path.dirname(path)
    except OSError:
        return folder
    # The root of a node is named by the folder in it that was given.
    return path if path != "/" else folder


def _elsewhere(plan: Plan) -> str:
    table = "[cluster.{}.environment]".format(plan.origin.cluster or "here")
    if any("pip install" in line for line in plan.request.setup):
        keep = 'write `build = "once"` under {}: then it is kept in the store'.format(table)
    else:
        keep = "unpack it on shared storage and name that folder as `path` under {}".format(table)
    return "{}; or use a queue whose nodes have a larger disk; then `rabaska run`".format(keep)


def _more_local(plan: Plan) -> str:
    files = [dataset.name for dataset in plan.datasets if dataset.mode == "files"]
    fewer = 'set `as = "shards"` in [data.{}] to stage less'.format(files[0]) if files else ""
    more = ""
    if plan.origin.scheduler == "slurm":
        more = 'write `native = ["--tmp=100G"]` under [cluster.{}] to ask for more'.format(
            plan.origin.cluster
        )
    parts = [part for part in (fewer, more, "save to {output} instead of next to the code") if part]
    return "{}; then `rabaska run`".format(", or ".join(parts))


def _is_on(path: str, folder: str) -> bool:
    return bool(path and folder) and (path + "/").startswith(folder.rstrip("/") + "/")


def _is_full(folder: str, disks: Disks) -> bool:
    try:
        return bool(folder) and disks.free(folder) < _NO_ROOM
    except OSError:
        return False
