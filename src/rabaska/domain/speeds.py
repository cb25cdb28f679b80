"""What storage can do, and how long a dataset would take on it."""

from dataclasses import dataclass

_PAYS = 1.5  # an epoch must be that much shorter for packing to be worth the trouble
_LONG = 300.0  # seconds of staging that nobody wants to wait for
_MANY_FILES = 50_000


@dataclass(frozen=True)
class Dataset:
    files: int
    bytes: int


@dataclass(frozen=True)
class TierSpeed:
    """One kind of storage, as it was measured."""

    tier: str
    path: str = ""
    free: int = 0  # bytes
    files: int | None = None  # that may still be made
    write: float = 0.0  # bytes per second, one stream
    read: float = 0.0  # bytes per second, several streams
    seconds_to_make: float = 0.0  # a small file
    seconds_to_read: float = 0.0
    why: str = ""  # nothing was measured

    def epoch_of_files(self, data: Dataset) -> float:
        """Seconds to read everything once, one file after the other."""
        return data.files * self.seconds_to_read + data.bytes / self.read

    def epoch_of_shards(self, data: Dataset) -> float:
        return data.bytes / self.read

    def staged_as_files(self, data: Dataset) -> float:
        return data.files * self.seconds_to_make + data.bytes / self.write

    def staged_as_shards(self, data: Dataset) -> float:
        return data.bytes / self.write

    def packing_pays(self, data: Dataset) -> bool:
        return self.epoch_of_files(data) > _PAYS * self.epoch_of_shards(data)


def best_mode(data: Dataset, near: TierSpeed | None) -> str:
    """`files` needs no change of the program; `shards` where unpacking would take too long."""
    if data.files >= _MANY_FILES or (near and near.staged_as_files(data) > _LONG):
        return "shards"
    return "files"
