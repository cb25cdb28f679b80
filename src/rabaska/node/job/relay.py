"""Connections to a server of a job, many of them through one stream of bytes.

`relay RUNFOLDER KIND` runs on the node, its standard input and output being the stream. It waits
for the server, prints MARK and a JSON line of what a client must know, and then both ends speak in
frames: channel, kind, length, so many bytes, and a newline: srun passes output on line by line, and
would keep what has none. Each side of a channel sends no more than WINDOW bytes that the other has
not passed on: who reads slowly holds up nobody else.

`relay RUNFOLDER ssh JOB` starts an ssh server for each connection instead (see `ssh_session`).
"""

import json
import os
import queue
import socket
import struct
import sys
import threading
import time
from typing import Any, BinaryIO, Callable, Dict, List, Optional

from .. import files, private_files
from ..record.run_folder import RunFolder
from . import ssh_session

SSH = "ssh"
MARK = b"--rabaska-relay--"
OPEN, DATA, END, CREDIT = 1, 2, 3, 4
HEADER = struct.Struct(">IBI")
WINDOW = 1 << 18  # bytes
NO_SERVER = 66  # the exit code when there is none
_CHUNK = 1 << 15
_PATIENCE = 120.0  # seconds for a server to begin to listen


class Broken(ValueError):
    """The other end does not speak as we do."""


class Mux:
    """One end of the stream; `accept` makes the connection for a channel that the other opens."""

    def __init__(
        self,
        reading: BinaryIO,
        writing: BinaryIO,
        accept: "Optional[Callable[[], socket.socket]]" = None,
    ) -> None:
        self._reading, self._writing, self._accept = reading, writing, accept
        self._lock = threading.Lock()
        self._channels = {}  # type: Dict[int, Channel]
        self._last = 0
        self.over = False

    def connect(self) -> socket.socket:
        """A new channel, as a socket whose other end is the server."""
        ours, theirs = socket.socketpair()
        with self._lock:
            self._last += 1
            number = self._last
            channel = self._channels[number] = Channel(self, number, theirs)
        try:
            self.send(number, OPEN)
        except OSError:
            self.forget(number)
            ours.close()
            theirs.close()
            raise
        channel.start()
        return ours

    def send(self, channel: int, kind: int, data: bytes = b"") -> None:
        with self._lock:
            if self.over:
                raise BrokenPipeError("the connection is over")
            try:
                self._writing.write(HEADER.pack(channel, kind, len(data)) + data + b"\n")
                self._writing.flush()
            except ValueError:  # closed by us
                raise BrokenPipeError("the connection is over")

    def run(self) -> None:
        """Pass on what comes, until the stream ends."""
        try:
            while True:
                head = self._exactly(HEADER.size)
                if len(head) < HEADER.size:
                    return
                number, kind, length = HEADER.unpack(head)
                if length > WINDOW:
                    raise Broken("a frame of {} bytes".format(length))
                data = self._exactly(length + 1)
                if data[length:] != b"\n":
                    raise Broken("a frame without its end")
                self._take(number, kind, data[:length])
        except (OSError, ValueError):
            pass  # cut off, or closed by us
        finally:
            self.over = True
            for channel in list(self._channels.values()):
                channel.close()

    def _take(self, number: int, kind: int, data: bytes) -> None:
        if kind == OPEN and self._accept is not None and number not in self._channels:
            try:
                line = self._accept()
            except OSError:
                self.send(number, END)
                return
            self._channels[number] = Channel(self, number, line)
            self._channels[number].start()
            return
        channel = self._channels.get(number)
        if channel is not None:
            channel.take(kind, data)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self._reading.read(count - len(data))
            if not piece:
                break
            data += piece
        return data

    def forget(self, number: int) -> None:
        self._channels.pop(number, None)


class Channel:
    """A connection at this end of the stream."""

    def __init__(self, mux: Mux, number: int, line: socket.socket) -> None:
        self._mux, self._number, self._line = mux, number, line
        self._credit, self._waiting = WINDOW, 0
        self._changed = threading.Condition()
        self._coming = queue.Queue()  # type: queue.Queue[Optional[bytes]]
        self._ends = 0
        self._closed = False

    def start(self) -> None:
        for act in (self._send, self._receive):
            threading.Thread(target=act, daemon=True).start()

    def take(self, kind: int, data: bytes) -> None:
        if kind == CREDIT:
            with self._changed:
                self._credit = min(self._credit + int.from_bytes(data, "big"), WINDOW)
                self._changed.notify()
        elif kind == DATA:
            with self._changed:
                self._waiting += len(data)
                if self._waiting > WINDOW:
                    raise Broken("more than was allowed")
            self._coming.put(data)
        elif kind == END:
            self._coming.put(None)

    def close(self) -> None:
        """Cut it off: the stream is over."""
        self._closed = True
        self._coming.put(None)
        try:
            self._line.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        with self._changed:
            self._changed.notify()

    def _send(self) -> None:
        """What this end says."""
        try:
            while True:
                with self._changed:
                    while self._credit <= 0 and not self._closed:
                        self._changed.wait()
                    allowed = min(self._credit, _CHUNK)
                data = b"" if self._closed else self._line.recv(allowed)
                if not data:
                    break
                with self._changed:
                    self._credit -= len(data)
                self._mux.send(self._number, DATA, data)
        except OSError:
            pass
        try:
            self._mux.send(self._number, END)
        except OSError:
            pass
        self._ended()

    def _receive(self) -> None:
        """What the other end says."""
        try:
            for data in iter(self._coming.get, None):
                self._line.sendall(data)
                with self._changed:
                    self._waiting -= len(data)
                self._mux.send(self._number, CREDIT, struct.pack(">I", len(data)))
            self._line.shutdown(socket.SHUT_WR)
        except OSError:
            self.close()
        self._ended()

    def _ended(self) -> None:
        with self._changed:
            self._ends += 1
            both = self._ends == 2
        if both:
            self._line.close()
            self._mux.forget(self._number)


def main(argv: List[str]) -> int:
    run, kind = RunFolder(os.path.realpath(argv[0])), argv[1]
    if kind == SSH:
        accept = ssh_session.server(run, argv[2])
        told = {} if accept else None  # type: Optional[Dict[str, Any]]
    else:
        told = _server(run, kind)
        path = str(told["socket"]) if told else ""
        accept = lambda: _connected(path)  # noqa: E731
    if told is None or accept is None:
        sys.stderr.write("no {} listens in {} on this node\n".format(kind, run.name))
        return NO_SERVER
    left = told["deadline"] - time.time() if told.get("deadline") else None
    hello = {"token": told.get("token", ""), "left": left}
    sys.stdout.buffer.write(b"\n" + MARK + json.dumps(hello).encode("ascii") + b"\n")
    sys.stdout.buffer.flush()
    Mux(sys.stdin.buffer, sys.stdout.buffer, accept).run()
    return 0


def _server(run: RunFolder, kind: str) -> "Optional[Dict[str, Any]]":
    """What the server wrote down of itself, as soon as somebody answers on its socket."""
    until = time.monotonic() + float(os.environ.get("RABASKA_RELAY_SECONDS") or _PATIENCE)
    while True:
        try:
            told = files.read_json(run.server(kind))
            if told:
                _connected(told["socket"]).close()
                return dict(told)
        except (OSError, ValueError):
            pass  # not yet, or of a job that is over
        if time.monotonic() > until or os.path.exists(run.ended(run.holder())):
            return None
        time.sleep(0.2)


def _connected(path: str) -> socket.socket:
    """To the server of that socket; never to one that somebody else made under its name.

    A job that was killed leaves the name behind, and in /tmp everybody saw it.
    """
    why = private_files.not_ours(os.path.dirname(path))
    if why:
        raise private_files.NotPrivate(why)
    line = socket.socket(socket.AF_UNIX)
    try:
        line.connect(path)
    except OSError:
        line.close()
        raise
    return line
