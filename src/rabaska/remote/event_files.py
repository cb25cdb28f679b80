"""Event files of runs, copied here while they grow: only the bytes that are not here yet."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from rabaska.domain import untrusted
from rabaska.node.login.grown_files import MARK, event_files
from rabaska.remote.local_disk import unwritable
from rabaska.remote.place import NodeSide, Place, quoted

_TOLD = {
    "end?": bool,
    "more?": bool,
    "run?": int,
    "name?": untrusted.PATH,
    "at?": untrusted.SIZE,
    "bytes?": untrusted.SIZE,
}
_LONGEST = 1 << 20  # bytes of a line


def bring_grown(place: Place, node: NodeSide, copies: Mapping[str, Path]) -> int:
    """Add what is new in each run folder there to its copy here; how many bytes came."""
    came = 0
    while True:
        count, more = _ask(place, node, copies)
        came += count
        if not more or not count:
            return came


def _ask(place: Place, node: NodeSide, copies: Mapping[str, Path]) -> tuple[int, bool]:
    question = [{"path": path, "have": sizes(copy)} for path, copy in copies.items()]
    stream = place.stream(quoted([*node.node, "grown"]), feed=json.dumps(question).encode() + b"\n")
    answer, folders, came = _Answer(stream), list(copies.values()), 0
    try:
        while not (told := answer.line()).get("end"):
            folder, name = _place_of(told, folders)
            data = answer.read(told["bytes"])
            _add(folder / name, told["at"], data)
            came += len(data)
        return came, bool(told.get("more"))
    except untrusted.Unexpected as problem:
        raise untrusted.unusable("", problem) from problem
    finally:
        answer.close()


def sizes(copy: Path) -> dict[str, int]:
    """What is here of each file."""
    return {name: size for name, _, size in event_files(str(copy))}


def _place_of(told: Mapping[str, Any], folders: list[Path]) -> tuple[Path, str]:
    """Where it belongs; what would lead out of its folder is not for us."""
    if not {"run", "name", "at", "bytes"} <= told.keys() or not 0 <= told["run"] < len(folders):
        raise untrusted.Unexpected("it tells of a file of no run")
    name = PurePosixPath(told["name"])
    if name.is_absolute() or ".." in name.parts or MARK not in name.name:
        raise untrusted.Unexpected(f"{name} is no event file of the run")
    return folders[told["run"]], str(name)


def _add(file: Path, at: int, data: bytes) -> None:
    """Write what stands `at` in the file, and cut off what was behind it."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "wb") as stream:  # noqa: PTH123
            if at > os.fstat(descriptor).st_size:
                raise untrusted.Unexpected("it leaves out a part of a file")
            stream.seek(at)
            stream.write(data)
            stream.truncate()
    except OSError as problem:
        raise unwritable(problem, file) from problem


class _Answer:
    """Lines and counted bytes out of the chunks of a stream."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._left = b""

    def line(self) -> dict[str, Any]:
        while b"\n" not in self._left:
            if len(self._left) > _LONGEST or not self._more():
                raise untrusted.Unexpected("it ends in the middle")
        line, _, self._left = self._left.partition(b"\n")
        value: dict[str, Any] = untrusted.read(line, _TOLD)
        return value

    def read(self, count: int) -> bytes:
        pieces, missing = [self._left[:count]], count - len(self._left)
        self._left = self._left[count:]
        while missing > 0:
            if not self._more():
                raise untrusted.Unexpected("it ends in the middle of a file")
            pieces.append(self._left[:missing])
            missing, self._left = missing - len(self._left), self._left[missing:]
        return b"".join(pieces)

    def _more(self) -> bool:
        chunk = next(self._chunks, b"")
        self._left += chunk
        return bool(chunk)

    def close(self) -> None:
        close = getattr(self._chunks, "close", None)
        if close:
            close()
