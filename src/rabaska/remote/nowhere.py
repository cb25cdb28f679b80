"""A cluster that is not asked: one that is gone, or cannot be reached while a plan is made."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rabaska.errors import Unreachable
from rabaska.remote.brought import Brought
from rabaska.remote.place import Delivered, Moved, NodeSide, Outcome, Parcel


@dataclass(frozen=True)
class Nowhere:
    """Answers every question with a failure, and moves nothing."""

    why: str

    def run(self, script: str, *, feed: bytes = b"", again: str = "") -> Outcome:
        return Outcome(exit_code=255, output="", errors=self.why)

    def stream(self, script: str) -> Iterator[bytes]:
        raise self._refusal()

    def attach(self, script: str, *, terminal: bool) -> int:
        raise self._refusal()

    def send(self, source: Path, target: str) -> None:
        raise self._refusal()

    def deliver(
        self, parcels: Sequence[Parcel], node: NodeSide, moved: Moved | None = None
    ) -> Delivered:
        raise self._refusal()

    def bring(
        self,
        source: str,
        target: Path,
        node: NodeSide,
        *,
        leave_out: Sequence[str] = (),
        moved: Moved | None = None,
    ) -> Brought:
        raise self._refusal()

    def _refusal(self) -> Unreachable:
        return Unreachable("the cluster is not asked", why=self.why)
