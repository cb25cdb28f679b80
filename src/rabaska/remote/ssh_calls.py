"""Calls of ssh, and the head start of those that are made often.

`rabaska status` begins with the same call each time. Starting ssh, a login shell and Python at
the other end takes as long as importing this program, so both are done at once: the call and its
question are noted when it is made, begun at the very start of the next command, and adopted by
whoever comes to make the same call. If nobody does, it ends with its input; so only questions
are noted.

Neither subprocess nor json nor typing: importing those takes longer than to start ssh.
"""

import fcntl
import os
from _io import BufferedReader, _RawIOBase
from _thread import get_ident
from time import monotonic

from rabaska.remote.ssh_connection import is_listening, private_socket_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

_PIPE = 1 << 20  # bytes on their way to ssh; the usual 64 KiB make both ends wait for each other
_TERM = 15  # the module that knows it as SIGTERM imports enum
_PAUSE = 0.5  # seconds of silence, after which we look whether the far end said that it ended
_PAUSES = 4  # of them, where that came on standard error: the last output may still be on its way

_DIGITS = 3  # of an exit code
_TAIL = 64  # bytes that the mark of the end fits into
moved = [0]  # bytes of questions and answers of this process, for who pays for a slow link

END = "--rabaska-ends--"  # said at the end of a script, with its exit code


def find_end(printed: bytes) -> tuple[bytes, int | None]:
    """What was said before the last mark of the end, and the exit code that stands there."""
    text, mark, code = printed.rpartition(f"\n{END} ".encode())
    number, ends, _ = code.partition(b"\n")
    is_code = number.isdigit() and len(number) <= _DIGITS
    return (text, int(number)) if mark and ends and is_code else (printed, None)


class Call:
    """A call of ssh that was started: what it reads, what it prints, and where it complains."""

    def __init__(self, words: list[str]) -> None:
        self.sent = b""  # the lines of the question that it got ahead
        self.exit_code: int | None = None
        self.errors = _memory()
        given, feeding = _pipe()
        reading, printed = _pipe()
        # Standard error first: where our own input is closed, its file has taken that place.
        ends = [(os.POSIX_SPAWN_DUP2, self.errors.fileno(), 2)]
        ends += [(os.POSIX_SPAWN_DUP2, printed, 1), (os.POSIX_SPAWN_DUP2, given, 0)]
        try:
            self._pid = os.posix_spawnp(words[0], words, os.environ, file_actions=ends)
        except OSError as problem:
            os.close(feeding)
            os.close(reading)
            self.errors.close()
            from rabaska.remote.programs import not_started

            raise not_started(words, problem) from problem
        finally:
            os.close(given)
            os.close(printed)
        self.feed = open(feeding, "wb")
        self._printed = Printed(reading, self.errors.fileno())
        self.output = BufferedReader(self._printed)

    def send(self, data: bytes) -> None:
        """Feed it; if it does not listen any more, how it ended says why."""
        moved[0] += len(data)
        try:
            self.feed.write(data)
            self.feed.flush()
        except BrokenPipeError:
            return

    def answer(self, data: bytes, *, framed: bool = False) -> bytes:
        """All that it prints, while it is fed: else each could wait for the other.

        What is `framed` has the mark of the end in its output.
        """
        import threading

        self._printed.framed = framed

        feeding = threading.Thread(target=self._send_all, args=(data,), daemon=True)
        feeding.start()
        printed = self.output.read()
        feeding.join()
        self.wait()
        return printed

    def _send_all(self, data: bytes) -> None:
        self.send(data)
        self.hang_up()

    def hang_up(self) -> None:
        """Nothing more will be said. Bytes that nobody reads must not hide why we stop."""
        try:
            self.feed.close()
        except BrokenPipeError:
            return

    def give_up_at(self, moment: "float | None") -> None:
        """When nothing was heard until then, there is nothing more to hear."""
        self._printed.deadline = moment

    @property
    def gave_up(self) -> bool:
        return self._printed.late

    def complaint(self) -> str:
        """What came on standard error, without the mark of the end."""
        return find_end(_content(self.errors.fileno()))[0].decode(errors="replace").strip()

    def wait(self) -> int:
        """Its exit code; what it left behind over there, which ssh would wait for, is no matter."""
        if self.exit_code is None and self._printed.ended is not None:
            return self._printed.ended
        if self.exit_code is None:
            _, status = os.waitpid(self._pid, 0)
            self.exit_code = os.waitstatus_to_exitcode(status)
        return self.exit_code

    def end(self) -> None:
        """Stop it, if it goes on, and let go of it."""
        if self.exit_code is None:
            os.kill(self._pid, _TERM)
        self.hang_up()
        self.output.close()
        self.wait()
        self.errors.close()


class Printed(_RawIOBase):
    """The output of a call up to its end, or to the end of the script.

    A process that a start-up file left behind holds the line open, and ssh goes on as long as
    it does. So a script says that it has ended: at the end of its output, or, where that
    consists of bytes that nobody may add to, on standard error.
    """

    def __init__(self, descriptor: int, errors: int) -> None:
        self._descriptor = descriptor
        self._errors = errors
        self.deadline: float | None = None
        self.framed = False
        self.ended: int | None = None  # how the script ended, where the line did not end with it
        self.late = False
        self._tail = b""

    def readable(self) -> bool:
        return True

    def readinto(self, room: "memoryview") -> int:  # type: ignore[override]
        silent = 0
        while not self._has_news():
            silent += 1
            self.ended = find_end(self._tail)[1] if self.framed else None
            if self.ended is None and silent >= _PAUSES:
                self.ended = find_end(_content(self._errors))[1]
            self.late = self.deadline is not None and monotonic() > self.deadline
            if self.ended is not None or self.late:
                return 0
        count = os.readv(self._descriptor, [room])
        moved[0] += count
        self._tail = (self._tail + bytes(room[max(0, count - _TAIL) : count]))[-_TAIL:]
        return count

    def _has_news(self) -> bool:
        from select import select

        return bool(select([self._descriptor], [], [], _PAUSE)[0])

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()


_ahead: dict[str, Call] = {}  # what was begun and not adopted yet, by its name


def begin(occasion: str) -> None:
    """Make the call that was noted last time; whatever goes wrong, there will be another."""
    try:
        with open(_note_of(occasion), encoding="utf-8") as note:
            question, sockets, script, *words = note.read().split("\0")
        if is_listening(sockets):
            _ahead[_name(words, script, sockets)] = call = Call(words)
            call.sent = question.encode()
            call.send(script_input(script) + call.sent)
    except Exception:  # a note is worth nothing but time
        _ahead.clear()


def adopted(words: list[str], script: str, sockets: str) -> Call | None:
    """The very same call, if it was begun."""
    return _ahead.pop(_name(words, script, sockets), None)


def script_input(script: str) -> bytes:
    """A script as it travels, before whatever it is fed."""
    return script.encode() + b"\0"


def unsent(question: bytes, sent: bytes) -> bytes:
    """The lines of a question that are still to be asked: each line asks for itself."""
    if not sent:
        return question
    sent_lines = set(sent.splitlines())
    return b"".join(line + b"\n" for line in question.splitlines() if line not in sent_lines)


def note(occasion: str, words: list[str], script: str, sockets: str, question: bytes) -> None:
    # What is said ahead must fit into the pipe: we do not listen while we import ourselves.
    kept = question if len(question) < _PIPE // 2 else b""
    path = _note_of(occasion)
    partial = f"{path}.{os.getpid()}-{get_ident()}.partial"
    with open(partial, "w", encoding="utf-8") as file:
        file.write("\0".join([kept.decode(), _name(words, script, sockets)]))
    os.replace(partial, path)


def _name(words: list[str], script: str, sockets: str) -> str:
    return "\0".join([sockets, script, *words])


def _note_of(occasion: str) -> str:
    return f"{private_socket_folder()}/{occasion}"


def _pipe() -> tuple[int, int]:
    reading, writing = os.pipe()
    try:
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE)
    except (AttributeError, OSError):
        return reading, writing  # macOS; or the user has many large pipes, and this one is slower
    return reading, writing


def _content(descriptor: int) -> bytes:
    """All of a file that somebody else may be writing, whose place in it is ours as well."""
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _memory() -> "IO[bytes]":
    """A file that nobody else sees."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("rabaska"), "w+b")
    from tempfile import TemporaryFile  # macOS

    return TemporaryFile()
