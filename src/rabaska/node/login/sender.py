"""The other end of a push: what it says, and how it is answered.

Each of its words is JSON behind its length; bytes follow the last one. Each answer is a line.
"""

import json
import os
import struct
import sys
from typing import Any

ANSWER = "--rabaska-answers-- "  # what a line begins with that is meant for the sender
LENGTH = struct.Struct("<I")
DESCRIPTOR = 0  # where its words and bytes come from


class SenderGone(Exception):
    """It ended before all was said."""


def word(value: Any) -> bytes:
    """A question or an order as it travels."""
    text = json.dumps(value).encode("ascii")
    return LENGTH.pack(len(text)) + text


def heard() -> Any:
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
