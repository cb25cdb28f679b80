"""Data staged by all nodes of a job together: when they meet, and what is left of it: nothing.

They meet when the first dataset comes that is worth it. Where they cannot, each stages alone.
"""

import json
import os
import socket
from contextlib import contextmanager
from typing import Callable, Iterator, List, Optional

from ..data import stage
from ..data.pack_format import Manifest
from ..record.events import say
from ..record.plan import IN_PLACE
from . import node_group, pass_blocks
from .key_file import key_file
from .pass_blocks import Sharing
from .this_job import Work

SWITCH = "RABASKA_TOGETHER"  # "0": each node stages alone


class Meeting:
    """One node's part in it."""

    def __init__(self, begin: Callable[[], "Optional[_Met]"]) -> None:
        self._begin = begin
        self._tried = False
        self._met = None  # type: Optional[_Met]

    def together(self, number: int, manifest: Manifest) -> Optional[stage.Together]:
        """How dataset `number` of the run is staged, if the nodes do that together."""
        if not pass_blocks.is_worth(manifest):
            return None
        if not self._tried:
            self._tried = True
            try:
                self._met = self._begin()
            except (OSError, ValueError, KeyError, TypeError) as problem:
                say("this node stages alone: {}".format(problem))
        return self._met.sharing.together(number, manifest) if self._met else None

    def finish(self) -> None:
        if self._met is not None:
            self._met.finish()

    def close(self) -> None:
        if self._met is not None:
            self._met.close()
            self._met.sharing.close()


class _Met:
    def __init__(
        self, sharing: Sharing, finish: Callable[[], None], close: Callable[[], None]
    ) -> None:
        self.sharing, self.finish, self.close = sharing, finish, close


class FirstMeeting(Meeting):
    """Of the first node, at which the others arrive."""

    def __init__(self, name: str, address: str, key: str, path: str, others: int) -> None:
        super().__init__(self._gather)
        self._serving = node_group.open_listener(address)
        self._first = node_group.FirstNode(address, key, others, self._serving)
        self._sharing = Sharing(self._serving, key, 0, others + 1, self._addresses)
        self.is_over: Callable[[], bool] = lambda: False
        self.words = [name, str(self._first.port), path]  # for those who come

    def _gather(self) -> _Met:
        return _Met(self._sharing, lambda: self._first.finish(self.is_over), self._first.close)

    def _addresses(self) -> List[Optional[node_group.Address]]:
        found = self._first.addresses(self.is_over)
        say("{} nodes read the data together".format(sum(one is not None for one in found)))
        return found

    def close(self) -> None:
        super().close()
        self._first.close()
        self._sharing.close()


@contextmanager
def first_meeting(work: Work) -> Iterator[Optional[FirstMeeting]]:
    """Where the other nodes may come to; None for a job of one node, or without data to stage."""
    nodes = work.plan.launch.nodes
    if (
        nodes < 2
        or os.environ.get(SWITCH) == "0"
        or all(dataset.mode == IN_PLACE for dataset in work.plan.datasets)
    ):
        yield None
        return
    name = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    address = node_group.own_address(name)
    if not address:
        say("each node stages alone: others cannot reach this one by its name, {}".format(name))
        yield None
        return
    with key_file({}) as (path, key):
        meeting = FirstMeeting(name, address, key, path, nodes - 1)
        try:
            yield meeting
            meeting.finish()
        finally:
            meeting.close()


@contextmanager
def other_meeting(words: List[str]) -> Iterator[Optional[Meeting]]:
    """On another node, which was told where the first one is."""
    if not words:
        yield None
        return
    host, port, path = words

    def come() -> _Met:
        # Not before: where no data is worth it, the first node may be done, and the file gone.
        with open(path) as stream:
            key = json.load(stream)["key"]
        node = node_group.OtherNode(host, int(port), key)
        serving = node_group.open_listener(node.address)
        place, count = node.join(serving)
        return _Met(Sharing(serving, key, place, count, node.addresses), node.finish, node.close)

    meeting = Meeting(come)
    try:
        yield meeting
        meeting.finish()
    finally:
        meeting.close()
