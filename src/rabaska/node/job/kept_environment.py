"""The word `kept-env`: an environment that later jobs of the same user find on the node again.

`kept-env DIGEST PINS [LOCAL]` reads the lines that build it from standard input and prints the
folder. It builds once for each content; where nothing can be shared, in the job's own folder.

<LOCAL>/rabaska-<uid>/env-<digest>-<content>/         the environment; `complete` is written last
<LOCAL>/rabaska-<uid>/env-<digest>-<content>.in-use   locked: by its builder alone, or by the jobs
                                                      that use it, together
"""

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import Iterator, List, Mapping, Optional

from .. import files, partial_folder, private_files
from ..data import free_space, tier_choice

FOLDER = "RABASKA_ENV"
SPACE = "RABASKA_SPACE"

_IN_USE = ".in-use"
_COMPLETE = "complete"
_KEPT = 3 * 24 * 3600  # seconds that one is kept though nobody uses it
_YOUNG = 600  # seconds in which a job that was given one has surely locked it
_ROOM = 10 * 10**9  # bytes that a build may take; where there is less, the oldest go


def main(argv: List[str]) -> int:
    parser = argparse.ArgumentParser(prog="kept-env")
    parser.add_argument("digest")
    parser.add_argument("pins", help="the list of its packages")
    parser.add_argument("local", nargs="?", default="")
    options = parser.parse_args(argv)
    lines = sys.stdin.read()
    try:
        home = _home(options.local) if options.local else None
        if home is None:
            folder = os.path.join(os.environ[SPACE], "env")
            code = build(folder, lines)
        else:
            name = "env-{}-{}".format(options.digest, content_of(options.pins, lines))
            folder = os.path.join(home, name)
            code = provide(folder, lines)
    except OSError as problem:
        sys.stderr.write("{}\n".format(problem))
        return 1
    if code == 0:
        sys.stdout.write(folder + "\n")
    return code


def content_of(pins: str, lines: str) -> str:
    """One name for what it is made of: its packages, how it is built, and by which Python.

    And since which start of the node: what was not yet on the disk when its power failed is lost,
    though `complete` may be there.
    """
    with open(pins, "rb") as stream:
        text = stream.read()
    maker = shutil.which(lines.split()[0]) or ""
    facts = [lines, os.path.realpath(maker), str(os.stat(maker).st_mtime_ns) if maker else ""]
    facts.append(_this_start())
    return hashlib.sha256(text + b"\0" + os.fsencode("\0".join(facts))).hexdigest()[:16]


def _this_start() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as stream:
            return stream.read()
    except OSError:
        return ""


def provide(folder: str, lines: str) -> int:
    """The environment in `folder`, built unless it is there already; the exit code of the build."""
    # A job that uses it shares the lock, and may run for days: only who builds must be alone.
    with _holding(folder + _IN_USE, fcntl.LOCK_SH):
        if _is_usable(folder):
            _say("the environment is on this node already")
            return 0
    with _holding(folder + _IN_USE, fcntl.LOCK_EX):
        return 0 if _is_usable(folder) else _rebuild(folder, lines)


def _rebuild(folder: str, lines: str) -> int:
    make_room(os.path.dirname(folder))
    partial_folder.remove_tree(folder)
    code = build(folder, lines)
    if code == 0:
        files.write_whole(os.path.join(folder, _COMPLETE), "")
    else:
        partial_folder.remove_tree(folder)
    return code


def build(folder: str, lines: str) -> int:
    """Run the lines; what they print is for the job's output, not for whoever reads the path."""
    environment = dict(os.environ, **{FOLDER: folder})
    words = ["bash", "-e", "-c", lines]
    return subprocess.call(words, stdin=subprocess.DEVNULL, stdout=2, env=environment)


def _is_usable(folder: str) -> bool:
    """Whether it was built to its end, and its Python still starts."""
    if not os.path.exists(os.path.join(folder, _COMPLETE)):
        return False
    try:
        return subprocess.call([os.path.join(folder, "bin", "python"), "-c", ""]) == 0
    except OSError:
        return False


def make_room(home: str) -> None:
    """Remove environments that nobody uses: those of long ago, and for want of room the oldest."""
    marks = [os.path.join(home, name) for name in os.listdir(home) if name.endswith(_IN_USE)]
    for touched, mark in sorted((_touched(mark), mark) for mark in marks):
        age = time.time() - touched
        lacks = age > _YOUNG and free_space.disk_room(home)[0] < _ROOM
        if age > _KEPT or lacks:
            _remove_unused(mark)


def _touched(mark: str) -> float:
    try:
        return os.stat(mark).st_mtime
    except FileNotFoundError:  # another job has just removed it
        return time.time()


def _remove_unused(mark: str) -> None:
    try:
        lock = _locked(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # a job uses it
        return
    try:
        partial_folder.remove_tree(mark[: -len(_IN_USE)])
        files.remove_if_there(mark)
    finally:
        os.close(lock)


def use(environment: Mapping[str, str]) -> Optional[int]:
    """Hold the environment of this job for as long as this process lives; None: it is its own."""
    mark = environment.get(FOLDER, "") + _IN_USE
    if not os.path.isfile(mark):
        return None
    try:
        os.utime(mark)
        return _locked(mark, fcntl.LOCK_SH)
    except OSError:
        return None


@contextmanager
def _holding(mark: str, how: int) -> Iterator[None]:
    lock = _locked(mark, how)
    try:
        os.utime(mark)
        yield
    finally:
        os.close(lock)


def _locked(path: str, how: int) -> int:
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, how)
            if files.is_open_at(lock, path):
                return lock
        except OSError:
            os.close(lock)
            raise
        os.close(lock)  # it was removed while we waited, and others lock another one


def _home(root: str) -> Optional[str]:
    """Our own folder there, closed to everybody else; None, and why, where that cannot be."""
    if tier_choice.kind_of(root) == tier_choice.MEMORY:
        return None  # what stays there would take memory from other jobs
    home = os.path.join(root, "rabaska-{}".format(os.getuid()))
    why = private_files.claim(home)
    if why:
        _say("{} is not used: {}".format(home, why))
    return None if why else home


def _say(text: str) -> None:
    # Standard output is read by the job script.
    sys.stderr.write("rabaska: {}\n".format(text))
    sys.stderr.flush()
