"""The nodes of a job that stage data together: how they meet, and when all of them are done.

The first node listens, the others come and say where they listen themselves. Each gets a place at
once, so that it can begin to read, and the list of all when nobody else will come. Ports of a node
are open to its other users, so every connection begins with both sides proving that they know a
key, which is in a file that only their user can read. A node that does not come, or is lost, is
left out: whoever misses it reads from the shared storage.
"""

import hashlib
import hmac
import json
import os
import socket
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

_PATIENCE = 20.0  # seconds for the others to come, once the first is there
_ANSWER = 10.0  # seconds for a proof
_LOOK = 0.1
_NONCE, _PROOF = 16, 32  # bytes
_LONGEST = 1 << 20  # bytes of a line
_MOST_UNPROVEN = 64

Address = Tuple[str, int]


class Stranger(OSError):
    """The other side of a connection does not know the key."""


def open_listener(host: str) -> socket.socket:
    """Listens at this address only: an empty one would mean all of them."""
    if not host:
        raise ValueError("no address to listen at")
    listener = socket.socket()
    listener.bind((host, 0))
    listener.listen(_MOST_UNPROVEN)
    return listener


def own_address(name: str) -> str:
    """Where others reach this node, as its name says; "" where that is only itself."""
    try:
        address = socket.gethostbyname(name)
    except OSError:
        return ""
    return "" if address.startswith("127.") else address


def prove_to(connection: socket.socket, key: str) -> None:
    """As the side that connected: know the other, and be known."""
    connection.settimeout(_ANSWER)
    ours = os.urandom(_NONCE)
    connection.sendall(ours)
    theirs = exactly(connection, _NONCE)
    if not hmac.compare_digest(exactly(connection, _PROOF), _proof(key, b"L", ours, theirs)):
        raise Stranger("somebody else listens there")
    connection.sendall(_proof(key, b"C", ours, theirs))


def proven(connection: socket.socket, key: str) -> None:
    """As the side that listened."""
    connection.settimeout(_ANSWER)
    theirs = exactly(connection, _NONCE)
    ours = os.urandom(_NONCE)
    connection.sendall(ours + _proof(key, b"L", theirs, ours))
    if not hmac.compare_digest(exactly(connection, _PROOF), _proof(key, b"C", theirs, ours)):
        raise Stranger("somebody else connected")


def _proof(key: str, side: bytes, first: bytes, second: bytes) -> bytes:
    return hmac.new(key.encode("ascii"), b"stage" + side + first + second, hashlib.sha256).digest()


def _notice_loss(connection: socket.socket) -> None:
    """Wait for a line as long as it takes, but not for a node that lost its power."""
    connection.settimeout(None)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def exactly(connection: socket.socket, count: int) -> bytes:
    content = b""
    while len(content) < count:
        piece = connection.recv(count - len(content))
        if not piece:
            raise OSError("the connection ended")
        content += piece
    return content


def listen(
    listener: socket.socket, key: str, serve: Callable[[socket.socket], None]
) -> threading.Thread:
    """Serve everybody who knows the key, each in a thread, until the listener is closed."""
    unproven = threading.Semaphore(_MOST_UNPROVEN)

    def answer(connection: socket.socket) -> None:
        try:
            try:
                proven(connection, key)
            finally:
                unproven.release()
            serve(connection)
        except (OSError, ValueError):
            pass  # gone, or nobody of ours
        finally:
            connection.close()

    def accept() -> None:
        while True:
            try:
                connection = listener.accept()[0]
            except OSError:
                return
            unproven.acquire()
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    return thread


class FirstNode:
    """The node at which the others meet; its place is 0."""

    def __init__(self, address: str, key: str, others: int, serving: socket.socket) -> None:
        self._others = others
        self._serving = serving
        self._listener = open_listener(address)
        self.port = self._listener.getsockname()[1]
        self._changed = threading.Condition()
        self._came: List[Address] = []
        self._complete = False  # nobody else may come
        self._busy = 0  # nodes that came and are not done
        self._over = False
        listen(self._listener, key, self._meet)

    def addresses(self, is_over: Callable[[], bool]) -> List[Optional[Address]]:
        """Where each node serves, once all came or nobody else will; None for one that did not."""
        until = time.monotonic() + _PATIENCE
        with self._changed:
            while not self._complete:
                waits = len(self._came) < self._others and time.monotonic() < until
                if not waits or is_over() or self._over:
                    self._complete = True
                    self._changed.notify_all()
                else:
                    self._changed.wait(_LOOK)
            return self._known("")

    def finish(self, is_over: Callable[[], bool]) -> None:
        """Wait until every other node is done or lost, and let all of them go."""
        with self._changed:
            while self._busy and not is_over():
                self._changed.wait(_LOOK)
        self.close()

    def close(self) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()
        stop_listening(self._listener)

    def _known(self, own: str) -> List[Optional[Address]]:
        found: List[Optional[Address]] = [(own, self._serving.getsockname()[1])]
        return found + self._came + [None] * (self._others - len(self._came))

    def _meet(self, connection: socket.socket) -> None:
        port = int(_line(connection)["port"])
        with self._changed:
            if self._complete or len(self._came) == self._others:
                return  # too late: it stages alone
            self._came.append((connection.getpeername()[0], port))
            place = len(self._came)
            self._busy += 1
            self._changed.notify_all()
        try:
            _say(connection, {"place": place, "nodes": self._others + 1})
            with self._changed:
                while not self._complete and not self._over:
                    self._changed.wait(_LOOK)
                known = self._known(connection.getsockname()[0])
            _say(connection, {"addresses": known})
            _notice_loss(connection)
            _line(connection)  # it is done
        finally:
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()
        with self._changed:
            while not self._over:
                self._changed.wait(_LOOK)
        _say(connection, {"over": True})


class OtherNode:
    """A node that comes to the first one."""

    def __init__(self, host: str, port: int, key: str) -> None:
        self._connection = socket.create_connection((host, port), _PATIENCE)
        prove_to(self._connection, key)
        self._rest = b""
        self.address = self._connection.getsockname()[0]

    def join(self, serving: socket.socket) -> Tuple[int, int]:
        """Our place, and of how many."""
        _say(self._connection, {"port": serving.getsockname()[1]})
        told = self._next()
        return int(told["place"]), int(told["nodes"])

    def addresses(self) -> List[Optional[Address]]:
        self._connection.settimeout(2 * _PATIENCE)
        return [(str(one[0]), int(one[1])) if one else None for one in self._next()["addresses"]]

    def finish(self) -> None:
        """Say that we are done, and stay until all are: others may still need what we read."""
        try:
            _notice_loss(self._connection)
            _say(self._connection, {"done": True})
            self._next()
        except (OSError, ValueError):
            pass  # the first node is gone: nobody waits for us
        self.close()

    def close(self) -> None:
        self._connection.close()

    def _next(self) -> Dict[str, Any]:
        """The next line; two may come at once."""
        while b"\n" not in self._rest:
            piece = self._connection.recv(65536)
            if not piece or len(self._rest) > _LONGEST:
                raise OSError("the connection ended")
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return _record(line)


def _say(connection: socket.socket, told: Dict[str, Any]) -> None:
    connection.sendall(json.dumps(told).encode("ascii") + b"\n")


def _line(connection: socket.socket) -> Dict[str, Any]:
    content = b""
    while not content.endswith(b"\n"):
        piece = connection.recv(65536)
        if not piece or len(content) > _LONGEST:
            raise OSError("the connection ended")
        content += piece
    return _record(content)


def _record(line: bytes) -> Dict[str, Any]:
    told = json.loads(line.decode("ascii"))
    if not isinstance(told, dict):
        raise ValueError("no record")
    return told


def stop_listening(listener: socket.socket) -> None:
    try:
        listener.shutdown(socket.SHUT_RDWR)  # wakes who waits in accept
    except OSError:
        pass
    listener.close()
