"""The missing bytes of many files through one command, for places without rsync."""

import json
from collections.abc import Callable, Iterator, Sequence

from rabaska.errors import NoSpace
from rabaska.node import receive
from rabaska.remote.pieces import Piece
from rabaska.remote.place import NodeSide, quoted
from rabaska.remote.refusals import lost
from rabaska.remote.shell import Shell, Started

_CHUNK = 1 << 20


def send(
    wanted: Sequence[Piece], shell: Shell, node: NodeSide, told: Callable[[int], None]
) -> None:
    order = [[piece.target, piece.offset, piece.length] for piece in wanted]
    with shell.started(quoted([*node.node, "receive", "take"])) as far:
        try:
            far.feed.write(json.dumps(order).encode() + b"\n")
            sent = 0
            for chunk in _chunks(wanted):
                far.feed.write(chunk)
                sent += len(chunk)
                told(sent)
            far.feed.flush()
        except BrokenPipeError:
            pass  # how the far end ended says more
        _look_at_end(far)


def _chunks(wanted: Sequence[Piece]) -> Iterator[bytes]:
    for piece in wanted:
        length = piece.length
        with piece.source.open("rb") as stream:
            stream.seek(piece.offset)
            while length and (chunk := stream.read(min(_CHUNK, length))):
                yield chunk
                length -= len(chunk)


def _look_at_end(far: Started) -> None:
    code = far.ended()
    if code == receive.NO_SPACE:
        raise no_space(far.complaint())
    if code == receive.CUT:
        raise lost(far.host, far.complaint(), "a transfer")
    far.expect_success("a transfer")


def no_space(said: str) -> NoSpace:
    return NoSpace(
        "the cluster ran out of room while files were being sent",
        why=said,
        hint="free some space there and give the same command again: it goes on where it stopped",
    )
