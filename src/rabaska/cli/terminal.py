"""The only module that prints: data to standard output, everything else to standard error.

Clusters and programs wrote much of it, so control characters are replaced here, see `text`.
"""

import json as json_format
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rabaska.cli.text import HarmlessLog, harmless, painted, plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from rabaska.domain.runs import RunStatus
    from rabaska.errors import RabaskaError
    from rabaska.steps.plan_run import PlannedRun

# What shows runs is imported where it is used: `pack` shows none, and takes a tenth of a second.

_WIDTH_WITHOUT_TERMINAL = 160
_LONG_WAIT = 10.0  # seconds in the queue that are worth a line


def console(*, errors: bool = False) -> "Console":
    from rich.console import Console

    stream = sys.stderr if errors else sys.stdout
    width = None if stream.isatty() else _WIDTH_WITHOUT_TERMINAL
    return Console(stderr=errors, width=width, highlight=False, soft_wrap=not stream.isatty())


def data(text: str) -> None:
    """What somebody asked for: a program that reads it gets it as it is."""
    print(harmless(text) if sys.stdout.isatty() else text, flush=True)


def flush() -> None:
    """For whoever reads along while the command goes on."""
    sys.stdout.flush()


def log(chunks: Iterable[bytes]) -> None:
    """What a program printed, as it comes; a file or another program gets it as it is."""
    shown = HarmlessLog() if sys.stdout.isatty() else bytes
    for chunk in chunks:
        raw(shown(chunk))


def raw(chunk: bytes) -> None:
    sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


def json(value: Any) -> None:
    print(json_text(value))


def json_text(value: Any) -> str:
    return json_format.dumps(plain(value), indent=2)


def note(text: str) -> None:
    print(harmless(text), file=sys.stderr)


def bell() -> None:
    """Ring, where somebody may hear it."""
    if sys.stderr.isatty():
        sys.stderr.write("\a")
        sys.stderr.flush()


def error(problem: "RabaskaError") -> None:
    colours = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    note(f"{painted('error:', 'red', colours=colours)} {problem}")


class Steps:
    """Reports progress on standard error: bars on a terminal, plain lines elsewhere."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def step(self, text: str) -> None:
        self.clear()
        if not self._quiet:
            note(text)

    def warn(self, text: str) -> None:
        self.clear()
        note(f"note: {text}")

    def moved(
        self, what: str, done: int, total: int, *, unit: str = "bytes", aside: str = ""
    ) -> None:
        if self._quiet or not sys.stderr.isatty():
            return
        what, aside = harmless(what), harmless(aside)
        if self._bars is None:
            self._bars = _bars(unit)
            self._bars.start()
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=total, aside=aside)
        self._bars.update(self._tasks[what], completed=done, total=total, aside=aside)

    def clear(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars, self._tasks = None, {}


def _bars(unit: str) -> "Progress":
    from rich import progress

    amount = progress.DownloadColumn() if unit == "bytes" else progress.MofNCompleteColumn()
    rate = [progress.TransferSpeedColumn()] if unit == "bytes" else []
    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        amount,
        *rate,
        progress.TextColumn("{task.fields[aside]}", markup=False),
        progress.TimeRemainingColumn(),
        console=console(errors=True),
        transient=True,
    )


@contextmanager
def steps(*, quiet: bool = False) -> Iterator[Steps]:
    reporter = Steps(quiet=quiet)
    try:
        yield reporter
    finally:
        reporter.clear()


def run_status(run: "RunStatus") -> None:
    from rabaska.cli import render_status
    from rabaska.views.runs import run_view

    for line in render_status.one_run(run_view(run), colours=colours_wanted()):
        print(harmless(line))


def runs_table(runs: "Sequence[RunStatus]") -> None:
    from rabaska.cli import render_status

    lines = render_status.many_runs(runs, time.time(), colours=colours_wanted())
    print(harmless("\n".join(lines)))


def colours_wanted() -> bool:
    """As https://no-color.org asks, and only where a person looks."""
    plain_wanted = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain_wanted


def table(rows: Iterable[Sequence[object]], headings: Sequence[str] = ()) -> None:
    """Print columns of plain text: nothing in a name or a pattern is taken for markup."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        header_style="dim",
        show_header=bool(headings),
    )
    for heading in headings:
        shown.add_column(heading)
    for row in rows:
        shown.add_row(*(Text(harmless(str(cell))) for cell in row))
    console().print(shown)


class Following:
    """Shows a run during `wait`: one changing line on a terminal, a line per event elsewhere."""

    def __init__(self) -> None:
        self._spinner: Any = None
        self._printed: set[tuple[int, str]] = set()
        self._phases = PhaseLines()
        self._trouble = ""

    def __call__(self, run: "RunStatus") -> None:
        from rabaska.domain.runs import RunState
        from rabaska.views.runs import run_view

        view = run_view(run)
        for event in view.timeline:
            if (event.job, event.event) not in self._printed:
                self._printed.add((event.job, event.event))
                note(event.text)
        if run.waiting and run.now - (run.waiting.since or run.now) > _LONG_WAIT:
            self._phases(run)
        if run.state is RunState.UNKNOWN and run.reason != self._trouble:
            note(f"note: {run.reason}; trying again")
        self._trouble = run.reason if run.state is RunState.UNKNOWN else ""
        if sys.stderr.isatty():
            self._spin(view.summary)

    def _spin(self, text: str) -> None:
        from rich.text import Text

        shown = Text(harmless(text))
        if self._spinner is None:
            self._spinner = console(errors=True).status(shown)
            self._spinner.start()
        self._spinner.update(shown)

    def stop(self) -> None:
        if self._spinner is not None:
            self._spinner.stop()


class PhaseLines:
    """Says on standard error what a run does while its log has nothing to show."""

    def __init__(self) -> None:
        self._said = ""

    def __call__(self, run: "RunStatus") -> None:
        from rabaska.node.record.phase_names import TRAINING
        from rabaska.views.runs import run_view

        job = run.jobs[-1] if run.jobs else None
        if job is not None and job.phase and job.phase.phase == TRAINING:
            return  # its log tells
        doing = run_view(run).now
        kind = f"{len(run.jobs)} {doing.partition(' for ')[0]}"
        if doing and kind != self._said:
            self._said = kind
            note(f"{run.name}: {doing}")


def planned_run(planned: "PlannedRun") -> None:
    """A plan as a table, then the script exactly as it is submitted."""
    from rabaska.views.planned_run import planned_facts

    table(planned_facts(planned).items())
    data(f"\n# {'-' * 30} job.sh {'-' * 30}\n{planned.script}")
