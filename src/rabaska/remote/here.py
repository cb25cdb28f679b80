"""This computer as a place: bash for commands, careful copies for files."""

import errno
import fnmatch
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import cast

from rabaska.errors import NoSpace
from rabaska.node import files
from rabaska.remote.place import Delivered, Moved, NodeSide, Outcome, Parcel

_CHUNK = 8 << 20  # bytes


class Here:
    def run(self, script: str, *, feed: bytes = b"", again: str = "") -> Outcome:
        done = subprocess.run(["bash", "-c", script], input=feed, capture_output=True, check=False)
        return Outcome(
            exit_code=done.returncode,
            output=done.stdout.decode(errors="replace"),
            errors=done.stderr.decode(errors="replace"),
        )

    def attach(self, script: str, *, terminal: bool) -> int:
        return subprocess.run(["bash", "-c", script], check=False).returncode

    def stream(self, script: str) -> Iterator[bytes]:
        with subprocess.Popen(["bash", "-c", script], stdout=subprocess.PIPE) as process:
            printed = cast(BufferedReader, process.stdout)
            try:
                while chunk := printed.read1(65536):
                    yield chunk
            finally:
                process.terminate()

    def send(self, source: Path, target: str) -> None:
        goal = Path(target)
        if goal.exists():
            return  # named by its digest, so it is the same thing
        goal.parent.mkdir(parents=True, exist_ok=True)
        partial = goal.with_name(f"{goal.name}.{os.getpid()}{files.PARTIAL}")
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
            raise no_space(problem, goal) from problem
        files.sync_folder(str(goal.parent))

    def deliver(
        self,
        parcels: Sequence[Parcel],
        node: NodeSide | None = None,
        moved: Moved | None = None,
    ) -> Delivered:
        missing = [parcel for parcel in parcels if parcel.doubted or not _is_whole(parcel)]
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
    ) -> int:
        try:
            return copy_tree(Path(source), target, leave_out=leave_out, moved=moved)
        except OSError as problem:
            raise no_space(problem, target) from problem


def copy_tree(
    source: Path, target: Path, *, leave_out: Sequence[str] = (), moved: Moved | None = None
) -> int:
    """Copy what is missing or older in `target`; how many files were copied."""
    wanted = list(_files_below(source, leave_out))
    total = sum(path.lstat().st_size for path in wanted)
    target.mkdir(parents=True, exist_ok=True)
    copied, arrived = 0, 0
    for path in wanted:
        copied += _copy_if_newer(path, target / path.relative_to(source))
        arrived += path.lstat().st_size
        if moved:
            moved(arrived, total)
    return copied


def _files_below(folder: Path, leave_out: Sequence[str]) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        unwanted = any(fnmatch.fnmatch(name, pattern) for pattern in leave_out)
        if (path.is_symlink() or path.is_file()) and not unwanted:
            yield path


def _copy_if_newer(source: Path, target: Path) -> bool:
    found = source.lstat()
    if not is_newer(found.st_mtime_ns, found.st_size, target):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.{os.getpid()}{files.PARTIAL}")
    try:
        if source.is_symlink():
            partial.symlink_to(source.readlink())
        else:
            copy_file(source, partial)
        partial.replace(target)
    except OSError:
        remove(partial)
        raise
    return True


def is_newer(mtime_ns: int, size: int, path: Path) -> bool:
    """Whether a file of that time and size should come into the place of `path`."""
    if not os.path.lexists(path):
        return True
    here = path.lstat()
    # A log that grew within one tick of the clock has the same time and another size.
    same_time = mtime_ns == here.st_mtime_ns
    return mtime_ns > here.st_mtime_ns or (same_time and size != here.st_size)


def _is_whole(parcel: Parcel) -> bool:
    """Whether nothing of it is missing: sites delete files that nobody read lately."""
    target = Path(parcel.target)
    return target.exists() and _size(target) == _size(parcel.source)


def _size(path: Path) -> int:
    inside = path.rglob("*") if path.is_dir() else [path]
    return sum(each.stat().st_size for each in inside if each.is_file())


def copy_file(source: Path, target: Path) -> None:
    """Copy content, mode and time, and make sure of it before the caller renames it."""
    with source.open("rb") as reading, target.open("wb") as writing:
        shutil.copyfileobj(reading, writing, _CHUNK)
        writing.flush()
        os.fsync(writing.fileno())
    shutil.copystat(source, target)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def no_space(problem: OSError, target: Path) -> Exception:
    """NoSpace when that is what `problem` says, else `problem` itself."""
    if problem.errno not in (errno.ENOSPC, errno.EDQUOT):
        return problem
    free = shutil.disk_usage(target.parent if target.parent.exists() else Path.home()).free
    return NoSpace(
        f"no space left for {target}",
        why=f"{problem.strerror}; {free:,} bytes are free there",
        hint="free some space or choose another folder; what is complete stays, and "
        "the same command goes on from there",
    )
