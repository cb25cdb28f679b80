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

    @property
    def target(self) -> str:
        return native(self.told)

    @property
    def partial(self) -> str:
        return self.target + PARTIAL

    @property
    def is_there(self) -> bool:
        return os.path.exists(self.target)

    def path(self, file: File) -> str:
        return os.path.join(self.partial, native(file.name)) if file.name else self.partial

    def arrived(self, file: File) -> int:
        """How many bytes of a file are here; all of it may still be wrong."""
        try:
            return min(os.path.getsize(self.path(file)), file.size)
        except OSError:
            return 0


def parcels(told: List[Json]) -> List[Parcel]:
    """Those of a question or an order."""
    return [
        Parcel(
            each["target"], [File(*fields) for fields in each["files"]], each.get("squeezed", False)
        )
        for each in told
    ]
