"""Serve the pages on this computer until somebody presses Ctrl-C."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rabaska.pages.guard import Guard
from rabaska.records.home import Home
from rabaska.remote.loopback import is_from_us, loopback_socket, port_of, private_socket
from rabaska.remote.web_programs import open_browser, private_folder
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
        http=_for_us_only(),
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
    try:
        with ExitStack() as stack:
            shows = bool(number) and browser
            opened = shows and open_browser(address, stack.enter_context(private_folder()))
            ready(Served(address, socket, opened))
            Server(config).run(sockets=[sock])
    finally:
        shown.stop()
        sock.close()
        if socket:
            socket.unlink(missing_ok=True)


def _for_us_only() -> Any:
    """What answers a connection: one of another user is cut off before it says anything."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    class OurProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            try:
                ours = is_from_us(transport.get_extra_info("socket"))
            except OSError:
                ours = False  # it left at once
            if not ours:
                transport.abort()

    return OurProtocol
