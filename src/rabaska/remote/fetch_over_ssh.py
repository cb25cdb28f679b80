"""Bringing a folder home over ssh: what is new there, resumed where it broke off, proven here.

Bytes arrive in `<target>/.arriving.partial/`, in files named by what they will be: path, size and
time. A file that changed there since is another file, so old bytes and new ones never mix.
"""

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path, PurePosixPath
from typing import Any

from rabaska.domain import untrusted
from rabaska.errors import CommandFailed
from rabaska.node import files
from rabaska.node.login import send_results
from rabaska.remote.fetched_before import (
    NOTE,
    PAUSE,
    ROUNDS,
    Before,
    Brought,
    before,
    grows,
    is_left_out,
    make_folder,
)
from rabaska.remote.local_disk import remove, unwritable
from rabaska.remote.place import Moved, NodeSide, SourceGone, quoted
from rabaska.remote.ssh_errors import ConnectionLost, lost
from rabaska.remote.ssh_shell import Shell, StartedCommand

# What the far end answers; see `send-results` there.
_LISTED = {
    "path": untrusted.PATH,
    "size": untrusted.SIZE,
    "mtime_ns": untrusted.NANOSECONDS,
    "link?": (untrusted.PATH, None),
    "problem?": str,
}
_GIVEN = {
    "size": int,
    "mtime_ns": untrusted.NANOSECONDS,
    "offset": untrusted.SIZE,
    "problem?": str,
}
_PROVEN = {"sha256": str, "changed": bool, "problem": str}

ARRIVING = f".arriving{files.PARTIAL}"
_CHUNK = 1 << 20
_LONGEST = 1 << 20  # bytes of an answer that is one line
_TRIES = 5  # in a row that brought nothing, before the connection is believed to be gone


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


def bring(
    source: str, target: Path, shell: Shell, node: NodeSide, leave_out: Sequence[str], moved: Moved
) -> Brought:
    """What came; a connection that breaks is made again as long as it helps."""
    came: list[Offered] = []
    here = before(target)
    tries, most, rounds = 0, -1, 1
    while True:
        try:
            here.begin_round()
            wanted = _wanted(_offered(source, node), here, leave_out)
            done = sum(each.size for each in came) + sum(_arrived(each, target) for each in wanted)
            tries, most = (0, done) if done > most else (tries + 1, most)
            for arrived in _arrivals(source, wanted, here, shell, node, moved):
                came.append(arrived)
                here.note(arrived.path, arrived.size, arrived.mtime_ns)
            remove(target / ARRIVING)
        except ConnectionLost:
            if tries == _TRIES:
                raise
            shell.connection.reopen()
            continue
        except OSError as problem:
            raise unwritable(problem, target) from problem
        finally:
            with suppress(OSError):  # what came is here all the same
                here.write()
        if not here.unfinished or rounds == ROUNDS:
            return here.told()
        rounds += 1
        time.sleep(PAUSE)


def _offered(source: str, node: NodeSide) -> list[Offered]:
    outcome = node.run(quoted([*node.node, "send-results", "list", source]))
    if outcome.exit_code == send_results.GONE:
        raise SourceGone(source)
    if outcome.exit_code != 0:
        raise CommandFailed(f"{source} could not be listed", why=outcome.complaint)
    try:
        told = untrusted.read_lines(outcome.output, _LISTED)
    except untrusted.Unexpected as problem:
        raise untrusted.unusable("", problem) from problem
    names = [field.name for field in fields(Offered)]
    return [Offered(**{name: each[name] for name in names if name in each}) for each in told]


def _wanted(offered: Sequence[Offered], here: Before, leave_out: Sequence[str]) -> list[Offered]:
    """What is not here as it is there; what would lead out of the folder is not for us."""
    for each in offered:
        if each.problem and not is_left_out(each.path, leave_out):
            here.unread[each.path] = each.problem
    return [
        each
        for each in offered
        if not each.problem
        and _stays_inside(each.path)
        and not is_left_out(each.path, leave_out)
        and not here.refuses(each.path, each.link)
        and here.wants(each.path, each.size, each.mtime_ns)
    ]


def _stays_inside(path: str) -> bool:
    """Whether it is a path below the folder, and none of what we keep there ourselves."""
    parts = PurePosixPath(path).parts
    ours = parts[:1] in ((NOTE,), (ARRIVING,), ())
    return not path.startswith("/") and ".." not in parts and not ours


def _arrived(offered: Offered, target: Path) -> int:
    """How many bytes of it are here from the last time."""
    try:
        return min(offered.arriving(target).lstat().st_size, offered.size)
    except FileNotFoundError:
        return 0


def _arrivals(
    source: str, wanted: Sequence[Offered], here: Before, shell: Shell, node: NodeSide, moved: Moved
) -> Iterator[Offered]:
    """Each file as soon as it is whole and in its place."""
    links = [each for each in wanted if each.link is not None]
    contents = [each for each in wanted if each.link is None]
    if contents:
        yield from _receive(source, contents, here, shell, node, moved)
    for each in links:
        _place_link(each, here.folder)
        yield each


def _receive(
    source: str, wanted: Sequence[Offered], here: Before, shell: Shell, node: NodeSide, moved: Moved
) -> Iterator[Offered]:
    target = here.folder
    _make_arriving(target)
    order = [[each.path, each.size, each.mtime_ns, _arrived(each, target)] for each in wanted]
    total, done = sum(each.size for each in wanted), 0
    with shell.started(quoted([*node.node, "send-results", "give", source])) as far:
        far.write(json.dumps(order).encode() + b"\n")
        for each in wanted:
            told = _line(far, _GIVEN)
            if told.get("problem"):
                here.unread[each.path] = told["problem"]
            elif told["size"] >= 0:  # else it was removed there meanwhile
                _refuse_beyond(told, _arrived(each, target), far)
                now = replace(each, size=told["size"], mtime_ns=told["mtime_ns"])
                digest = hashlib.sha256()
                for length in _stored(now.arriving(target), told["offset"], now.size, digest, far):
                    moved(min(done + length, total), total)
                if not _is_sound(now.path, _line(far, _PROVEN), digest.hexdigest(), here):
                    remove(now.arriving(target))
                elif _put_in_place(now, here):
                    yield now
            done += each.size
        if far.ended() == send_results.GONE:
            raise SourceGone(source)
        far.expect_success("a transfer")


def _is_sound(path: str, told: dict[str, Any], digest: str, here: Before) -> bool:
    """Whether what came is the file; what is noted as unfinished is asked for again."""
    if told["problem"]:
        here.unread[path] = told["problem"]
        return False
    if told["sha256"] != digest or (told["changed"] and not grows(path)):
        here.unfinished[path] = None
        return False
    return True


def _line(far: StartedCommand, shape: untrusted.Shape) -> dict[str, Any]:
    line = far.output.readline(_LONGEST)
    if not line.endswith(b"\n") and len(line) < _LONGEST:
        raise _cut(far)
    try:
        value: dict[str, Any] = untrusted.read(line, shape)
    except untrusted.Unexpected as problem:
        raise untrusted.unusable(far.host, problem) from problem
    return value


def _refuse_beyond(told: Mapping[str, int], arrived: int, far: StartedCommand) -> None:
    """The far end goes on where we said, or from the beginning."""
    if told["offset"] > min(arrived, told["size"]):
        problem = untrusted.Unexpected(
            f"it goes on at byte {told['offset']}, and {arrived} are here"
        )
        raise untrusted.unusable(far.host, problem)


def _cut(far: StartedCommand) -> Exception:
    far.ended()
    return lost(far.host, far.complaint(), "a transfer")


def _stored(
    path: Path, offset: int, size: int, digest: "hashlib._Hash", far: StartedCommand
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
            chunk = far.output.read1(min(_CHUNK, size - length))
            if not chunk:
                raise _cut(far)
            stream.write(chunk)
            digest.update(chunk)
            length += len(chunk)
            yield length
        stream.flush()
        os.fsync(stream.fileno())


def _put_in_place(offered: Offered, here: Before) -> bool:
    """Whether it came into its place; somebody may have written it here since we looked."""
    path, arriving = here.folder / offered.path, offered.arriving(here.folder)
    make_folder(path.parent, here.folder)
    os.utime(arriving, ns=(offered.mtime_ns, offered.mtime_ns))
    if not here.wants(offered.path, offered.size, offered.mtime_ns):
        return False
    here.make_way(offered.path)
    arriving.replace(path)
    return True


def _place_link(offered: Offered, target: Path) -> None:
    path, arriving = target / offered.path, offered.arriving(target)
    make_folder(path.parent, target)
    _make_arriving(target)
    remove(arriving)
    arriving.symlink_to(str(offered.link))
    os.utime(arriving, ns=(offered.mtime_ns, offered.mtime_ns), follow_symlinks=False)
    arriving.replace(path)


def _make_arriving(target: Path) -> None:
    """The folder in which bytes gather; whatever others may do in `target`, it is ours alone."""
    make_folder(target, target)
    path = target / ARRIVING
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise CommandFailed(
            f"nothing was brought into {target}",
            why=f"{path} is no folder of yours",
            hint="remove it, or fetch into another folder with `--to`",
        )
    path.chmod(0o700)  # older versions left it as open as the results
