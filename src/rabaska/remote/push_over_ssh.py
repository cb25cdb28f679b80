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
_HOW = (
    "--recursive",
    "--append",
    "--no-perms",
    "--no-group",
    "--no-owner",
    "--no-inc-recursive",
)
_TOLD = ("--info=progress2", "--no-human-readable", "--protect-args")
_PROGRESS = re.compile(rb"\s*(\d[\d,.]*)\s+\d+%")
# rsync(1): error in socket I/O, in the data stream, timeouts; and ssh's own when it was cut off.
_CUT_OFF = (10, 12, 30, 35, LOST)


def send(missing: Sequence[Freight], shell: Shell, told: Callable[[int], None]) -> bool:
    """Send what is missing; False when rsync does not work, and another way must be taken."""
    if not programs.is_there("rsync"):
        return False
    shell.connection.open()
    before = 0
    for each in missing:
        if not _send_one(each, shell.connection, partial(_tell, told, before)):
            return False
        before += each.missing
    return True


def _tell(told: Callable[[int], None], before: int, sent: int) -> None:
    told(before + sent)


def _send_one(each: Freight, connection: Connection, told: Callable[[int], None]) -> bool:
    with tempfile.TemporaryFile() as errors:
        command = _command(each, connection)
        with programs.started(command, stdin=DEVNULL, stdout=PIPE, stderr=errors) as process:
            try:
                for sent in _progress(cast(BufferedReader, process.stdout)):
                    told(sent)
                code = process.wait()
            finally:
                process.terminate()
        errors.seek(0)
        return _judge(code, errors.read().decode(errors="replace"), connection.host)


def _command(each: Freight, connection: Connection) -> list[str]:
    source = each.parcel.source
    from_, to = (f"{source}/", f"{each.partial}/") if source.is_dir() else (source, each.partial)
    squeeze = ["--compress"] if each.squeezed else []
    # rsync is started by a shell that has the site's umask, and not ours.
    group = "" if connection.umask.endswith("77") else "rX"
    modes = f"--chmod=u=rwX,g={group},o="
    return [
        "rsync",
        *_HOW,
        modes,
        *_TOLD,
        *squeeze,
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
        for each in lines:
            if found := _PROGRESS.match(each):
                yield int(re.sub(rb"\D", b"", found[1]))


def _judge(code: int, said: str, host: str) -> bool:
    if code == 0:
        return True
    refuse_full_disk(said.strip())
    # A shell that prints a banner confuses rsync ("is your shell clean?"): that is code 2.
    if code in _CUT_OFF and "is your shell clean" not in said:
        raise lost(host, said, "a transfer")
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

    far: StartedCommand
    missing: Sequence[Freight]
    stripes: int  # over how many servers Lustre spreads it, if it was told so now
    has_rsync: bool

    @cached_property
    def left(self) -> int:
        """Bytes that are missing."""
        return sum(each.missing for each in self.missing)

    def send(self, told: Callable[[int], None]) -> list[str]:
        """Send what is missing and have all of it proven; the files that are damaged there."""
        if not self.missing:
            return []
        self.far.write(push_protocol.word([each.order() for each in self.missing]))
        # If the far end does not listen any more, how it ended says why.
        with suppress(BrokenPipeError):
            sent = 0
            for length in _sent(self.missing, self.far.feed):
                sent += length
                told(sent)
            self.far.feed.flush()
        self.far.call.hang_up()  # or it would wait for the rest of a file that became shorter
        damaged = _answer(self.far, _TAKEN)["damaged"]
        return [name or target for target, names in damaged.items() for name in names]


@contextmanager
def asked(parcels: Sequence[Parcel], shell: Shell, node: NodeSide) -> Iterator[PushAnswer]:
    """One question for all parcels; the far end waits for an order as long as the block lasts."""
    with shell.started(node.guarded(node.quickly("receive"))) as far:
        far.write(push_protocol.word([question(parcel) for parcel in parcels]))
        answer = _answer(far, _MISSING)
        _refuse_without_room(answer["room"])
        there = answer["missing"]
        wanted = [parcel for parcel in parcels if parcel.target in there]
        try:
            missing = [freight(parcel, there[parcel.target]) for parcel in wanted]
        except untrusted.Unexpected as problem:
            raise untrusted.unusable(far.host, problem) from problem
        yield PushAnswer(far, missing, answer["room"].get("stripes", 0), answer["rsync"])


def _answer(far: StartedCommand, shape: untrusted.Shape) -> dict[str, Any]:
    """The next answer; where none comes, how the far end ended says why."""
    for line in far.output:
        _, meant, text = line.partition(push_protocol.ANSWER.encode())
        if meant and text.endswith(b"\n"):
            try:
                answer: dict[str, Any] = untrusted.read(text, shape)
            except untrusted.Unexpected as problem:
                raise untrusted.unusable(far.host, problem) from problem
            return answer
    raise _ending(far)


def _ending(far: StartedCommand) -> Exception:
    code, said = far.ended(), far.complaint()
    if code in (receive_push.CUT, LOST):
        return lost(far.host, said, "a transfer")
    refuse_full_disk(said)
    kind = NoProgram if code == NO_PROGRAM else CommandFailed
    return kind(f"a transfer failed on {far.host}", why=said or f"exit code {code}")


def _refuse_without_room(room: Mapping[str, Any]) -> None:
    if not room.get("short"):
        return
    short = room["short"][0]
    if short["unit"] == "bytes":
        needed, free = say_size(room.get("bytes", 0)), say_size(short["free"])
    else:
        needed, free = f"{room.get('files', 0):,} files", f"{short['free']:,} files"
    raise NoSpace(
        "there is not enough room on the cluster; nothing was sent",
        why=f"{needed} would come and the {short['limit']} there has room for {free}",
        hint="remove what is no longer needed there, or name another `store` "
        "under [storage] in the cluster's profile",
    )


def _sent(missing: Sequence[Freight], feed: BufferedWriter) -> Iterator[int]:
    """Send every file; the bytes of it that went each time."""
    for each in missing:
        for piece in each.pieces:
            yield from _squeezed(piece, feed) if each.squeezed else piece.poured(feed)


def _squeezed(piece: MissingPiece, feed: BufferedWriter) -> Iterator[int]:
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
            with asked(parcels, shell, node) as there:
                most, stripes = max(most, there.left), stripes or there.stripes
                if least is None or there.left < least:
                    tries, least = 0, there.left
                told = _telling(there.missing, moved)
                carrier = transfer if there.left else None  # bytes that are there need a proof only
                damaged = [] if carrier else there.send(told)
            if carrier:
                shell, transfer = _by_rsync(there, shell, carrier, told), None
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
        why="its sha256 there is not what it should be",
        hint="if the copy on this computer was changed, remove it there and pack again",
    )


def _by_rsync(
    there: PushAnswer, login: Shell, transfer: Shell, told: Callable[[int], None]
) -> Shell:
    """Send by rsync, if both ends have it; the host that has to take what is left then.

    Hosts made for transfers are made for rsync and may have no Python worth the name, so what
    rsync brought is proven from the login node.
    """
    by_rsync = there.has_rsync and send(there.missing, transfer, told)
    return login if by_rsync else transfer


def _telling(missing: Sequence[Freight], moved: Moved) -> Callable[[int], None]:
    """Tells of all bytes of what is missing, also of those that came before."""
    total = sum(each.size for each in missing)
    before = total - sum(each.missing for each in missing)
    return lambda sent: moved(min(before + sent, total), total)
