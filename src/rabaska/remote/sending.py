"""The missing bytes of many files through one command, which proves them as they come."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from rabaska.errors import CommandFailed
from rabaska.node.login import receive
from rabaska.remote.freight import Freight
from rabaska.remote.place import NodeSide, quoted
from rabaska.remote.refusals import lost, refuse_full_disk
from rabaska.remote.shell import Shell, Started


def send(
    missing: Sequence[Freight], shell: Shell, node: NodeSide, told: Callable[[int], None]
) -> list[str]:
    """Send what is missing; the files that are damaged there."""
    order = json.dumps([each.order() for each in missing]).encode()
    with shell.started(node.quickly("receive", "take", str(len(order)))) as far:
        far.write(order)
        # If the far end does not listen any more, how it ended says why.
        with suppress(BrokenPipeError):
            sent = 0
            for chunk, length in _chunks(missing):
                far.feed.write(chunk)
                sent += length
                told(sent)
            far.feed.flush()
        _look_at_end(far)
        return _damaged(far.output.read())


def prove(missing: Sequence[Freight], node: NodeSide) -> list[str]:
    """Have proven what came another way; the files that are damaged there."""
    order = json.dumps([each.order(arrived=True) for each in missing]).encode()
    outcome = node.run(quoted([*node.node, "receive", "take", str(len(order))]), feed=order)
    if outcome.exit_code != 0:
        refuse_full_disk(outcome.complaint)
        raise CommandFailed("what was sent could not be proven there", why=outcome.complaint)
    return _damaged(outcome.output)


def _damaged(answer: str | bytes) -> list[str]:
    damaged = json.loads(answer)["damaged"]
    return [name or target for target, names in damaged.items() for name in names]


def _chunks(missing: Sequence[Freight]) -> Iterator[tuple[bytes | memoryview, int]]:
    """What goes over the line, and for how many bytes of a file it stands."""
    for each in missing:
        for piece in each.pieces:
            for chunk in piece.chunks(receive.CHUNK if each.squeezed else receive.PIECE):
                yield receive.squeezed(chunk) if each.squeezed else chunk, len(chunk)


def _look_at_end(far: Started) -> None:
    code = far.ended()
    if code == receive.NO_SPACE:
        refuse_full_disk(far.complaint())
    if code == receive.CUT:
        raise lost(far.host, far.complaint(), "a transfer")
    far.expect_success("a transfer")
