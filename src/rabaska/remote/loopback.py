"""Sockets of servers on this computer: on loopback or private unix sockets, never elsewhere."""

import errno
import os
import socket
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


def open_browser(address: str) -> bool:
    """Whether there is a browser to open it with."""
    if not _has_screen():
        return False
    import webbrowser

    try:
        return webbrowser.open(address)
    except (OSError, webbrowser.Error):
        return False


def _has_screen() -> bool:
    """Else a browser for terminals would take this one."""
    import sys

    return sys.platform == "darwin" or any(
        os.environ.get(name)
        for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME")
    )
