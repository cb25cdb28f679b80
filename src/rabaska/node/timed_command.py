"""Ask a command, and give it up with all that it started when it does not answer in time."""

import os
import signal
import subprocess
from typing import List, NamedTuple, Optional

NO_ANSWER = 124  # as timeout(1) spells it
_LAST_WORDS = 1.0  # seconds in which a command that was killed lets go of its output


class CommandAnswer(NamedTuple):
    exit_code: int
    output: bytes
    errors: bytes


def begin(words: List[str], stderr: Optional[int] = subprocess.PIPE) -> "subprocess.Popen[bytes]":
    """Start a command in a session of its own, so that its children end with it."""
    return subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
    )


def answer(process: "subprocess.Popen[bytes]", patience: float) -> CommandAnswer:
    """What it said; exit code NO_ANSWER where that took longer than `patience` seconds.

    Many commands are shells, whose children hold the output: killing the shell alone ends nothing.
    """
    try:
        output, errors = process.communicate(timeout=patience)
        return CommandAnswer(process.returncode, output or b"", errors or b"")
    except subprocess.TimeoutExpired:
        _kill(process)
    try:
        output, errors = process.communicate(timeout=_LAST_WORDS)
    except subprocess.TimeoutExpired:  # a child with a session of its own has the output
        output, errors = b"", b""
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        process.poll()  # it is dead by now; nobody else would notice
    return CommandAnswer(NO_ANSWER, output or b"", errors or b"")


def run(
    words: List[str], patience: float, stderr: Optional[int] = subprocess.DEVNULL
) -> CommandAnswer:
    """The answer of a command; OSError where it cannot be started. `stderr=None` is our own."""
    return answer(begin(words, stderr), patience)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
