"""Advice laid out as lines of text: explanations, findings, plans and storage."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import astuple

from rabaska.cli import terminal
from rabaska.cli.text import columns
from rabaska.views.advice import (
    NO_EXPLANATION,
    PLAN_HEADINGS,
    SIMILAR,
    ExplanationsView,
    ExplanationView,
    FindingView,
    PlansView,
    PlanView,
    findings_summary,
    pace_lines,
)
from rabaska.views.clusters import TIER_HEADINGS
from rabaska.views.storage import ITEM_HEADINGS, KEPT_HEADINGS, CleanView, StorageView

_WIDTH = 98
_IN_FULL = 4  # clusters that are shown with every reason
_LABEL = 7  # letters of the longest label of a plan


def explanation(view: ExplanationsView, *, bundled: bool = False) -> None:
    """What is known, the likeliest first; a text that nobody foresaw is shown as it is."""
    if view.run:
        terminal.data(view.run)
    if view.known:
        terminal.data("\n\n".join(map(_explanation, view.known)))
    elif view.status:
        terminal.data(view.status)
    for line in pace_lines(view):
        terminal.data(line if not line or line.startswith("slow: ") else _wrapped(line))
    if view.known or view.status:
        return
    terminal.data("\n".join(view.text))
    terminal.data(f"\n{NO_EXPLANATION}")
    if view.similar:
        terminal.data(f"{SIMILAR}\n")
        terminal.data("\n\n".join(map(_explanation, view.similar)))
    if not bundled:
        terminal.data("\nFor the site's support, `--bundle FOLDER` collects what they need.")


def _explanation(view: ExplanationView) -> str:
    lines = [
        f"> {view.line}" if view.line else "",
        _wrapped(view.meaning),
        _wrapped(f"fix: {view.fix}"),
        _wrapped(f"rabaska: {view.ours}") if view.ours else "",
    ]
    return "\n".join(line for line in lines if line)


def findings(views: Sequence[FindingView], repaired: Sequence[str]) -> None:
    """What was repaired; then each problem with its place, its reason and its fix."""
    for sentence in repaired:
        terminal.data(f"repaired: {sentence}")
    for view in views:
        lines = (f"because {view.why}", f"fix: {view.fix}" if view.fix else "")
        terminal.data(f"{view.tone}: {view.what}\n  {view.where}")
        terminal.data("\n".join(_wrapped(line) for line in lines if line))
    terminal.note(findings_summary(views))


def plans(view: PlansView) -> None:
    """Side by side when there are several; then each choice with its reasons."""
    terminal.note(view.basis)
    if len(view.plans) > 1:
        rows = [astuple(plan.row) for plan in view.plans]
        terminal.data("\n".join(columns(rows, PLAN_HEADINGS, right=("jobs", "GPU-hours"))))
    in_full = view.plans if len(view.plans) <= _IN_FULL else ()
    for plan in in_full:
        terminal.data("\n".join(_plan(plan)))
    for plan in in_full:
        if plan.profile_only:
            terminal.note(plan.profile_only)
    for measurement, verdict in view.measured:
        terminal.data(f"measured  {measurement}")
        if verdict:
            terminal.data(f"          {verdict}")
    if view.written:
        terminal.note(view.written)


def _plan(view: PlanView) -> Iterator[str]:
    yield f"\n{view.cluster}: {view.title}"
    if view.retired:
        yield _wrapped(view.retired)
    if view.problem:
        yield _wrapped(view.problem)
    for label, text in view.facts:
        yield f"  {label:{_LABEL}}  {text}"


def storage(view: StorageView) -> None:
    """The tiers, what is kept, and what the site says of the quota."""
    if view.tiers:
        _table(view.tiers, TIER_HEADINGS, right=("size", "files"))
        terminal.data("")
    if view.kept:
        _table(view.kept, KEPT_HEADINGS, right=KEPT_HEADINGS[1:])
    else:
        terminal.data("kept: nothing yet")
    terminal.note(view.store)
    if view.purge:
        terminal.note(view.purge)
    if view.quota:
        terminal.data(f"\n{view.quota}")


def cleaning(view: CleanView) -> None:
    if view.items:
        _table(view.items, ITEM_HEADINGS, right=("size", "files"))
    terminal.note(view.summary)
    if view.old_runs:
        terminal.note(view.old_runs)


def _table(rows: "Sequence[object]", headings: Sequence[str], *, right: Sequence[str]) -> None:
    cells = [astuple(row) for row in rows]  # type: ignore[call-overload]
    terminal.data("\n".join(columns(cells, headings, right=right)))


def _wrapped(text: str) -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent="  ",
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words=False,
    )
