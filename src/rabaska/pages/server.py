"""Serve the pages on this computer until somebody presses Ctrl-C."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rabaska.pages.guard import Guard
from rabaska.records.home import Home
from rabaska.remote.loopback import loopback_socket, open_browser, port_of, private_socket
from rabaska.steps.shown_runs import ShownRuns

USUAL_PORT = 8642
_LAST_WORDS = 1  # seconds in which answers that are under way may end


@dataclass(frozen=True)
class Served:
    """Where the pages are."""

    address: str  # with the token; for a unix socket, what follows the address of a forwarded port
    socket: Path | None = None
    opened: bool = False  # whether a browser shows them


def serve(
    home: Home,
    *,
    port: int | None = None,
    socket: Path | None = None,
    browser: bool = True,
    ready: Callable[[Served], None],
) -> None:
    """`ready` is told where, as soon as somebody is listened to."""
    import uvicorn

    from rabaska.pages.app import application

    sock = private_socket(socket) if socket else loopback_socket(port, USUAL_PORT)
    number = 0 if socket else port_of(sock)
    shown = ShownRuns(home)
    guard = Guard(application(shown), port=number)
    config = uvicorn.Config(
        guard,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=_LAST_WORDS,
    )

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: Any) -> None:
            """Those who listen for news are told first that there will be none."""
            shown.stop()
            super().handle_exit(sig, frame)

    shown.start()
    root = f"http://127.0.0.1:{number}" if number else ""
    address = f"{root}/?token={guard.token}"
    opened = bool(number) and browser and open_browser(address)
    ready(Served(address, socket, opened))
    try:
        Server(config).run(sockets=[sock])
    finally:
        shown.stop()
        sock.close()
        if socket:
            socket.unlink(missing_ok=True)
