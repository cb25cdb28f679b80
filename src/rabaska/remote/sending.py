"""The conversation of a push: what is missing there, the bytes that are, and what arrived whole."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from io import BufferedWriter
from typing import Any

from rabaska.domain import answers
from rabaska.domain.amounts import say_size
from rabaska.errors import CommandFailed, NoSpace
from rabaska.node.login import receive, sender, taking
from rabaska.remote.freight import Freight, Piece, freight, question
from rabaska.remote.place import NO_PROGRAM, NodeSide, Parcel
from rabaska.remote.refusals import lost, refuse_full_disk
from rabaska.remote.shell import LOST, Shell, Started

# What the far end answers; see `receive` there.
_MISSING = {
    "missing": {str: [answers.SIZE]}, "rsync": bool,
    "room": {
        "bytes?": int, "files?": int, "stripes?": int,
        "short?": [{"unit": str, "free": int, "limit": str}],
    },
}  # fmt: skip
_TAKEN = {"damaged": {str: [str]}}


class NoProgram(CommandFailed):
    """Our program is not there, so nothing was asked."""


@dataclass(frozen=True)
class Asked:
    """A far end that told what it has and waits for an order."""

    far: Started
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
        self.far.write(sender.word([each.order() for each in self.missing]))
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
def asked(parcels: Sequence[Parcel], shell: Shell, node: NodeSide) -> Iterator[Asked]:
    """One question for all parcels; the far end waits for an order as long as the block lasts."""
    with shell.started(node.guarded(node.quickly("receive"))) as far:
        far.write(sender.word([question(parcel) for parcel in parcels]))
        answer = _answer(far, _MISSING)
        _refuse_without_room(answer["room"])
        there = answer["missing"]
        wanted = [parcel for parcel in parcels if parcel.target in there]
        try:
            missing = [freight(parcel, there[parcel.target]) for parcel in wanted]
        except answers.Unexpected as problem:
            raise answers.unusable(far.host, problem) from problem
        yield Asked(far, missing, answer["room"].get("stripes", 0), answer["rsync"])


def _answer(far: Started, shape: answers.Shape) -> dict[str, Any]:
    """The next answer; where none comes, how the far end ended says why."""
    for line in far.output:
        _, meant, text = line.partition(sender.ANSWER.encode())
        if meant and text.endswith(b"\n"):
            try:
                answer: dict[str, Any] = answers.read(text, shape)
            except answers.Unexpected as problem:
                raise answers.unusable(far.host, problem) from problem
            return answer
    raise _ending(far)


def _ending(far: Started) -> Exception:
    code, said = far.ended(), far.complaint()
    if code in (receive.CUT, LOST):
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


def _squeezed(piece: Piece, feed: BufferedWriter) -> Iterator[int]:
    for chunk in piece.chunks(taking.CHUNK):
        feed.write(taking.squeezed(chunk))
        yield len(chunk)
