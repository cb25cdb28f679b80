"""What is pushed: parcels of one file or many, each growing beside the name it will have."""

import os
from typing import Any, Dict, List, NamedTuple

from ..files import PARTIAL, native

Json = Dict[str, Any]


class File(NamedTuple):
    name: str  # relative to the parcel; empty when the parcel is one file
    size: int
    sha256: str = ""  # not told when the question is only what is here
    comes: int = 0  # so many of its bytes follow the order, its last ones


class Parcel(NamedTuple):
    told: str  # the target as the sender spells it
    files: List[File]
    squeezed: bool = False  # its bytes come compressed, chunk by chunk
    doubted: bool = False  # what is here was found damaged, so all of it has to be proven again

    @property
    def target(self) -> str:
        return native(self.told)

    @property
    def partial(self) -> str:
        return self.target + PARTIAL

    @property
    def is_there(self) -> bool:
        return os.path.exists(self.target)

    @property
    def is_whole(self) -> bool:
        """Whether all its files are in their places: sites delete those that nobody read lately."""
        return all(_size(_inside(self.target, file)) == file.size for file in self.files)

    def path(self, file: File) -> str:
        return _inside(self.partial, file)

    def arrived(self, file: File) -> int:
        """How many bytes of a file are here; all of it may still be wrong."""
        return min(max(_size(self.path(file)), 0), file.size)


def _inside(parcel: str, file: File) -> str:
    return os.path.join(parcel, native(file.name)) if file.name else parcel


def _size(path: str) -> int:
    """-1 when there is no such file."""
    try:
        return os.path.getsize(path)
    except OSError:
        return -1


def parcels(told: List[Json]) -> List[Parcel]:
    """Those of a question or an order."""
    return [
        Parcel(
            each["target"], [File(*fields) for fields in each["files"]],
            each.get("squeezed", False), each.get("doubted", False),
        )
        for each in told
    ]  # fmt: skip
