"""One line of a benchmark: a piece of work, ours beside a peer's."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    work: str
    peer: str  # what it is compared with
    ours: float
    theirs: float
    ratio: float  # bigger is better
    at_least: float | None = None  # what the ratio must reach; None: only told
    unit: str = "s"  # of ours and theirs

    @property
    def falls_short(self) -> bool:
        return self.at_least is not None and self.ratio < self.at_least
