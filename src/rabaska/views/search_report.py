"""A search for a page or a report: what was tried, what came of it, and how to use the best."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rabaska.domain.search import SearchStatus
from rabaska.domain.trial_values import arguments_of
from rabaska.remote.place import quoted
from rabaska.steps.shown_searches import SeenSearch
from rabaska.views import search as views
from rabaska.views.search_charts import SearchCharts, order_of_ends, search_charts


@dataclass(frozen=True)
class SearchReport:
    name: str
    cluster: str
    state: str
    tone: str
    seen: float  # when the cluster told this, seconds since 1970 by our clock
    trouble: str  # why it is not newer
    what: str  # is searched for, and how
    lines: tuple[str, ...]  # how far it is, its best trial, what its user should know
    charts: SearchCharts
    ends: Mapping[int, int]  # of each trial that ended, how many had ended with it
    table: views.Table
    runs: Mapping[str, str]  # of each trial, by its number as text
    best: str  # the run of the best trial; "" where none has finished
    again: tuple[tuple[str, str], ...]  # a command, and what it does
    status: SearchStatus


def search_report(seen: SeenSearch, *, sort: str = "") -> SearchReport | None:
    """None where its cluster never answered."""
    status = seen.status
    if status is None:
        return None
    table = views.table(status)
    if sort in table.headings[1:] and (sort in status.space or sort == "number"):
        table = views.table(status, sort=sort)
    return SearchReport(
        name=status.name,
        cluster=status.cluster,
        state=status.state.value,
        tone=views.TONES[status.state],
        seen=seen.heard,
        trouble=seen.problem,
        what=_what(status),
        lines=tuple(views.status_lines(status)[1:]),
        charts=search_charts(status),
        ends=order_of_ends(status),
        table=table,
        runs={str(one.number): one.run for one in status.trials},
        best=status.best.run if status.best else "",
        again=_again(status),
        status=status,
    )


def _what(status: SearchStatus) -> str:
    best = "largest" if status.goal == "max" else "smallest"
    for_what = f"for the {best} {status.metric}, " if status.metric else ""
    stopping = f" with early stopping by {status.stopping}" if status.stopping != "none" else ""
    return f"a search {for_what}by {status.method}{stopping}"


def _again(status: SearchStatus) -> tuple[tuple[str, str], ...]:
    best, told = status.best, []
    if best:
        again = f"rabaska run --trial {best.number} --of {status.name}"
        told.append((again, "runs the best trial at full length"))
        words = quoted(arguments_of(status, best))
        told += [(f"rabaska run -- {words}", "the same, by its values")] if words else []
        told.append((f"rabaska search fetch {status.name}", "fetches its results and the table"))
    if status.state.over:
        told.append((f"rabaska search more 20 {status.name}", "adds 20 trials to what was learnt"))
    else:
        told.append((f"rabaska search stop {status.name}", "stops it; what runs is saved"))
    return tuple(told)


def importance_rows(report: SearchReport) -> list[tuple[str, str]]:
    return [(name, f"{share:.0%}") for name, share in report.charts.importance]


def search_report_json(report: SearchReport) -> dict[str, Any]:
    charts = report.charts
    return {
        **views.search_json(report.status),
        "seen": report.seen,
        "trouble": report.trouble,
        "importance": dict(charts.importance),
        "history": [list(one) for one in charts.history],
        "again": [list(one) for one in report.again],
    }
