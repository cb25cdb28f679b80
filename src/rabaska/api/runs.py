"""Functions about a run: status, watch, logs, wait, cancel, fetch, report, ui, show, exec, …"""

import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

from rabaska.domain.amounts import duration
from rabaska.domain.runs import RunStatus
from rabaska.journeys import cancel as _cancel
from rabaska.journeys import exec as _exec
from rabaska.journeys import explain as _explain
from rabaska.journeys import fetch as _fetch
from rabaska.journeys import logs as _logs
from rabaska.journeys import report as _report
from rabaska.journeys import show as _show
from rabaska.journeys import wait as _wait
from rabaska.journeys import watch as _watch
from rabaska.journeys.explain import Explanation
from rabaska.journeys.fetch import Fetched
from rabaska.records.home import home
from rabaska.records.run_index import RunRecord, find, meant, remembered
from rabaska.steps import adopt as _adopt
from rabaska.steps import query_status as _status
from rabaska.steps.plan_run import PlannedRun

Folder = str | Path


def status(run: str = "", *, on: str = "") -> RunStatus:
    """A run's status. With `on`, here and below, it is searched for on that cluster too."""
    return _status.status(record_of(run, on), home())


def statuses(*, on: str = "") -> Sequence[RunStatus]:
    """Every run this computer knows, oldest first; with `on`, every run on that cluster."""
    records = _adopt.adopt_all(on, home()).runs if on else remembered(home().runs)
    return _status.statuses(records, home())


def wait(run: str = "", *, on: str = "") -> RunStatus:
    """Wait until a run is over; returns its last status."""
    return _wait.wait(record_of(run, on), home())


def watch(*runs: str, on: str = "") -> Iterator[RunStatus]:
    """The status of these runs, or of all, each time that it was asked for, until all are over."""
    if runs:
        records = [record_of(run, on) for run in runs]
    else:
        records = [record for record in remembered(home().runs) if on in ("", record.cluster)]
    for seen in _watch.follow(records, home()):
        if seen.run is not None and not seen.trouble:
            yield seen.run


def logs(
    run: str = "",
    *,
    follow: bool = False,
    job: int | None = None,
    grep: str | None = None,
    since: str | timedelta | None = None,
    on: str = "",
) -> Iterator[bytes]:
    """What the program printed, in pieces; with `follow`, until the run is over.

    With `grep`, a regular expression, lines that match only; with `since`, what was printed then.
    """
    record, ago = record_of(run, on), duration(since) if isinstance(since, str) else since
    return _logs.logs(record, home(), follow=follow, job=job, grep=grep, since=ago)


def cancel(run: str = "", *, on: str = "") -> RunStatus:
    """Stop a run and keep what it saved."""
    return _cancel.cancel(record_of(run, on), home())


def fetch(
    run: str = "",
    *,
    to: Folder | None = None,
    exclude: Sequence[str] = (),
    sync: bool | None = None,
    on: str = "",
) -> Fetched:
    """Copy results to this computer; only what is new.

    With `sync`, W&B's offline logs are uploaded from here, now and after each fetch to come.
    """
    target = Path(to) if to else None
    return _fetch.fetch(record_of(run, on), home(), to=target, leave_out=exclude, sync=sync)


def report(*runs: str, to: Folder, markdown: bool = False, on: str = "") -> Path:
    """Write a report on runs as an HTML file, or as Markdown; returns where it is."""
    from rabaska.pages import report_file
    from rabaska.views.report import run_report

    records = list(dict.fromkeys(record_of(run, on) for run in runs or ("",)))
    reports = [run_report(history) for history in _report.report(records, home())]
    text = report_file.markdown(reports) if markdown else report_file.html(reports)
    return _report.write_report(Path(to), text)


def ui(*, port: int | None = None, browser: bool = True) -> None:
    """Serve the pages of all runs to this computer, until Ctrl-C; the address is printed."""
    from rabaska.pages.server import serve

    serve(home(), port=port, browser=browser, ready=lambda served: print(served.address))  # noqa: T201


def show(run: str = "", *, on: str = "") -> PlannedRun:
    """A run's plan, and the script that was submitted."""
    return _show.show(record_of(run, on), home())


def exec(run: str, command: Sequence[str], *, on: str = "") -> int:  # noqa: A001 - the CLI's word
    """Run `command` on the node of a running program; returns its exit code."""
    return _exec.execute(record_of(run, on), home(), command, terminal=has_terminal())


def explain(what: str = "", *, bundle: Folder | None = None, on: str = "") -> Explanation:
    """What a message means, or why a run stopped; without either, why the newest run did.

    `bundle` is a folder for all that the site's support would ask for.
    """
    record = record_of(what, on) if on or not what else _explain.run_meant(what, home())
    if record:
        explanation = _explain.explain_run(record, home())
    else:
        explanation = _explain.explain_text(what)
    if bundle:
        _explain.support_bundle(explanation, Path(bundle), home(), record)
    return explanation


def record_of(run: str, on: str = "") -> RunRecord:
    """The run of that name; searched for on the cluster `on` if it is not in the list."""
    records = [record for record in remembered(home().runs) if on in ("", record.cluster)]
    if on and not (meant(records, run) if run else records):
        if run:
            return _adopt.adopt_one(run, on, home())
        _adopt.adopt_all(on, home())
    return find(home().runs, run, on=on)


def has_terminal() -> bool:
    """Whether somebody can type: then `shell` and `exec` pass the terminal on."""
    return sys.stdin.isatty() and sys.stdout.isatty()
