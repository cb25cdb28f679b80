"""A folder with what was downloaded: from an address, or by a command. It appears whole."""

import fcntl
import hashlib
import json
import os
import subprocess
from contextlib import contextmanager
from typing import Callable, Iterator, NamedTuple, Tuple

from .. import files, partial_folder
from . import unpack_archive
from .download import CannotDownload, download, file_name, shown

_COMPLETE = "complete.json"  # in a workshop: all of it has arrived
_LAST_LINES = 20  # of a command that failed
_FETCH = "RABASKA_FETCH"
# The command may hold a token, and everybody can read a command line.
_EVALUATE = 'command=${0}; unset {0}; eval "$command"'.format(_FETCH)

Moved = Callable[[int, int], None]


class Source(NamedTuple):
    """Where it comes from: an address, or a command."""

    url: str = ""
    sha256: str = ""
    fetch: str = ""
    unpack: bool = True

    @property
    def key(self) -> str:
        """Another address, digest or command is another thing."""
        text = json.dumps([self.url, self.sha256, self.fetch, self.unpack])
        return hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]


def bring(source: Source, target: str, moved: Moved) -> Tuple[str, str]:
    """The folder `target` with what was downloaded, and its digest where it was one file."""
    with workshop(target) as work:
        if os.path.isdir(target):
            return target, ""
        content, sha256 = fill(source, work, moved)
        os.rename(content, target)
        discard(work)
    return target, sha256


@contextmanager
def workshop(target: str) -> Iterator[str]:
    """The folder in which `target` is made, by one at a time: who came second waits.

    What an interrupted command left there is used by the next.
    """
    work = target + files.PARTIAL
    while True:
        os.makedirs(work, exist_ok=True)
        lock = os.open(work, os.O_RDONLY)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
            except OSError:
                pass  # a file system without locks
            if files.is_open_at(lock, work):  # else who came first has removed it
                yield work
                return
        finally:
            os.close(lock)


def discard(work: str) -> None:
    """Remove all of it; what a killed removal leaves does not count as complete."""
    files.remove_if_there(os.path.join(work, _COMPLETE))
    partial_folder.remove_tree(work)


def fill(source: Source, work: str, moved: Moved) -> Tuple[str, str]:
    """The folder below `work` with what was downloaded, and its digest where it was one file."""
    content, mark = os.path.join(work, "content"), os.path.join(work, _COMPLETE)
    known = files.read_json(mark)
    if known is not None and os.path.isdir(content):
        return content, known["sha256"]
    sha256 = _fetched(source, content) if source.fetch else _downloaded(source, work, moved)
    files.sync_file_system(work)
    files.write_json(mark, {"sha256": sha256})
    return content, sha256


def _fetched(source: Source, content: str) -> str:
    os.makedirs(content, exist_ok=True)
    _run(source.fetch, content)
    return ""


def _downloaded(source: Source, work: str, moved: Moved) -> str:
    content, arriving = os.path.join(work, "content"), os.path.join(work, "arriving")
    os.makedirs(arriving, exist_ok=True)
    path = os.path.join(arriving, file_name(source.url))
    arrived = download(source.url, path, source.sha256, moved)
    if os.path.isdir(content):
        partial_folder.remove_tree(content)  # half unpacked
    os.mkdir(content)
    if source.unpack and unpack_archive.is_archive(path):
        try:
            unpack(path, content, shown(source.url))
        except CannotDownload:
            os.unlink(path)  # the next try brings another one
            raise
    else:
        os.rename(path, os.path.join(content, os.path.basename(path)))
    return arrived.sha256


def unpack(archive: str, folder: str, called: str) -> None:
    try:
        unpack_archive.unpack(archive, folder)
    except unpack_archive.BadArchive as problem:
        raise CannotDownload(
            "{} cannot be unpacked".format(called),
            str(problem),
            "with `unpack = false` the program is given the archive itself",
        )


def _run(command: str, folder: str) -> None:
    """Run the command of `fetch` in `folder`, where it leaves what it downloads."""
    done = subprocess.run(
        ["bash", "-c", _EVALUATE],
        env=dict(os.environ, **{_FETCH: command}),
        cwd=folder,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    said = done.stdout.decode("utf-8", "replace").strip().splitlines()[-_LAST_LINES:]
    if done.returncode != 0:
        raise CannotDownload(
            "the command of `fetch` failed",
            "\n".join(said) or "exit code {}".format(done.returncode),
            "it ran in {}; what it left there is kept for the next try".format(folder),
        )
    if not os.listdir(folder):
        raise CannotDownload(
            "the command of `fetch` left no files",
            "\n".join(said),
            "it must write into the folder in which it is started",
        )
