"""The digest of a shard: BLAKE2b in its tree mode, over leaves of 16 KiB.

Leaves do not depend on one another, so C digests several at once. Without C, hashlib does the same
leaf by leaf, in every Python: the same name for the same pack everywhere (docs/decisions/0033).
"""

import hashlib
from typing import Any

from ..native import compiled

LEAF = 16384
PREFIX = "blake2b-tree:"  # of the text, so that nobody takes it for another digest
_SIZE = 32


class PythonTree:
    """As hashlib has digests; nothing may be added once its text was asked for."""

    def __init__(self) -> None:
        self._root = _node(1, 0, last=True)
        self._leaves = 0
        self._waiting = bytearray()  # the last leaf is told from others, so one is kept back

    def update(self, piece: Any) -> None:
        view, done = memoryview(piece).cast("B"), 0
        while done < len(view):
            if len(self._waiting) == LEAF:
                self._end_leaf(last=False)
            step = min(LEAF - len(self._waiting), len(view) - done)
            self._waiting += view[done : done + step]
            done += step

    def hexdigest(self) -> str:
        self._end_leaf(last=True)
        return PREFIX + str(self._root.hexdigest())

    def _end_leaf(self, *, last: bool) -> None:
        leaf = _node(0, self._leaves, last=last)
        leaf.update(self._waiting)
        self._root.update(leaf.digest())
        self._waiting, self._leaves = bytearray(), self._leaves + 1


def _node(depth: int, place: int, *, last: bool) -> Any:
    return hashlib.blake2b(
        digest_size=_SIZE,
        fanout=0,
        depth=2,
        leaf_size=LEAF,
        node_offset=place,
        node_depth=depth,
        inner_size=_SIZE,
        last_node=last,
    )


class CompiledTree:
    """The same in C."""

    def __init__(self) -> None:
        self._tree = compiled.Tree()

    def update(self, piece: Any) -> None:
        self._tree.update(piece)

    def hexdigest(self) -> str:
        return PREFIX + str(self._tree.digest().hex())


def tree_digest() -> Any:
    return PythonTree() if compiled is None else CompiledTree()


def digest_like(text: str) -> Any:
    """A digest of the kind that gave `text`: that of a shard, or sha256."""
    return tree_digest() if text.startswith(PREFIX) else hashlib.sha256()
