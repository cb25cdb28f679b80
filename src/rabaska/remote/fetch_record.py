"""What was fetched into a folder before, so that no change made here is overwritten.

Its note in the folder has the run whose results these are, and size and time of each path, as they
were there and as they became here. A file that nobody touched here since follows the other side
wherever it goes, also back in time. Notes of older versions have the paths alone.
"""

import fcntl
import fnmatch
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from rabaska.errors import CommandFailed
from rabaska.node import files, private_files
from rabaska.node.data.pack_safety import leads_out

NOTE = ".fetched.json"

ROUNDS = 4  # for files that change while they are read
PAUSE = 0.3  # seconds between two of them
_NOTED_EVERY = 10.0  # seconds

# Made of lines or records that are added one by one: what is there so far is of use, and waiting
# until nobody writes would mean waiting for the end of the run.
_GROWING = (
    "*.log",
    "log",
    "*.jsonl",
    "*.ndjson",
    "*.csv",
    "*.tsv",
    "*.txt",
    "*.out",
    "*.err",
    "*.tfevents.*",
)

_SizeAndTime = list[int]  # size and time of change


class FetchResult(NamedTuple):
    """What a transfer did."""

    files: int  # that came
    kept: tuple[str, ...] = ()  # changed here since, so that what is there did not come
    refused: tuple[str, ...] = ()  # links that lead out of the folder, and git repositories
    unread: tuple[str, ...] = ()  # files and folders that could not be read there, and why
    unfinished: tuple[str, ...] = ()  # files that were written to whenever we read them
    aside: tuple[str, ...] = ()  # as what is kept that was here, and newer there


@dataclass
class FetchRecord:
    """A folder here, and what is known of how its files came."""

    folder: Path
    known: dict[str, tuple[_SizeAndTime, _SizeAndTime]]
    kept: dict[str, None] = field(default_factory=dict)  # in order, each once
    refused: dict[str, None] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)  # why, by path
    unfinished: dict[str, None] = field(default_factory=dict)
    aside: dict[str, None] = field(default_factory=dict)
    fetched: int = 0
    owner: dict[str, str] = field(default_factory=dict)  # of the results: see `claim`
    written: float = field(default_factory=time.monotonic)  # when, of the note

    def wants(self, path: str, size: int, mtime_ns: int) -> bool:
        """Whether a file as it is there shall come into the place of what is here."""
        local = self._local_facts(path)
        remote_then, local_then = self.known.get(path, ([], []))
        if local is None:
            return True
        if local == local_then:
            return remote_then != [size, mtime_ns]
        # A log that grew within one tick of the clock has the same time and another size.
        if mtime_ns >= local[1]:
            return local != [size, mtime_ns]
        self.kept[path] = None
        return False

    def has(self, path: str, size: int, mtime_ns: int) -> bool:
        """Whether a file as it is there is here, or came and was changed here since."""
        local, (remote_then, _) = self._local_facts(path), self.known.get(path, ([], []))
        return local is not None and [size, mtime_ns] in (remote_then, local)

    def make_way(self, path: str) -> None:
        """Rename what is not as it came, or did not come: a newer one is about to take its place.

        The folder may be that of an earlier training, and its files were never ours.
        """
        local, (_, local_then) = self._local_facts(path), self.known.get(path, ([], []))
        if local is None or local == local_then:
            return
        name, number = f"{path}.here", 2
        while os.path.lexists(self.folder / name):
            name, number = f"{path}.here-{number}", number + 1
        (self.folder / path).rename(self.folder / name)
        self.aside[name] = None

    def refuses(self, path: str, link: str | None) -> bool:
        """Whether it is a link that would lead out of the folder, or git's: it does not come."""
        repository = _repository(path)
        if repository:
            self.refused[repository] = None
            return True
        if link is None or not leads_out(os.fsencode(path), os.fsencode(link)):
            return False
        self.refused[f"{path} -> {link}"] = None
        return True

    def begin_round(self) -> None:
        """Forget what did not come the last time, for it is tried again."""
        self.unread.clear()
        self.unfinished.clear()

    def note(self, path: str, size: int, mtime_ns: int) -> None:
        """Remember that it came."""
        local = self._local_facts(path)
        self.fetched += 1
        self.kept.pop(path, None)
        if local is not None:
            self.known[path] = ([size, mtime_ns], local)
        if time.monotonic() - self.written >= _NOTED_EVERY:  # a killed fetch writes nothing more
            with suppress(OSError):
                self.write()

    def write(self) -> None:
        if self.fetched:
            self._write()

    def claim(self, owner: dict[str, str]) -> None:
        """Write down whose results are in the folder, before the first of them comes."""
        if self.owner != owner:
            self.owner = owner
            make_folder(self.folder, self.folder)
            self._write()

    def _write(self) -> None:
        files.write_json(str(self.folder / NOTE), {"run": self.owner, "files": self.known})
        self.written = time.monotonic()

    def result(self) -> FetchResult:
        unread = tuple(f"{path} ({why})" for path, why in self.unread.items())
        unfinished = tuple(self.unfinished)
        refused, aside = tuple(self.refused), tuple(self.aside)
        return FetchResult(self.fetched, tuple(self.kept), refused, unread, unfinished, aside)

    def _local_facts(self, path: str) -> _SizeAndTime | None:
        try:
            status = (self.folder / path).lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISDIR(status.st_mode):
            return None  # who puts the file in place says that this is in the way
        return [status.st_size, status.st_mtime_ns]


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Nobody else fetches into the folder meanwhile: two would write to the same files."""
    try:
        make_folder(folder, folder)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as problem:
        from rabaska.remote.local_disk import unwritable

        raise unwritable(problem, folder) from problem
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as problem:
        os.close(descriptor)
        raise CommandFailed(
            f"nothing was fetched into {folder}",
            why="another fetch is at work there",
            hint="wait until it is over, then fetch again for what is missing",
        ) from problem
    except OSError:
        pass  # a network file system without locks
    try:
        yield
    finally:
        os.close(descriptor)


def make_folder(folder: Path, target: Path) -> None:
    """Make `folder`, which is `target` or below it, never through a link that leads elsewhere.

    The results may lie behind a link that the user made, but behind nobody else's.
    """
    for step in (target, *target.parents):
        if step.is_symlink() and not private_files.has_trusted_owner(str(step)):
            raise _behind_link(folder, step)
    target.mkdir(parents=True, exist_ok=True)
    step = target
    for part in folder.relative_to(target).parts:
        step /= part
        if step.is_symlink():
            raise _behind_link(folder, step)
        step.mkdir(exist_ok=True)


def _behind_link(folder: Path, link: Path) -> CommandFailed:
    return CommandFailed(
        f"nothing was fetched into {folder}",
        why=f"{link} is a symbolic link to {link.readlink()}",
        hint="remove that symbolic link, or fetch into another folder with `--to`",
    )


def _repository(path: str) -> str:
    """The git repository that a file is a part of, or the file that makes a folder one.

    Its settings name programs, and `git status` runs them, as many prompts and editors do at once.
    """
    parts = Path(path).parts
    for place, part in enumerate(parts, start=1):
        if part.lower() == ".git":
            return str(Path(*parts[:place]))
    return path if parts and parts[-1] == "HEAD" else ""


def grows(path: str) -> bool:
    """Whether a file that is still being written may come as far as it is."""
    return any(fnmatch.fnmatch(Path(path).name, pattern) for pattern in _GROWING)


def is_left_out(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatch(path, pattern) for pattern in patterns)


def read_record(folder: Path) -> FetchRecord:
    try:
        value = files.read_json(str(folder / NOTE)) or {}
        is_new = isinstance(value.get("files"), dict)  # else "files" is at most a file's name
        owner = {str(key): str(text) for key, text in value["run"].items()} if is_new else {}
        paths = value["files"] if is_new else value
        known = {path: (list(remote), list(local)) for path, (remote, local) in paths.items()}
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        return FetchRecord(folder, {})  # a note that cannot be read is no note
    return FetchRecord(folder, known, owner=owner)
