"""Files on their way here: their bytes gather apart, and each is put in place when it is complete.

They gather in `<target>/.arriving.partial/`, in files named by what they will be: path, size and
time. A file that changed there since is another file, so old bytes and new ones never mix.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rabaska.errors import CommandFailed
from rabaska.node import files
from rabaska.remote.fetch_record import FetchRecord, make_folder
from rabaska.remote.local_disk import remove
from rabaska.remote.ssh_errors import lost
from rabaska.remote.ssh_shell import StartedCommand

ARRIVING = f".arriving{files.PARTIAL}"
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Offered:
    """A file as it is there."""

    path: str
    size: int
    mtime_ns: int
    link: str | None = None  # where a symbolic link points
    problem: str = ""  # why it cannot be read

    def arriving(self, folder: Path) -> Path:
        """Where its bytes gather until all are here."""
        identity = f"{self.path}\0{self.size}\0{self.mtime_ns}".encode(errors="surrogateescape")
        return folder / ARRIVING / hashlib.sha256(identity).hexdigest()[:24]


def arrived(offered: Offered, target: Path) -> int:
    """How many bytes of it are here from the last time."""
    try:
        return min(offered.arriving(target).lstat().st_size, offered.size)
    except FileNotFoundError:
        return 0


def store(
    path: Path, offset: int, size: int, digest: "hashlib._Hash", remote: StartedCommand
) -> Iterator[int]:
    """Add the bytes that come to those that are here; the length so far, as it grows."""
    # Through no link, should the folder have been open to others before.
    created = 0 if offset else os.O_CREAT | os.O_TRUNC
    opened = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | created, 0o666)
    with os.fdopen(opened, "r+b") as stream:
        for start in range(0, offset, _CHUNK):
            digest.update(stream.read(min(_CHUNK, offset - start)))
        stream.truncate(offset)
        length = offset
        while length < size:
            chunk = remote.output.read1(min(_CHUNK, size - length))
            if not chunk:
                raise cut_off(remote)
            stream.write(chunk)
            digest.update(chunk)
            length += len(chunk)
            yield length
        stream.flush()
        os.fsync(stream.fileno())


def cut_off(remote: StartedCommand) -> Exception:
    remote.ended()
    return lost(remote.host, remote.complaint(), "a transfer")


def put_in_place(offered: Offered, record: FetchRecord) -> bool:
    """Whether it came into its place; somebody may have written it here since we looked."""
    path, arriving = record.folder / offered.path, offered.arriving(record.folder)
    make_folder(path.parent, record.folder)
    os.utime(arriving, ns=(offered.mtime_ns, offered.mtime_ns))
    if not record.wants(offered.path, offered.size, offered.mtime_ns):
        return False
    record.make_way(offered.path)
    arriving.replace(path)
    return True


def place_link(offered: Offered, target: Path) -> None:
    path, arriving = target / offered.path, offered.arriving(target)
    make_folder(path.parent, target)
    make_arriving(target)
    remove(arriving)
    arriving.symlink_to(str(offered.link))
    os.utime(arriving, ns=(offered.mtime_ns, offered.mtime_ns), follow_symlinks=False)
    arriving.replace(path)


def make_arriving(target: Path) -> None:
    """The folder in which bytes gather; whatever others may do in `target`, it is ours alone."""
    make_folder(target, target)
    path = target / ARRIVING
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise CommandFailed(
            f"nothing was fetched into {target}",
            why=f"{path} is not your folder",
            hint="remove it, or fetch into another folder with `--to`",
        )
    path.chmod(0o700)  # older versions left it as open as the results
