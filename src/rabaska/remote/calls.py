"""Calls of ssh, and the head start of those that are made often.

`rabaska status` begins with the same call each time. Starting ssh, a login shell and Python at
the other end takes as long as importing this program, so both are done at once: the call is
noted when it is made, begun at the very start of the next command, and adopted by whoever comes
to make the same one. If nobody does, it ends with its empty input; so only questions are noted.
"""

import json
import os
import subprocess
from collections.abc import Sequence
from typing import IO

from rabaska.remote.private import private_folder, somebody_listens

_PIPE = 1 << 20  # bytes on their way to ssh; the usual 64 KiB make both ends wait for each other


class Call:
    """A call of ssh that was started, and where it complains."""

    def __init__(self, words: Sequence[str]) -> None:
        self.errors = _memory()
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            pipesize=_PIPE,
        )


_ahead: dict[str, Call] = {}  # what was begun and not adopted yet, by what was noted


def begin(occasion: str) -> None:
    """Make the call that was noted last time; whatever goes wrong, there will be another."""
    try:
        with open(_note_of(occasion), encoding="utf-8") as note:
            noted = note.read()
        told = json.loads(noted)
        if somebody_listens(told["sockets"]):
            _ahead[noted] = call = Call(told["words"])
            call.process.stdin.write(told["script"].encode())  # type: ignore[union-attr]
            call.process.stdin.flush()  # type: ignore[union-attr]
    except Exception:  # a note is worth nothing but time
        _ahead.clear()


def adopted(words: Sequence[str], script: str, sockets: str) -> Call | None:
    """The very same call, if it was begun."""
    return _ahead.pop(_noted(words, script, sockets), None)


def note(occasion: str, words: Sequence[str], script: str, sockets: str) -> None:
    path, noted = _note_of(occasion), _noted(words, script, sockets)
    partial = f"{path}.{os.getpid()}.partial"
    with open(partial, "w", encoding="utf-8") as file:
        file.write(noted)
    os.replace(partial, path)


def _noted(words: Sequence[str], script: str, sockets: str) -> str:
    return json.dumps({"words": list(words), "script": script, "sockets": sockets})


def _note_of(occasion: str) -> str:
    return f"{private_folder()}/{occasion}.json"


def _memory() -> IO[bytes]:
    """A file that nobody else sees."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("rabaska"), "w+b")
    from tempfile import TemporaryFile  # macOS

    return TemporaryFile()
