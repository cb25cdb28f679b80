"""A job's own folder on its node: under a name that nobody can guess, closed to everybody else.

`job-folder --owner PID [--all-nodes] [FOLDER]` makes one below FOLDER, or elsewhere if others
could meddle with it there, and prints where. `job-folder --at PATH` makes the folder that another
node of the job has chosen.

    <base>/rabaska-<16 hex digits>/
      owner.json   whose it is: what its maker left when it was killed is removed by the next job
      env/         the environment, where the job script makes one
      job/         code, data and what the program puts there
"""

import argparse
import os
import re
import socket
import sys
import tempfile
import time
from typing import Iterator, List, Mapping, Optional

from .. import files, partial_folder, private_files, processes
from ..data import free_space

FOLDER = "RABASKA_SPACE"  # set by a job script that made one for the agent

_OWNER = "owner.json"
_JOB = "job"
_NAME = re.compile(re.escape(private_files.PREFIX) + r"[0-9a-f]{16}\Z")
_USUAL = ("/tmp", "/var/tmp")
_FORGOTTEN = 45 * 24 * 3600  # seconds: longer than any job


def main(argv: List[str]) -> int:
    parser = argparse.ArgumentParser(prog="job-folder")
    parser.add_argument("--all-nodes", action="store_true", help="one path for many nodes")
    parser.add_argument("--owner", type=int, metavar="PID", help="the script, later the agent")
    parser.add_argument("--at", metavar="PATH", help="the folder that the first node has chosen")
    parser.add_argument("folder", nargs="?", default="")
    options = parser.parse_args(argv)
    try:
        if options.at:
            make_at(options.at)
        else:
            path = make(options.folder, all_nodes=options.all_nodes, owner=options.owner)
            sys.stdout.write(path + "\n")
    except OSError as problem:
        host = socket.gethostname()
        sys.stderr.write("there is no private folder on {}: {}\n".format(host, _words(problem)))
        return 1
    return 0


def make(wanted: str, *, all_nodes: bool = False, owner: Optional[int] = None) -> str:
    """A new folder below `wanted`, or below the next best place; OSError if there is none.

    The path that is meant for many nodes leads through no folder that somebody else could have
    prepared on one of them.
    """
    problem = OSError("no folder for temporary files can be written to")
    for base in _bases(wanted, all_nodes):
        try:
            path = private_files.new_folder(base)
        except OSError as error:
            problem = error
            if wanted and base == os.path.abspath(wanted):
                # Not on standard output, where the job script reads the path.
                message = "rabaska: {} is not used: {}\n".format(wanted, _words(error))
                sys.stderr.write(message)
            continue
        _sweep(base)
        with free_space.named_when_full(path):
            _sign(path, os.getpid() if owner is None else owner)
        return path
    raise problem


def _words(problem: OSError) -> str:
    return problem.strerror or str(problem)


def _bases(wanted: str, all_nodes: bool) -> Iterator[str]:
    if wanted:
        wanted = os.path.abspath(wanted)
        above = private_files.open_to_all_above(wanted)
        if not (all_nodes and above):
            yield wanted
        if above:
            yield above
    yield tempfile.gettempdir()
    for usual in _USUAL:
        yield usual


def given(environment: Mapping[str, str]) -> str:
    """The folder that the script of this very job made; "" where it made none.

    Variables travel from job to job, so its name alone proves nothing; but the script became the
    agent, and that process has signed it.
    """
    path = environment.get(FOLDER, "")
    owner = _read(path) if path and not private_files.not_ours(path) else None
    here = processes.boot_id(), os.getpid()
    return path if owner is not None and (owner.get("boot"), owner.get("pid")) == here else ""


def job_folder(path: str) -> str:
    """Make the part of it that one job uses; NotPrivate where it is not ours alone."""
    why = private_files.not_ours(path)
    if why:
        raise private_files.NotPrivate(why)
    folder = os.path.join(path, _JOB)
    os.mkdir(folder, 0o700)
    return folder


def make_at(path: str) -> None:
    """Make this very folder, unless it is ours already; NotPrivate when it is somebody else's."""
    why = private_files.danger(os.path.dirname(path))
    if why:
        raise private_files.NotPrivate(why)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass  # the first node, or a disk that nodes share
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        os.mkdir(path, 0o700)
    why = private_files.not_ours(path)
    if why:
        raise private_files.NotPrivate(why)
    if not os.path.exists(os.path.join(path, _OWNER)):
        _sign(path, None)


def remove(path: str) -> None:
    """Remove a folder that `make` made, read-only folders inside included."""
    if _NAME.match(os.path.basename(path)) and not private_files.not_ours(path):
        partial_folder.remove_tree(path)


def remove_guest(path: str) -> None:
    """Remove a folder that `make_at` made on this node; the first node removes its own."""
    owner = _read(path)
    if owner is not None and owner.get("pid") is None and owner.get("host") == socket.gethostname():
        remove(path)


def _sign(path: str, pid: Optional[int]) -> None:
    owner = {
        "host": socket.gethostname(),
        "boot": processes.boot_id(),
        "pid": pid,
        "started": processes.start_id(pid) if pid is not None else None,
        "time": time.time(),
    }
    files.write_json(os.path.join(path, _OWNER), owner)


def _sweep(base: str) -> None:
    """Remove what jobs of ours left here when they were killed."""
    try:
        names = os.listdir(base)
    except OSError:
        return  # a folder in which we may make folders, and not look
    for name in names:
        path = os.path.join(base, name)
        if _NAME.match(name) and not private_files.not_ours(path) and _is_left(path):
            try:
                partial_folder.remove_tree(path)
            except OSError:
                continue  # its maker may be at it


def _is_left(path: str) -> bool:
    """Whether nobody can need it any more. Of another node's folder on a shared disk, and of one
    that was made a moment ago, nothing is known."""
    owner = _read(path)
    if owner is None or owner.get("host") != socket.gethostname():
        return False
    pid, started = owner.get("pid"), owner.get("started")
    if pid is None or started is None:
        return time.time() - float(owner.get("time", 0)) > _FORGOTTEN
    kernel, _, space = str(owner.get("boot")).partition(" ")
    now, _, own_space = processes.boot_id().partition(" ")
    if kernel != now:
        return True
    return space == own_space and not processes.is_alive(int(pid), str(started))


def _read(path: str) -> Optional[files.Json]:
    try:
        return files.read_json(os.path.join(path, _OWNER))
    except (OSError, ValueError):
        return None
