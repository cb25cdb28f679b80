"""A page on this computer, behind a token, for a server that listens to no port."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rabaska.remote.web_programs import open_browser

if TYPE_CHECKING:
    from rabaska.remote.web_gate import Connect


@dataclass(frozen=True)
class Page:
    """What a person opens; it is there until the block that made it ends."""

    address: str  # with its token
    open: Callable[[], bool]  # in a browser; whether there is one


@contextmanager
def served_page(
    connect: "Connect",
    folder: Path,
    port: int | None,
    usual: int,
    *,
    path: str = "/",
    added: tuple[tuple[str, str], ...] = (),
) -> Iterator[Page]:
    """Serve it; `folder` is ours alone, and `added` are headers that the server asks for."""
    from rabaska.remote.loopback import loopback_socket
    from rabaska.remote.web_gate import Gate

    gate = Gate(connect, loopback_socket(port, usual), added=added)
    gate.start()
    try:
        address = gate.address(path)
        yield Page(address, lambda: open_browser(address, folder))
    finally:
        gate.close()
