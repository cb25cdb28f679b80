"""Commands that open a page or an editor beside a run: tensorboard, jupyter, code."""

import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rabaska.cli import terminal
from rabaska.cli.find_run import chosen_run
from rabaska.cli.options import (
    complete_cluster,
    complete_run,
    found_on_option,
    on_option,
    quiet_option,
    request_options,
)
from rabaska.domain.run_changes import TypedChanges
from rabaska.errors import RabaskaError, WrongUse
from rabaska.records.home import made_home

if TYPE_CHECKING:
    from rabaska.steps.progress import Reporter
    from rabaska.steps.web_page import Page

port_option = click.option(
    "--port",
    type=click.IntRange(1, 65535),
    metavar="N",
    help="The port on this computer. Default: the usual one, or another that is free.",
)
browser_option = click.option(
    "--no-browser", is_flag=True, help="Print the address, and open no browser."
)


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN...]", shell_complete=complete_run)
@found_on_option
@click.option("--there", is_flag=True, help="Run it in the job of the run, next to its files.")
@port_option
@browser_option
@quiet_option
def tensorboard(
    runs: tuple[str, ...], *, on: str, there: bool, port: int | None, no_browser: bool, quiet: bool
) -> None:
    """Show runs in TensorBoard on this computer; by default the newest run.

    Event files are copied here while the runs go on, and only what is new. Nothing is started on
    the cluster, and no port is opened there. Ctrl-C ends it, not the run.
    """
    from rabaska.journeys import tensorboard as journey

    records, home = [chosen_run(run, on) for run in runs or ("",)], made_home()
    if there and len(records) > 1:
        raise WrongUse("`--there` takes one run", hint="without it, several share the curves")
    with (
        terminal.steps(quiet=quiet) as reporter,
        journey.tensorboard_there(records[0], home, port=port)
        if there
        else journey.tensorboard(records, home, reporter, port=port) as page,
    ):
        _show(page, reporter, browser=not no_browser, leave="Ctrl-C ends it, and no run")


@click.command()
@on_option
@click.option(
    "--beside",
    "run",
    default="",
    metavar="RUN",
    shell_complete=complete_run,
    help="In the job of this run, next to its program.",
)
@click.option("--new", is_flag=True, help="Start another one, even if one is there.")
@request_options
@port_option
@browser_option
@quiet_option
def jupyter(
    *,
    on: str,
    run: str,
    new: bool,
    requests: TypedChanges,
    port: int | None,
    no_browser: bool,
    quiet: bool,
) -> None:
    """Open JupyterLab in a job, with code, data and environment in place.

    It listens to no port on the cluster. Ctrl-C leaves it, and it goes on until its time limit:
    the same command opens it again, `rabaska cancel` ends it, and what you saved is copied to
    this computer.
    """
    from rabaska.cli.projects import project_for
    from rabaska.journeys import jupyter as journey

    home = made_home()
    with terminal.steps(quiet=quiet) as reporter:
        if run:
            session = journey.next_to(chosen_run(run), home)
        else:
            session = journey.started(project_for(on, requests), on, home, reporter, new=new)
        name = session.record.name
        with (
            _said_to_go_on(name if session.own else "", reporter),
            journey.opened(session, home, reporter, port=port) as page,
        ):
            leave = "Ctrl-C leaves it, and it goes on"
            _show(page, reporter, browser=not no_browser, leave=leave)
        again = f"--beside {name}" if run else f"--on {session.record.cluster}"
        folder = journey.brought_home(session, home, reporter)
        reporter.step(f"`rabaska jupyter {again}` opens it again, `rabaska cancel {name}` ends it")
        if folder:
            reporter.step(f"what was saved so far is in {folder}")


@click.command()
@click.argument("run", required=False, default="", shell_complete=complete_run)
@click.option(
    "--on",
    default="",
    metavar="CLUSTER",
    shell_complete=complete_cluster,
    help="Start a job of its own on this cluster; `here` is this computer.",
)
@click.option("--new", is_flag=True, help="Start another job, even if one is there.")
@click.option("-y", "--yes", is_flag=True, help="Add the line to ~/.ssh/config without asking.")
@click.option("--stream", is_flag=True, hidden=True, help="For ssh: join it with the job.")
@request_options
@quiet_option
def code(
    run: str,
    *,
    on: str,
    new: bool,
    yes: bool,
    stream: bool,
    requests: TypedChanges,
    quiet: bool,
) -> int:
    """Make the node of a run a host for ssh and editors; by default that of the newest run.

    Whatever speaks ssh reaches the node inside the job and its limits: VS Code, PyCharm, Zed,
    scp, sftp. With --on, a job of its own is started. Nothing listens on the cluster.
    """
    from rabaska.journeys import code as journey

    home = made_home()
    if stream:
        journey.stream(chosen_run(run), home)
        return 0
    with terminal.steps(quiet=quiet) as reporter:
        if on and not run:
            from rabaska.cli.projects import project_for

            record = journey.started(project_for(on, requests), on, home, reporter, new=new)
        else:
            record = chosen_run(run, on)
        with _said_to_go_on(record.name if on and not run else "", reporter):
            host = journey.as_host(record, home)
        config = _included(host.config, yes=yes)
        option = "" if config else f"-F {host.config} "
        terminal.data(host.name)
        reporter.step(f"`ssh {option}{host.name}` opens a shell in {host.folder}")
        if config:
            command = shlex.join(["code", "--remote", f"ssh-remote+{host.name}", host.folder])
            reporter.step(f"`{command}` opens VS Code")
    return 0


@contextmanager
def _said_to_go_on(session: str, reporter: "Reporter") -> Iterator[None]:
    """Say of a job that was started for nothing else that it is there, though nobody gets in."""
    try:
        yield
    except RabaskaError:
        if session:
            reporter.warn(f"its job goes on; `rabaska cancel {session}` ends it")
        raise


def _included(config: Path, *, yes: bool) -> bool:
    """Whether ~/.ssh/config has the line that makes the entry known; added if it may be."""
    from rabaska.remote import ssh_entries

    if ssh_entries.is_included(config):
        return True
    asked = f"editors find the host if ~/.ssh/config begins with `Include {config}`"
    if not yes and not sys.stdin.isatty():
        terminal.note(f"{asked}; `--yes` adds it")
        return False
    if yes or click.confirm(f"{asked}. Add this line?", default=False, err=True):
        terminal.note(f"added to {ssh_entries.include(config)}")
        return True
    return False


def _show(page: "Page", reporter: "Reporter", *, browser: bool, leave: str) -> None:
    """Print the address, open it, and stay until Ctrl-C, which is how such a page ends."""
    terminal.data(page.address)
    opened = browser and page.open()
    reporter.step(f"{'shown in' if opened else 'open this address in'} a browser; {leave}")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: sys.exit(0))
    with suppress(KeyboardInterrupt):
        while True:
            time.sleep(3600)
