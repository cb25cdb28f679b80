"""A push over ssh: only what is missing, from the byte where it broke off, proven there."""

import re
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from io import BufferedReader, BufferedWriter
from subprocess import DEVNULL, PIPE
from typing import Any, cast

from rabaska.domain import untrusted
from rabaska.domain.amounts import say_size
from rabaska.errors import CommandFailed, DamagedPack, NoSpace
from rabaska.node.login import push_protocol, receive_push, write_received
from rabaska.remote import programs
from rabaska.remote.missing_pieces import Freight, MissingPiece, freight, question
from rabaska.remote.place import NO_PROGRAM, Delivered, Moved, NodeSide, Parcel
from rabaska.remote.ssh_connection import Connection
from rabaska.remote.ssh_errors import ConnectionLost, lost, refuse_full_disk
from rabaska.remote.ssh_shell import LOST, Shell, StartedCommand

# Owner, group and permissions are the far side's own: on a project space files must get the
# space's group, or they count against the wrong quota. Nothing is compared: what is there of a
# file is its beginning, and the far end proves the whole of it afterwards.
_OPTIONS = (
    "--recursive",
    "--append",
    "--no-perms",
    "--no-group",
    "--no-owner",
    "--no-inc-recursive",
)
_PROGRESS_OPTIONS = ("--info=progress2", "--no-human-readable", "--protect-args")
_PROGRESS = re.compile(rb"\s*(\d[\d,.]*)\s+\d+%")
# rsync(1): error in socket I/O, in the data stream, timeouts; and ssh's own when it was cut off.
_CUT_OFF = (10, 12, 30, 35, LOST)


def send(missing: Sequence[Freight], shell: Shell, report: Callable[[int], None]) -> bool:
    """Send what is missing; False when rsync does not work, and another way must be taken."""
    if not programs.is_there("rsync"):
        return False
    shell.connection.open()
    before = 0
    for part in missing:
        if not _send_one(part, shell.connection, partial(_report, report, before)):
            return False
        before += part.missing
    return True


def _report(report: Callable[[int], None], before: int, sent: int) -> None:
    report(before + sent)


def _send_one(part: Freight, connection: Connection, report: Callable[[int], None]) -> bool:
    with tempfile.TemporaryFile() as errors:
        command = _command(part, connection)
        with programs.started(command, stdin=DEVNULL, stdout=PIPE, stderr=errors) as process:
            try:
                for sent in _progress(cast(BufferedReader, process.stdout)):
                    report(sent)
                code = process.wait()
            finally:
                process.terminate()
        errors.seek(0)
        return _judge(code, errors.read().decode(errors="replace"), connection.host)


def _command(part: Freight, connection: Connection) -> list[str]:
    source = part.parcel.source
    from_, to = (f"{source}/", f"{part.partial}/") if source.is_dir() else (source, part.partial)
    compress = ["--compress"] if part.compressed else []
    # rsync is started by a shell that has the site's umask, and not ours.
    group = "" if connection.umask.endswith("77") else "rX"
    modes = f"--chmod=u=rwX,g={group},o="
    return [
        "rsync",
        *_OPTIONS,
        modes,
        *_PROGRESS_OPTIONS,
        *compress,
        "-e",
        shlex.join(connection.plain_shell()),
        str(from_),
        f"{connection.host}:{to}",
    ]


def _progress(printed: BufferedReader) -> Iterator[int]:
    """Bytes sent so far: rsync writes its line again and again, between carriage returns."""
    line = b""
    while chunk := printed.read1(4096):
        *lines, line = (line + chunk).replace(b"\n", b"\r").split(b"\r")
        for text in lines:
            if match := _PROGRESS.match(text):
                yield int(re.sub(rb"\D", b"", match[1]))


def _judge(code: int, errors: str, host: str) -> bool:
    if code == 0:
        return True
    refuse_full_disk(errors.strip())
    # A shell that prints a banner confuses rsync ("is your shell clean?"): that is code 2.
    if code in _CUT_OFF and "is your shell clean" not in errors:
        raise lost(host, errors, "a transfer")
    return False


# What the far end answers; see `receive` there.
_MISSING = {
    "missing": {str: [untrusted.SIZE]},
    "rsync": bool,
    "room": {
        "bytes?": int,
        "files?": int,
        "stripes?": int,
        "short?": [{"unit": str, "free": int, "limit": str}],
    },
}
_TAKEN = {"damaged": {str: [str]}}


class NoProgram(CommandFailed):
    """Our program is not there, so nothing was asked."""


@dataclass(frozen=True)
class PushAnswer:
    """A far end that told what it has and waits for an order."""

    remote: StartedCommand
    missing: Sequence[Freight]
    stripes: int  # over how many servers Lustre spreads it, if it was told so now
    has_rsync: bool

    @cached_property
    def left(self) -> int:
        """Bytes that are missing."""
        return sum(part.missing for part in self.missing)

    def send(self, report: Callable[[int], None]) -> list[str]:
        """Send what is missing and have all of it proven; the files that are damaged there."""
        if not self.missing:
            return []
        self.remote.write(push_protocol.word([part.order() for part in self.missing]))
        # If the far end does not listen any more, how it ended says why.
        with suppress(BrokenPipeError):
            sent = 0
            for length in _sent(self.missing, self.remote.feed):
                sent += length
                report(sent)
            self.remote.feed.flush()
        self.remote.call.hang_up()  # or it would wait for the rest of a file that became shorter
        damaged = _answer(self.remote, _TAKEN)["damaged"]
        return [name or target for target, names in damaged.items() for name in names]


@contextmanager
def open_push(parcels: Sequence[Parcel], shell: Shell, node: NodeSide) -> Iterator[PushAnswer]:
    """One question for all parcels; the far end waits for an order as long as the block lasts."""
    with shell.started(node.guarded(node.quickly("receive"))) as remote:
        remote.write(push_protocol.word([question(parcel) for parcel in parcels]))
        answer = _answer(remote, _MISSING)
        _refuse_without_room(answer["room"])
        arrived = answer["missing"]
        incomplete = [parcel for parcel in parcels if parcel.target in arrived]
        try:
            missing = [freight(parcel, arrived[parcel.target]) for parcel in incomplete]
        except untrusted.Unexpected as problem:
            raise untrusted.unusable(remote.host, problem) from problem
        yield PushAnswer(remote, missing, answer["room"].get("stripes", 0), answer["rsync"])


def _answer(remote: StartedCommand, shape: untrusted.Shape) -> dict[str, Any]:
    """The next answer; where none comes, how the far end ended says why."""
    for line in remote.output:
        _, meant, text = line.partition(push_protocol.ANSWER.encode())
        if meant and text.endswith(b"\n"):
            try:
                answer: dict[str, Any] = untrusted.read(text, shape)
            except untrusted.Unexpected as problem:
                raise untrusted.unusable(remote.host, problem) from problem
            return answer
    raise _ending(remote)


def _ending(remote: StartedCommand) -> Exception:
    code, errors = remote.ended(), remote.complaint()
    if code in (receive_push.CUT, LOST):
        return lost(remote.host, errors, "a transfer")
    refuse_full_disk(errors)
    kind = NoProgram if code == NO_PROGRAM else CommandFailed
    return kind(f"a transfer failed on {remote.host}", why=errors or f"exit code {code}")


def _refuse_without_room(room: Mapping[str, Any]) -> None:
    if not room.get("short"):
        return
    short = room["short"][0]
    if short["unit"] == "bytes":
        needed, free = say_size(room.get("bytes", 0)), say_size(short["free"])
    else:
        needed, free = _files(room.get("files", 0)), _files(short["free"])
    raise NoSpace(
        "not enough space on the cluster; nothing was sent",
        why=f"to be sent: {needed}; the {short['limit']} there has room for {free}",
        hint="remove what is no longer needed there, or name another `store` "
        "under [storage] in the cluster's profile",
    )


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"


def _sent(missing: Sequence[Freight], feed: BufferedWriter) -> Iterator[int]:
    """Send every file; the bytes of it that went each time."""
    for part in missing:
        for piece in part.pieces:
            yield from _send_compressed(piece, feed) if part.compressed else piece.poured(feed)


def _send_compressed(piece: MissingPiece, feed: BufferedWriter) -> Iterator[int]:
    for chunk in piece.chunks(write_received.CHUNK):
        feed.write(write_received.compressed(chunk))
        yield len(chunk)


_TRIES = 5  # in a row that brought nothing, before the connection is believed to be gone
_REPAIRS = 3  # times that a file may arrive other than it was sent


def deliver(
    parcels: Sequence[Parcel], shell: Shell, node: NodeSide, moved: Moved, transfer: Shell | None
) -> Delivered:
    """Send what is missing there, through the host for transfers if there is one."""
    try:
        return _deliver(parcels, shell, node, moved, transfer)
    except NoProgram:
        node.send_program()
        return _deliver(parcels, shell, node, moved, transfer)


def _deliver(
    parcels: Sequence[Parcel], shell: Shell, node: NodeSide, moved: Moved, transfer: Shell | None
) -> Delivered:
    """A connection that breaks is made again as long as it helps."""
    tries, repairs, most, least, stripes = 0, 0, 0, None, 0
    while repairs < _REPAIRS:
        try:
            with open_push(parcels, shell, node) as push:
                most, stripes = max(most, push.left), stripes or push.stripes
                if least is None or push.left < least:
                    tries, least = 0, push.left
                report = _progress_of(push.missing, moved)
                carrier = transfer if push.left else None  # bytes that are there need a proof only
                damaged = [] if carrier else push.send(report)
            if carrier:
                shell, transfer = _by_rsync(push, shell, carrier, report), None
                continue
        except ConnectionLost:
            tries += 1
            if tries > _TRIES:
                raise
            (transfer or shell).connection.reopen()
            continue
        if not damaged:
            return Delivered(most, stripes)
        repairs, least = repairs + 1, None
    raise DamagedPack(
        f"{damaged[0]} arrived damaged, {_REPAIRS} times",
        why="its sha256 on the cluster does not match",
        hint="if the copy on this computer was changed, remove that copy and pack again",
    )


def _by_rsync(
    push: PushAnswer, login: Shell, transfer: Shell, report: Callable[[int], None]
) -> Shell:
    """Send by rsync, if both ends have it; the host that has to take what is left then.

    Hosts made for transfers are made for rsync and may have no Python worth the name, so what
    rsync brought is proven from the login node.
    """
    by_rsync = push.has_rsync and send(push.missing, transfer, report)
    return login if by_rsync else transfer


def _progress_of(missing: Sequence[Freight], moved: Moved) -> Callable[[int], None]:
    """Reports all bytes of what is missing, also those that came before."""
    total = sum(part.size for part in missing)
    before = total - sum(part.missing for part in missing)
    return lambda sent: moved(min(before + sent, total), total)
