"""A push as the login node sees it: parcels of one file or many, and the messages."""

import json
import os
import struct
import sys
from typing import Any, Dict, List, NamedTuple

from ..files import PARTIAL, native

Json = Dict[str, Any]


class File(NamedTuple):
    name: str  # relative to the parcel; empty when the parcel is one file
    size: int
    digest: str = ""  # sha256, or that of a shard; not told when the question is only what is here
    comes: int = 0  # so many of its bytes follow the order, its last ones


class ReceivedParcel(NamedTuple):
    spelling: str  # the target as the sender spells it
    files: List[File]
    compressed: bool = False  # its bytes come compressed, chunk by chunk
    suspect: bool = False  # what is here was found damaged, so all of it has to be proven again

    @property
    def target(self) -> str:
        return native(self.spelling)

    @property
    def partial(self) -> str:
        return self.target + PARTIAL

    @property
    def is_there(self) -> bool:
        return os.path.exists(self.target)

    @property
    def is_complete(self) -> bool:
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


def parcels(told: List[Json]) -> List[ReceivedParcel]:
    """Those of a question or an order."""
    return [
        ReceivedParcel(
            each["target"],
            [File(*fields) for fields in each["files"]],
            each.get("squeezed", False),
            each.get("doubted", False),
        )
        for each in told
    ]


ANSWER = "--rabaska-answers-- "  # what a line begins with that is meant for the sender
LENGTH = struct.Struct("<I")
DESCRIPTOR = 0  # where its words and bytes come from


class SenderGone(Exception):
    """It ended before all was said."""


def word(value: Any) -> bytes:
    """A question or an order as it travels."""
    text = json.dumps(value).encode("ascii")
    return LENGTH.pack(len(text)) + text


def next_message() -> Any:
    """The next word of the sender."""
    length = LENGTH.unpack(read(LENGTH.size))[0]
    return json.loads(bytes(read(length)).decode("ascii"))


def answer(value: Any) -> None:
    sys.stdout.write("{}{}\n".format(ANSWER, json.dumps(value)))
    sys.stdout.flush()


def read(length: int) -> memoryview:
    """So many bytes from the sender, and not one more."""
    return filled(memoryview(bytearray(length)))


def filled(room: memoryview) -> memoryview:
    done = 0
    while done < len(room):
        came = os.readv(DESCRIPTOR, [room[done:]])
        if not came:
            raise SenderGone()
        done += came
    return room
