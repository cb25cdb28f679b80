"""The command that shows runs in a browser: ui."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rabaska.cli import terminal
from rabaska.records.home import made_home

if TYPE_CHECKING:
    from rabaska.pages.server import Served


@click.command()
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    metavar="N",
    help="Listen at this port of 127.0.0.1. Default: 8642, or a free one.",
)
@click.option(
    "--socket",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Listen at a unix socket that only you may open, for `ssh -L`.",
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def ui(*, port: int | None, socket: Path | None, no_browser: bool) -> None:
    """Show runs in a browser, live: curves, logs, checkpoints, comparisons, clusters.

    The pages are served from this computer, to this computer only, until Ctrl-C. The address
    that is printed has a token: without it nobody else on this computer gets in. Clusters that
    cannot be reached are shown as they were last seen.
    """
    from rabaska.pages.server import serve

    try:
        serve(made_home(), port=port, socket=socket, browser=not no_browser, ready=_tell)
    except KeyboardInterrupt:
        terminal.note("closed; submitted jobs keep running")


def _tell(served: "Served") -> None:
    if served.socket:
        terminal.note(f"listening at {served.socket}; on your laptop, type")
        terminal.note(f"  ssh -N -L 8642:{served.socket.absolute()} THIS-COMPUTER")
        terminal.note("and open this address; Ctrl-C ends it")
        terminal.data(f"http://127.0.0.1:8642{served.address}")
    else:
        where = "a browser shows" if served.opened else "open"
        terminal.note(f"{where} this address; Ctrl-C ends it")
        terminal.data(served.address)
    terminal.flush()
