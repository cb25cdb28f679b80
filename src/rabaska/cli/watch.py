"""The command `watch`: a full-screen view on a terminal, plain lines elsewhere."""

import os
import sys
import time
from collections.abc import Sequence

import click

from rabaska.cli import terminal
from rabaska.cli.find_run import chosen_run
from rabaska.cli.options import complete_cluster, complete_run
from rabaska.cli.tell import working_notifier
from rabaska.errors import NoSuchRun, WrongUse
from rabaska.journeys import watch as journey
from rabaska.records.home import home
from rabaska.records.run_index import RunRecord, remembered
from rabaska.records.search_index import SearchRecord
from rabaska.records.search_index import remembered as searches
from rabaska.views.runs import run_view

_OFTEN = 60.0  # seconds after which a line is printed though only the steps are others


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=complete_run)
@click.option(
    "--on",
    default="",
    metavar="CLUSTER",
    shell_complete=complete_cluster,
    help="Only runs on this cluster.",
)
@click.option("--plain", is_flag=True, help="Print lines, as where standard output is no terminal.")
def watch(runs: tuple[str, ...], *, on: str, plain: bool) -> None:
    """Watch runs live: state, progress, curves, GPU use, checkpoints, the log.

    Without RUN, all runs in this computer's list are shown; Enter opens one, `?` lists the keys,
    `q` ends the view and no run. The name of a search shows its charts and its trials. Where
    standard output is no terminal, a line is printed for each change until all runs have ended.
    """
    search = next((one for one in searches(home().searches) if runs == (one.name,)), None)
    if search and not plain and _has_screen():
        _open_screen([], alone=False, search=search)
        return
    if search:
        raise WrongUse(
            f"search {search.name} is watched on a terminal only",
            hint=f"`rabaska search status {search.name}` prints how far it is",
        )
    records = _records(runs, on)
    if plain or not _has_screen():
        _print_lines(records)
    else:
        _open_screen(records, alone=len(runs) == 1)


def _records(names: Sequence[str], on: str) -> list[RunRecord]:
    if names:
        return list(dict.fromkeys(chosen_run(name, on) for name in names))
    records = [record for record in remembered(home().runs) if on in ("", record.cluster)]
    if not records:
        where = f" on {on}" if on else ""
        hint = f"`rabaska status --on {on}` finds runs there" if on else "`rabaska run` starts one"
        raise NoSuchRun(f"there is no run{where} in this computer's list", hint=hint)
    return records


def _has_screen() -> bool:
    """Textual reads from standard input and writes to standard error."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return all(stream.isatty() for stream in streams) and os.environ.get("TERM") != "dumb"


def _open_screen(
    records: Sequence[RunRecord], *, alone: bool, search: SearchRecord | None = None
) -> None:
    watch = journey.Watch(records, home())
    live = {seen.record.cluster for seen in watch.seen() if not (seen.run and seen.run.state.over)}
    live |= {search.cluster} if search else set()
    for cluster in live:
        # Now, while a password can be typed; what is not reached shows what was last seen.
        _connect(cluster)
    from rabaska.screen.app import WatchApp

    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)  # Textual would believe them after the window was resized
    teller = working_notifier()
    app = WatchApp(
        watch,
        only=watch.seen()[0] if alone else None,
        teller=teller,
        searches=journey.Searches(home()),
        first=search,
    )
    with journey.without_prompts():
        app.run()


def _connect(cluster: str) -> None:
    from rabaska.errors import RabaskaError

    try:
        journey.open_connection(cluster, home())
    except RabaskaError as problem:
        terminal.note(f"note: {problem.what}; showing what was last seen")


def _print_lines(records: Sequence[RunRecord]) -> None:
    printed: dict[str, tuple[object, float]] = {}
    teller = working_notifier()
    for seen in journey.follow(records, home(), lambda text: terminal.note(f"note: {text}")):
        run = seen.run
        if teller and run and not seen.trouble:
            teller(seen.record, run, seen.curves, seen.vitals)
        phase = run.jobs[-1].phase.phase if run and run.jobs and run.jobs[-1].phase else ""
        kind = (run and (run.state, run.reason, len(run.jobs), phase), seen.trouble)
        text = _line(seen)
        before, at = printed.get(seen.key, (None, 0.0))
        now = time.monotonic()
        over = run is not None and run.state.over
        if kind != before or (now - at > _OFTEN and not over):
            printed[seen.key] = (kind, now)
            terminal.data(f"{time.strftime('%H:%M:%S')} {text}")
            sys.stdout.flush()


def _line(seen: journey.Seen) -> str:
    if seen.run is None:
        return f"{seen.record.name}: {seen.trouble or 'not seen yet'}"
    summary = run_view(seen.run).summary
    reason = f" · {seen.run.reason}" if seen.run.reason else ""
    age = f" · as of {time.strftime('%H:%M:%S', time.localtime(seen.at))}: {seen.trouble}"
    return f"{summary}{reason}{age if seen.trouble else ''}"
