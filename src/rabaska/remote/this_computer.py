"""This computer as a place: bash for commands, careful copies for files."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader, BufferedWriter
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryFile
from typing import IO, cast

from rabaska.node import files, private_files
from rabaska.remote import programs
from rabaska.remote.fetch_here import copy_new
from rabaska.remote.fetch_record import FetchResult
from rabaska.remote.local_disk import remove, unwritable
from rabaska.remote.place import (
    Delivered,
    Moved,
    NodeSide,
    Outcome,
    Parcel,
    SourceGone,
    closed,
)
from rabaska.remote.ssh_errors import StartUpFailed

_CHUNK = 8 << 20  # bytes
_OTHER_STORE = "set RABASKA_HOME to a folder of your own"


# Bash reads the file that BASH_ENV names before a script, on our own output: a process that it
# leaves behind would be waited for. So we read it ourselves, and see whether it comes to its end.
_START_UP = """\
trap 'exit {code}' EXIT
eval "start=\\"$1\\""; . "$start" </dev/null >/dev/null 2>&1
trap - EXIT; export BASH_ENV=$1; set --
"""
_NOT_BEGUN = 98


@dataclass(frozen=True)
class Bash:
    """Bash with a script, whatever its start-up file does."""

    words: list[str]
    environment: dict[str, str] | None = None  # other than our own
    start_up: str = ""

    @classmethod
    def running(cls, script: str) -> "Bash":
        script, start_up = _closed(script), os.environ.get("BASH_ENV", "")
        if not start_up:
            return cls(["bash", "-c", script])
        first = _START_UP.replace("{code}", str(_NOT_BEGUN))
        plain = {name: text for name, text in os.environ.items() if name != "BASH_ENV"}
        return cls(["bash", "-c", first + script, "bash", start_up], plain, start_up)

    def ended(self, code: int) -> int:
        """Its exit code, if it got as far as the script."""
        if self.start_up and code == _NOT_BEGUN:
            raise StartUpFailed(
                f"the start-up file {self.start_up} ends every script before it begins",
                why="the variable BASH_ENV names it, so bash reads it first, and it exits",
                hint="use `return` instead of `exit` in it, or `unset BASH_ENV`",
            )
        return code


class Here:
    def run(self, script: str, *, feed: bytes = b"", again: str = "") -> Outcome:
        bash = Bash.running(script)
        done = programs.run(bash.words, input=feed, capture_output=True, env=bash.environment)
        return Outcome(
            exit_code=bash.ended(done.returncode),
            output=done.stdout.decode(errors="replace"),
            errors=done.stderr.decode(errors="replace"),
        )

    def attach(self, script: str, *, terminal: bool) -> int:
        bash = Bash.running(script)
        return bash.ended(programs.run(bash.words, env=bash.environment).returncode)

    @contextmanager
    def converse(self, script: str) -> Iterator["Started"]:
        bash = Bash.running(script)
        with TemporaryFile() as errors:
            process = programs.started(
                bash.words, stdin=PIPE, stdout=PIPE, stderr=errors, env=bash.environment
            )
            try:
                yield Started(process, errors)
            finally:
                process.terminate()
                process.wait()
                for end in (process.stdin, process.stdout):
                    with suppress(OSError):
                        cast(IO[bytes], end).close()

    def stream(
        self, script: str, *, feed: bytes = b"", by_transfer: bool = False
    ) -> Iterator[bytes]:
        bash = Bash.running(script)
        words, variables = bash.words, bash.environment
        with programs.started(words, stdin=PIPE, stdout=PIPE, env=variables) as process:
            printed = cast(BufferedReader, process.stdout)
            try:
                with suppress(BrokenPipeError), cast(BufferedWriter, process.stdin) as feeding:
                    feeding.write(feed)
                while chunk := printed.read1(65536):
                    yield chunk
                bash.ended(process.wait())
            finally:
                process.terminate()

    def send(self, source: Path, target: str) -> None:
        goal = Path(target)
        if goal.exists():
            return  # named by its digest, so it is the same thing
        goal.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(files.partial_name(str(goal)))
        try:
            if source.is_dir():
                copy_tree(source, partial)
            else:
                copy_file(source, partial)
            partial.rename(goal)
        except OSError as problem:
            remove(partial)
            if goal.exists():
                return  # somebody else sent the same thing first
            raise unwritable(problem, goal, _OTHER_STORE) from problem
        files.sync_folder(str(goal.parent))

    def deliver(
        self,
        parcels: Sequence[Parcel],
        node: NodeSide | None = None,
        moved: Moved | None = None,
    ) -> Delivered:
        missing = [
            parcel
            for parcel in parcels
            if (parcel.doubted or not _is_complete(parcel)) and not _is_the_same(parcel)
        ]
        for parcel in missing:
            remove(Path(parcel.target))
            self.send(parcel.source, parcel.target)
        return Delivered(sum(_size(parcel.source) for parcel in missing))

    def bring(
        self,
        source: str,
        target: Path,
        node: NodeSide | None = None,
        *,
        leave_out: Sequence[str] = (),
        moved: Moved | None = None,
    ) -> FetchResult:
        if not Path(source).is_dir():
            raise SourceGone(source)
        try:
            return copy_new(Path(source), target, leave_out, moved or (lambda _done, _total: None))
        except OSError as problem:
            raise unwritable(problem, target) from problem


@dataclass(frozen=True)
class Started:
    """A script that was started here."""

    process: "Popen[bytes]"
    errors: IO[bytes]

    @property
    def feed(self) -> IO[bytes]:
        return cast(IO[bytes], self.process.stdin)

    @property
    def output(self) -> IO[bytes]:
        return cast(IO[bytes], self.process.stdout)

    def complaint(self) -> str:
        content = os.pread(self.errors.fileno(), 1 << 16, 0)
        return content.decode(errors="replace").strip()


def _closed(script: str) -> str:
    """The script as part of our command line, which knows the user's umask, or of a program that
    imports us, which has it."""
    return script if private_files.users_umask() is not None else f"{closed('077')}\n{script}"


def copy_tree(source: Path, target: Path) -> None:
    """Copy everything into a new folder."""
    target.mkdir(parents=True, exist_ok=True)
    for path in _files_below(source):
        _copy(path, target / path.relative_to(source))


def _files_below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or path.is_file():
            yield path


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(files.partial_name(str(target)))
    try:
        if source.is_symlink():
            partial.symlink_to(source.readlink())
            shutil.copystat(source, partial, follow_symlinks=False)
        else:
            copy_file(source, partial)
        partial.replace(target)
    except OSError:
        remove(partial)
        raise


def _is_the_same(parcel: Parcel) -> bool:
    """Whether it would be its own copy: the store of `here` is the one that packs are made in."""
    target = Path(parcel.target)
    return target.exists() and target.samefile(parcel.source)


def _is_complete(parcel: Parcel) -> bool:
    """Whether nothing of it is missing: sites delete files that nobody read lately."""
    target = Path(parcel.target)
    return target.exists() and _size(target) == _size(parcel.source)


def _size(path: Path) -> int:
    inside = path.rglob("*") if path.is_dir() else [path]
    return sum(path.stat().st_size for path in inside if path.is_file())


def copy_file(source: Path, target: Path) -> None:
    """Copy content, mode and time, and make sure of it before the caller renames it."""
    with source.open("rb") as reading, files.create(str(target)) as writing:
        shutil.copyfileobj(reading, writing, _CHUNK)
        writing.flush()
        os.fsync(writing.fileno())
    shutil.copystat(source, target)
