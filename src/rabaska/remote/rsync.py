"""The missing bytes of a folder by rsync, where both ends have it."""

import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import IO

from rabaska.node import files
from rabaska.remote.connection import Connection
from rabaska.remote.pieces import Piece
from rabaska.remote.place import Parcel
from rabaska.remote.refusals import lost
from rabaska.remote.sending import no_space
from rabaska.remote.shell import LOST, Shell

# Owner, group and permissions are the far side's own: on a project space files must get the
# space's group, or they count against the wrong quota. Nothing is compared: what is there of a
# file is its beginning, and the far end proves the whole of it afterwards.
_HOW = ("--append", "--no-perms", "--no-group", "--no-owner", "--no-inc-recursive")
_TOLD = ("--info=progress2", "--no-human-readable", "--protect-args", "--files-from=-", "--from0")
_PROGRESS = re.compile(rb"\s*(\d[\d,.]*)\s+\d+%")
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
# rsync(1): error in socket I/O, in the data stream, timeouts; and ssh's own when it was cut off.
_CUT_OFF = (10, 12, 30, 35, LOST)


def send(wanted: Sequence[Piece], shell: Shell, told: Callable[[int], None]) -> bool:
    """Send pieces of one parcel; False when rsync did not work, and another way must be taken."""
    if not shutil.which("rsync"):
        return False
    shell.connection.open()
    with tempfile.TemporaryFile() as names, tempfile.TemporaryFile() as errors:
        names.write(b"\0".join(piece.name.encode() for piece in wanted))
        names.seek(0)
        with subprocess.Popen(
            _command(wanted[0].parcel, shell.connection),
            stdin=names,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as process:
            try:
                for sent in _progress(process.stdout):
                    told(sent)
                code = process.wait()
            finally:
                process.terminate()
        errors.seek(0)
        return _judge(code, errors.read().decode(errors="replace"), shell.connection.host)


def _command(parcel: Parcel, connection: Connection) -> list[str]:
    far_shell = ["-e", shlex.join(connection.shell())]
    return [
        "rsync", *_HOW, *_TOLD, *far_shell,
        f"{parcel.source}/", f"{connection.host}:{parcel.target}{files.PARTIAL}/",
    ]  # fmt: skip


def _progress(printed: IO[bytes] | None) -> Iterator[int]:
    """Bytes sent so far: rsync writes its line again and again, between carriage returns."""
    line = b""
    while printed and (chunk := printed.read1(4096)):  # type: ignore[attr-defined]
        *lines, line = (line + chunk).replace(b"\n", b"\r").split(b"\r")
        for each in lines:
            if found := _PROGRESS.match(each):
                yield int(re.sub(rb"\D", b"", found[1]))


def _judge(code: int, said: str, host: str) -> bool:
    if code == 0:
        return True
    if _FULL.search(said):
        raise no_space(said.strip())
    # A shell that prints a banner confuses rsync ("is your shell clean?"): that is code 2.
    if code in _CUT_OFF and "is your shell clean" not in said:
        raise lost(host, said, "a transfer")
    return False
