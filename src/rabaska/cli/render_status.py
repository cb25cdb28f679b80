"""The view of a run, or of several, laid out as lines of text."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import Any

from rabaska.cli.text import Painted, columns, painted, plain
from rabaska.domain.runs import RunStatus
from rabaska.views.runs import (
    ADVICE_HEADINGS,
    JOB_HEADINGS,
    LOG_HEADING,
    RUN_HEADINGS,
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


def many_runs(views: Sequence[RunView], *, colours: bool) -> list[str]:
    return columns([_row(view) for view in views], RUN_HEADINGS, colours=colours)


def _row(view: RunView) -> list[object]:
    cells: list[object] = list(astuple(view.row))
    cells[RUN_HEADINGS.index("state")] = Painted(view.row.state, COLOURS[view.tone])
    return cells


def remark_lines(remark: Remark) -> Iterator[str]:
    yield str(remark)
    if remark.hint:
        yield f"  hint: {remark.hint}"


def run_json(run: RunStatus) -> dict[str, Any]:
    """Everything that is known of a run, and beside it the words that a person would see."""
    return {**plain(run), "view": plain(run_view(run))}
