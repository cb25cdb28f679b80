"""Sockets of servers on this computer: on loopback or private unix sockets, never elsewhere."""

import errno
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

from rabaska.errors import WrongUse


def loopback_socket(port: int | None, usual: int) -> socket.socket:
    """Listening at 127.0.0.1; without a port, at the usual one or, where that is taken, another."""
    for wanted in [usual, 0] if port is None else [port]:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", wanted))
            sock.listen(64)
            return sock
        except OSError as problem:
            sock.close()
            if port is None and wanted and problem.errno in (errno.EADDRINUSE, errno.EACCES):
                continue
            raise _refused(wanted, problem) from problem
    raise AssertionError("unreachable")


def _refused(port: int, problem: OSError) -> WrongUse:
    if problem.errno == errno.EADDRINUSE:
        return WrongUse(
            f"port {port} is in use",
            why="another program, or another rabaska, listens there",
            hint="leave out --port, and a free one is found",
        )
    return WrongUse(f"port {port} cannot be used", why=problem.strerror or str(problem))


def port_of(sock: socket.socket) -> int:
    return int(sock.getsockname()[1])


def private_socket(path: Path) -> socket.socket:
    """Listening at a file that only its owner may open."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with suppress(OSError):
        if path.is_socket() and not _is_served(path):
            path.unlink()  # of a command that was killed
    before = os.umask(0o177)
    try:
        sock.bind(str(path))
        sock.listen(64)
    except OSError as problem:
        sock.close()
        why = "something is there already" if path.exists() else problem.strerror or str(problem)
        raise WrongUse(
            f"no socket can be made at {path}", why=why, hint="choose another path"
        ) from problem
    finally:
        os.umask(before)
    return sock


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


# sock_diag(7): a header, a question about one connection, and as much of the answer as we read.
_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBBI2s2s16s16sI8s")
_ANSWER = struct.Struct("=BBBB2s2s16s16sI8sIIIII")
_SOCK_DIAG, _BY_FAMILY, _REQUEST = 4, 20, 1


def is_from_us(connection: socket.socket) -> bool:
    """Whether a process of our own user is at the other end, as far as this system tells.

    Every user of a computer can connect to its ports, and a token may leak: browsers send a cookie
    to all ports of a host. Linux knows the owners of both ends of a connection; one that was
    closed already has none, and is not ours either.
    """
    if connection.family != socket.AF_INET or not hasattr(socket, "AF_NETLINK"):
        return True
    ours, theirs = connection.getsockname(), connection.getpeername()
    try:
        if _owner(ours, theirs) is None:
            return True  # this kernel does not even tell of our own end: the token decides
        owner = _owner(theirs, ours)
    except OSError:
        return True
    return owner in (os.getuid(), 0, int(os.environ.get("SUDO_UID") or 0))


def _owner(source: tuple[str, int], target: tuple[str, int]) -> int | None:
    """The user who has the end `source` of a connection to `target`; None where nobody has."""
    ends = [
        source[1].to_bytes(2, "big"), target[1].to_bytes(2, "big"),
        socket.inet_aton(source[0]).ljust(16, b"\0"), socket.inet_aton(target[0]).ljust(16, b"\0"),
    ]  # fmt: skip
    any_state, any_cookie = 0xFFFFFFFF, b"\xff" * 8
    asked = _QUESTION.pack(
        socket.AF_INET, socket.IPPROTO_TCP, 0, 0, any_state, *ends, 0, any_cookie
    )
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as kernel:
        kernel.settimeout(1)
        kernel.send(_HEADER.pack(_HEADER.size + len(asked), _BY_FAMILY, _REQUEST, 0, 0) + asked)
        said = kernel.recv(8192)
    if _HEADER.unpack_from(said)[1] != _BY_FAMILY or len(said) < _HEADER.size + _ANSWER.size:
        return None
    told = _ANSWER.unpack_from(said, _HEADER.size)
    uid, inode = told[-2:]
    # What listens at that port is found, too, where nobody has that end any more.
    return int(uid) if inode and list(told[4:8]) == ends else None
