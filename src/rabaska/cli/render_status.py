"""The view of a run, or of several, laid out as lines of text."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import Any

from rabaska.cli.text import Painted, columns, painted, plain
from rabaska.domain.runs import RunStatus
from rabaska.views.run_table import TABLE_HEADINGS, RunLine, run_lines, shortened, shown_columns
from rabaska.views.runs import (
    ADVICE_HEADINGS,
    JOB_HEADINGS,
    LOG_HEADING,
    RunView,
    run_view,
)
from rabaska.views.words import Remark

COLOURS = {
    "good": "green",
    "active": "cyan",
    "waiting": "blue",
    "caution": "yellow",
    "bad": "red",
    "unclear": "magenta",
}


def one_run(view: RunView, *, colours: bool) -> Iterator[str]:
    """A headline, a row per job, and what to know about a failure."""
    state = painted(view.state, COLOURS[view.tone], colours=colours)
    name = painted(view.name, "bold", colours=colours)
    yield f"{name} on {view.cluster}  {state}{': ' if view.reason else ''}{view.reason}"
    if view.hint:
        yield f"  hint: {view.hint}"
    if view.jobs:
        rows = [astuple(job) for job in view.jobs]
        yield from columns(rows, JOB_HEADINGS, right=("time", "repeated"), colours=colours)
    for remark in view.remarks:
        yield from remark_lines(remark)
    if view.log:
        yield painted(f"\n{LOG_HEADING}:", "bold", colours=colours)
        yield from (f"  │ {line}" for line in view.log)
    meaning, fix = (painted(f"{label}:", "bold", colours=colours) for label in ADVICE_HEADINGS)
    for advice in view.advice:
        yield f"\n{meaning} {advice.meaning}"
        yield f"{fix} {advice.fix}"


def many_runs(runs: Sequence[RunStatus], now: float, *, colours: bool) -> list[str]:
    """A row per run; columns that say nothing of any run are left out."""
    lines = run_lines(runs, now)
    places = shown_columns(lines)
    rows = [_row(line) for line in lines]
    headings = [TABLE_HEADINGS[place] for place in places]
    cells = [[row[place] for place in places] for row in rows]
    return columns(cells, headings, right=("age",), colours=colours)


def _row(line: RunLine) -> list[object]:
    cells: list[object] = list(astuple(line.row))
    cells[TABLE_HEADINGS.index("state")] = Painted(line.row.state, COLOURS[line.tone])
    for heading in ("arguments", "note"):
        place = TABLE_HEADINGS.index(heading)
        cells[place] = shortened(str(cells[place]))
    return cells


def remark_lines(remark: Remark) -> Iterator[str]:
    yield str(remark)
    if remark.hint:
        yield f"  hint: {remark.hint}"


def run_json(run: RunStatus) -> dict[str, Any]:
    """Everything that is known of a run, and beside it the words that a person would see."""
    return {**plain(run), "view": plain(run_view(run))}
