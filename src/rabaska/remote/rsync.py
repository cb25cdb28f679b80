"""The missing bytes of a folder by rsync, where both ends have it."""

import re
import shlex
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import BufferedReader
from subprocess import DEVNULL, PIPE
from typing import cast

from rabaska.remote import programs
from rabaska.remote.connection import Connection
from rabaska.remote.freight import Freight
from rabaska.remote.refusals import lost, refuse_full_disk
from rabaska.remote.shell import LOST, Shell

# Owner, group and permissions are the far side's own: on a project space files must get the
# space's group, or they count against the wrong quota. Nothing is compared: what is there of a
# file is its beginning, and the far end proves the whole of it afterwards.
_HOW = (
    "--recursive",
    "--append",
    "--no-perms",
    "--no-group",
    "--no-owner",
    "--no-inc-recursive",
)
_TOLD = ("--info=progress2", "--no-human-readable", "--protect-args")
_PROGRESS = re.compile(rb"\s*(\d[\d,.]*)\s+\d+%")
# rsync(1): error in socket I/O, in the data stream, timeouts; and ssh's own when it was cut off.
_CUT_OFF = (10, 12, 30, 35, LOST)


def send(missing: Sequence[Freight], shell: Shell, told: Callable[[int], None]) -> bool:
    """Send what is missing; False when rsync does not work, and another way must be taken."""
    if not programs.is_there("rsync"):
        return False
    shell.connection.open()
    before = 0
    for each in missing:
        if not _send_one(each, shell.connection, partial(_tell, told, before)):
            return False
        before += each.missing
    return True


def _tell(told: Callable[[int], None], before: int, sent: int) -> None:
    told(before + sent)


def _send_one(each: Freight, connection: Connection, told: Callable[[int], None]) -> bool:
    with tempfile.TemporaryFile() as errors:
        command = _command(each, connection)
        with programs.started(command, stdin=DEVNULL, stdout=PIPE, stderr=errors) as process:
            try:
                for sent in _progress(cast(BufferedReader, process.stdout)):
                    told(sent)
                code = process.wait()
            finally:
                process.terminate()
        errors.seek(0)
        return _judge(code, errors.read().decode(errors="replace"), connection.host)


def _command(each: Freight, connection: Connection) -> list[str]:
    source = each.parcel.source
    from_, to = (f"{source}/", f"{each.partial}/") if source.is_dir() else (source, each.partial)
    squeeze = ["--compress"] if each.squeezed else []
    # rsync is started by a shell that has the site's umask, and not ours.
    group = "" if connection.umask.endswith("77") else "rX"
    modes = f"--chmod=u=rwX,g={group},o="
    return ["rsync", *_HOW, modes, *_TOLD, *squeeze, "-e", shlex.join(connection.plain_shell()),
            str(from_), f"{connection.host}:{to}"]  # fmt: skip


def _progress(printed: BufferedReader) -> Iterator[int]:
    """Bytes sent so far: rsync writes its line again and again, between carriage returns."""
    line = b""
    while chunk := printed.read1(4096):
        *lines, line = (line + chunk).replace(b"\n", b"\r").split(b"\r")
        for each in lines:
            if found := _PROGRESS.match(each):
                yield int(re.sub(rb"\D", b"", found[1]))


def _judge(code: int, said: str, host: str) -> bool:
    if code == 0:
        return True
    refuse_full_disk(said.strip())
    # A shell that prints a banner confuses rsync ("is your shell clean?"): that is code 2.
    if code in _CUT_OFF and "is your shell clean" not in said:
        raise lost(host, said, "a transfer")
    return False
