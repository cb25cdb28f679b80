"""Reports of runs as one HTML file that needs nothing else, and as Markdown."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rabaska.domain.amounts import say_size
from rabaska.node.version import __version__
from rabaska.pages.axes import said
from rabaska.pages.visible_text import visible
from rabaska.views.report import RunReport, moment, together, unlike
from rabaska.views.runs import JOB_HEADINGS
from rabaska.views.search_report import SearchReport, importance_rows
from rabaska.views.time_line import KINDS, JobBar

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_CHARTS = 60  # of a run in one file
_MOST_TRIALS = 200  # of a search, in its table


@cache
def templates() -> "Environment":
    """Everything that a template prints is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    from rabaska.pages.drawings import chart_svg, time_line_svg
    from rabaska.pages.search_drawings import SEARCH_CHARTS
    from rabaska.pages.visible_text import with_code

    made = Environment(
        loader=PackageLoader("rabaska.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else visible(value),
    )
    made.filters["moment"] = moment
    made.filters["size"] = say_size
    made.filters["values_of"] = lambda row: list(
        row.values() if isinstance(row, dict) else vars(row).values()
    )
    # All of these escape what they write.
    made.filters["svg"] = lambda chart: Markup(chart_svg(chart))  # noqa: S704
    made.filters["time_line"] = lambda bars: Markup(time_line_svg(bars))  # noqa: S704
    made.filters["words"] = lambda text: Markup(with_code(text))  # noqa: S704
    for name, draw in SEARCH_CHARTS.items():
        made.filters[name] = lambda *given, draw=draw: Markup(draw(*given))  # noqa: S704
    return made


def static_text(name: str) -> str:
    return files("rabaska.pages").joinpath("static", name).read_text("utf-8")


def html(reports: Sequence[RunReport], searches: Sequence[SearchReport] = ()) -> str:
    from markupsafe import Markup

    return (
        templates()
        .get_template("report.html")
        .render(
            reports=reports,
            searches=searches,
            names=[*(one.name for one in searches), *(one.name for one in reports)],
            version=__version__,
            most_trials=_MOST_TRIALS,
            made=time.time(),
            style=Markup(static_text("report.css")),  # noqa: S704 - it is ours
            unlike=unlike(reports) if len(reports) > 1 else (),
            together=together(reports)[:MOST_CHARTS] if len(reports) > 1 else (),
            job_headings=JOB_HEADINGS,
            kinds=kinds_of,
            reason=_reason,
            most=MOST_CHARTS,
        )
    )


def kinds_of(bars: Sequence[JobBar]) -> list[tuple[int, str]]:
    """The kinds of stretches that a time line has, with the numbers of their colours."""
    there = {one.kind for bar in bars for one in bar.stretches}
    return [(place, kind) for place, kind in enumerate(KINDS) if kind in there]


def _reason(report: RunReport, job: int) -> str:
    return next((bar.reason for bar in report.bars if bar.job == job), "")


def markdown(reports: Sequence[RunReport], searches: Sequence[SearchReport] = ()) -> str:
    lines: list[str] = []
    for search in searches:
        lines += _search(search)
    if len(reports) > 1:
        lines += ["# The runs compared", ""]
        lines += _table(
            [(label, *texts) for label, texts in unlike(reports)],
            ("", *(report.name for report in reports)),
        )
    for report in reports:
        lines += _run(report)
    return "\n".join(lines).rstrip() + "\n"


def _search(report: SearchReport) -> Iterator[str]:
    yield from (f"# {_cell(report.name)}: {report.state}", "", _cell(report.what), "")
    if report.trouble:
        yield from (f"As last seen {moment(report.seen)}: {_cell(report.trouble)}", "")
    for line in report.lines:
        yield from (_cell(line), "")
    yield from _table(importance_rows(report), ("parameter", "importance"))
    yield from _table(report.table.rows[:_MOST_TRIALS], report.table.headings)
    for command, what in report.again:
        yield f"- {_code(command)}: {_cell(what)}"
    yield ""


def _run(report: RunReport) -> Iterator[str]:
    yield from (f"# {_cell(report.name)}: {report.state}", "")
    if report.reason:
        yield from (_cell(report.reason), "")
    if report.trouble:
        yield from (f"As last seen {moment(report.seen)}: {_cell(report.trouble)}", "")
    yield from ("## What was run", "")
    yield from _facts({**report.what, **{f"data {name}": text for name, text in report.data}})
    yield from _block("Environment", report.environment)
    yield from ("## How it went", "")
    yield from _facts({**report.went, **report.spent})
    reasons = {bar.job: bar.reason for bar in report.bars}
    rows = [
        (job.number, job.id, job.node, job.time, job.state, job.steps, job.repeated,
         job.started_from, reasons.get(job.number, ""))
        for job in report.jobs
    ]  # fmt: skip
    yield from _table(rows, (*JOB_HEADINGS, "why it ended"))
    yield from _table(
        list(_ends(report)), ("series", "points", "first", "last", "least", "greatest")
    )
    for one in report.slow:
        yield from (f"- {_cell(one.what)}: {_cell(one.evidence)}. {_cell(one.remedy)}", "")
    yield from _block("Last lines of the log", report.log)
    yield from ("## How to run it again", "")
    for command, what in report.again:
        yield f"- {_code(command)}: {_cell(what)}"
    yield ""
    yield from _block("The job script that was submitted", report.script.splitlines())


def _ends(report: RunReport) -> Iterator[Sequence[object]]:
    for chart in report.charts[:MOST_CHARTS]:
        for name, curve in chart.curves:
            finite = [value for value in curve.values if abs(value) < float("inf")]
            least, greatest = (said(min(finite)), said(max(finite))) if finite else ("", "")
            ends = said(curve.values[0]), said(curve.values[-1])
            yield name, len(curve), *ends, least, greatest


def _facts(facts: Mapping[str, str]) -> Iterator[str]:
    yield from _table(list(facts.items()), ("", ""))


def _table(rows: Sequence[Sequence[object]], headings: Sequence[str]) -> Iterator[str]:
    if not rows:
        return
    yield f"| {' | '.join(map(_cell, headings))} |"
    yield f"|{'---|' * len(headings)}"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"
    yield ""


def _block(title: str, lines: Sequence[str]) -> Iterator[str]:
    """Four spaces make a block that no content can end."""
    if lines:
        yield from (f"{title}:", "")
        yield from (f"    {visible(line)}" for line in lines)
        yield ""


def _code(text: object) -> str:
    shown = " ".join(visible(text).split())
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _cell(text: object) -> str:
    """In one line, and nothing of it is taken for markup."""
    return re.sub(r"([\\`*_\[\]<>|#~&!])", r"\\\1", " ".join(visible(text).split()))


def as_json(reports: Sequence[RunReport], points: int = 2000) -> list[dict[str, Any]]:
    """Everything, and of each curve at most so many points."""
    from dataclasses import replace

    from rabaska.domain.curves import Curve, thinned
    from rabaska.views.report import Chart

    def shorter(charts: Sequence[Chart]) -> tuple[Chart, ...]:
        return tuple(
            replace(
                chart, curves=tuple((name, thinned(curve, points)) for name, curve in chart.curves)
            )
            for chart in charts
        )

    def value(one: Any) -> Any:
        if isinstance(one, Curve):
            numbers = {
                key: [each if abs(each) < float("inf") else None for each in getattr(one, key)]
                for key in ("steps", "times", "values")
            }
            return {"name": one.name, "source": one.source, **numbers}
        return one

    found = []
    for report in reports:
        record: dict[str, Any] = dict(vars(report))
        for key in ("charts", "vitals"):
            record[key] = [
                {
                    "title": chart.title,
                    "curves": [{"label": name, **value(curve)} for name, curve in chart.curves],
                }
                for chart in shorter(getattr(report, key))
            ]
        found.append(record)
    return found
