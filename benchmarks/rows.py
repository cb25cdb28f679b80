"""One line of a benchmark: a piece of work, ours beside a peer's."""

from dataclasses import dataclass, field

from measuring import spread


@dataclass(frozen=True)
class Row:
    work: str
    peer: str  # what it is compared with
    ours: float
    theirs: float
    ratio: float  # bigger is better
    at_least: float | None = None  # what the ratio must reach; None: only told
    unit: str = "s"  # of ours and theirs
    spread: float = field(init=False)  # by how much the ratio differed from round to round

    def __post_init__(self) -> None:
        object.__setattr__(self, "spread", spread(self.ours, self.theirs))
        object.__setattr__(self, "ours", float(self.ours))  # not each round, where it is kept
        object.__setattr__(self, "theirs", float(self.theirs))

    @property
    def falls_short(self) -> bool:
        """Below what was asked, by more than it differs from round to round."""
        return self.at_least is not None and self.ratio + self.spread < self.at_least
