"""Pages about runs: all of them, one, several compared."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from rabaska.domain.amounts import say_size
from rabaska.domain.runs import RunStatus
from rabaska.pages import report_file
from rabaska.pages.report_file import templates
from rabaska.steps import run_details
from rabaska.steps.live_runs import LiveRun
from rabaska.steps.run_history import RunHistory, plan_and_script
from rabaska.steps.shown_runs import ShownRuns, known_status
from rabaska.views.bottlenecks import bottleneck_views
from rabaska.views.report import (
    RunReport,
    chart_names,
    constant_vitals,
    run_report,
    unlike,
    vital_title,
)
from rabaska.views.run_table import is_wanted, known_keys, run_lines, sort_key
from rabaska.views.runs import JOB_HEADINGS, LONGEST_NAME, run_view
from rabaska.views.time_line import time_line

_MOST_COMPARED = 12
_MOST_CHARTS = 400
_FIRST_ROWS = 100
_COLUMNS = {"run": "run", "state": "state", "cluster": "cluster", "progress": "progress",
            "jobs": "jobs", "last metric": "", "age": "age", "arguments": "", "note": "note",
            "reason": ""}  # fmt: skip


def shown_of(request: Request) -> ShownRuns:
    shown: ShownRuns = request.app.state.shown
    shown.look()
    return shown


def found(request: Request, key: str = "") -> LiveRun:
    """The run that the address names."""
    key = key or request.path_params["key"]
    live = shown_of(request).find(key)
    if live is None:
        shown_of(request).reload()
        live = shown_of(request).find(key)
    if live is None:
        raise HTTPException(404, f"no run is called {key}: it was deleted, forgotten or renamed")
    return live


def page(template: str, **values: Any) -> Response:
    return HTMLResponse(templates().get_template(template).render(**values))


def runs(request: Request) -> Response:
    """The first of them; the browser asks for all as soon as it shows these."""
    table = _table(request)
    first = {**table, "lines": table["lines"][:_FIRST_ROWS]}
    return page("runs.html", title="runs", more=len(table["lines"]) > _FIRST_ROWS, **first)


def runs_table(request: Request) -> Response:
    return page("runs_table.html", **_table(request))


def _table(request: Request) -> dict[str, Any]:
    shown, query = shown_of(request), request.query_params
    live = shown.runs()
    statuses = [known_status(one) for one in live]
    by_name = {id(status): one for status, one in zip(statuses, live, strict=True)}
    chosen = _chosen(statuses, query)
    lines = [(line, by_name[id(line.run)]) for line in run_lines(chosen, time.time())]
    troubles = {one.record.cluster: one for one in live if one.problem}
    tags = sorted({tag for status in statuses for tag in status.tags})
    return {
        "lines": [(line, one, shown.key(one.record)) for line, one in lines],
        "total": len(statuses),
        "columns": _COLUMNS,
        "keys": known_keys(statuses)[:400],
        "tags": tags,
        "troubles": troubles,
        "query": query,
        "reverse": query.get("reverse", ""),
        "sort": query.get("sort", ""),
    }


def _chosen(statuses: list[RunStatus], query: Mapping[str, str]) -> list[RunStatus]:
    """As `rabaska status --filter --sort` chooses them."""
    words = [word for word in query.get("filter", "").split() if word]
    chosen = [one for one in statuses if all(is_wanted(one, word) for word in words)]
    key, reverse = query.get("sort", ""), bool(query.get("reverse"))
    if not key:
        return chosen[::-1] if reverse else chosen
    keyed = sorted(chosen, key=lambda one: sort_key(one, key), reverse=reverse)
    return sorted(keyed, key=lambda one: sort_key(one, key)[0] == 2)


def run(request: Request) -> Response:
    live = found(request)
    shown = shown_of(request)
    key = shown.key(live.record)
    others = [shown.key(one.record) for one in shown.runs() if one.record is not live.record]
    return page(
        "run.html",
        title=live.record.name,
        others=others[:500],
        **_head(live, key),
    )


def _vital_names(vitals: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, list[list[str]]]]:
    """What is measured alike is one chart."""
    grouped: dict[str, list[list[str]]] = {}
    for node, curves in vitals.items():
        for name, curve in curves.items():
            grouped.setdefault(vital_title(name, curve.source), []).append([node, name])
    same = {title for title, _ in constant_vitals(vitals)}
    return [(title, pairs) for title, pairs in grouped.items() if title not in same]


def _head(live: LiveRun, key: str) -> dict[str, Any]:
    status = known_status(live)
    view = run_view(status)
    curve = status.curve.name[:LONGEST_NAME] if status.curve else ""  # drawn better below
    return {
        "live": live,
        "key": key,
        "status": status,
        "view": view,
        "remarks": [one for one in view.remarks if one.label != curve],
        "bars": time_line(status),
        "kinds": report_file.kinds_of(time_line(status)),
        "reasons": {bar.job: bar.reason for bar in time_line(status)},
        "job_headings": JOB_HEADINGS,
        "can": _possible(status),
        "slow": bottleneck_views(status),
    }


def _possible(status: RunStatus) -> Mapping[str, bool]:
    """Which buttons do something."""
    over = status.state.over
    gone = status.state.value == "gone"
    return {
        "cancel": not over,
        "resume": over and status.state.value != "finished" and not gone and not status.moved,
        "fetch": bool(status.jobs) and not gone,
    }


def part(request: Request) -> Response:
    """A piece of the page of a run, which is asked for again when anything changed."""
    live, what = found(request), request.path_params["what"]
    key = request.path_params["key"]
    if what == "head":
        return page("run_head.html", **_head(live, key))
    shown = shown_of(request)
    if what == "charts":
        curves, vitals = shown.series(live.record), shown.vitals(live.record)
        names = {
            "charts": chart_names(curves)[:_MOST_CHARTS],
            "vitals": _vital_names(vitals),
            "constant": constant_vitals(vitals),
        }
        return page("run_charts.html", key=key, more=len(curves) - _MOST_CHARTS, **names)
    if what == "log":
        job = request.query_params.get("job", "")
        search = request.query_params.get("search", "")[:200]
        told = run_details.log_page(
            live.record, shown.home, job=int(job) if job.isdecimal() else 0, search=search
        )
        searched = run_details.SEARCHED
        return page("run_log.html", log=told, search=search, searched=searched, say_size=say_size)
    if what == "checkpoints":
        told_of = run_details.checkpoints(live.record, shown.home)
        return page(
            "run_checkpoints.html", checkpoints=told_of, now=known_status(live).now or time.time()
        )
    if what in ("plan", "difference"):
        return _plan(request, live) if what == "plan" else _difference(request, live)
    raise HTTPException(404)


def _plan(request: Request, live: LiveRun) -> Response:
    made = _report_of(shown_of(request), live)
    return page("run_plan.html", report=made)


def _difference(request: Request, live: LiveRun) -> Response:
    """Of the code of another run and of this one."""
    other = found(request, request.query_params.get("with", ""))
    home = shown_of(request).home
    plans = [plan_and_script(one.record, home)[0] for one in (other, live)]
    codes = [plan.code if plan else "" for plan in plans]
    changes = run_details.code_changes(codes[0], codes[1], home) if all(codes) else None
    return page(
        "run_difference.html", other=other.record, run=live.record, changes=changes, codes=codes
    )


def _history(shown: ShownRuns, live: LiveRun) -> RunHistory:
    plan, script = plan_and_script(live.record, shown.home, reachable=not live.problem)
    return RunHistory(
        record=live.record,
        status=known_status(live),
        plan=plan,
        script=script,
        curves=shown.series(live.record),
        vitals=shown.vitals(live.record),
        seen=live.heard,
        trouble=live.problem,
    )


def _report_of(shown: ShownRuns, live: LiveRun) -> RunReport:
    return run_report(_history(shown, live))


def report(request: Request) -> Response:
    """The same file that `rabaska report` writes, to be kept: so it is not shown here."""
    live = found(request)
    text = report_file.html([_report_of(shown_of(request), live)])
    name = f'attachment; filename="{live.record.name}.html"'
    return HTMLResponse(text, headers={"content-disposition": name})


def compare(request: Request) -> Response:
    shown = shown_of(request)
    keys = list(dict.fromkeys(request.query_params.getlist("run")))[:_MOST_COMPARED]
    live = [found(request, key) for key in keys]
    reports = [_report_of(shown, one) for one in live]
    return page(
        "compare.html",
        title="compare",
        keys=keys,
        reports=reports,
        rows=unlike(reports) if len(reports) > 1 else (),
        names=_in_several(reports),
        all_keys=[shown.key(one.record) for one in shown.runs()][:500],
    )


def _in_several(reports: Sequence[RunReport]) -> list[str]:
    """Series that several of the runs have; all, where none is."""
    counted: dict[str, int] = {}
    for one in reports:
        for chart in one.charts:
            for name, _ in chart.curves:
                counted[name] = counted.get(name, 0) + 1
    return [name for name, times in counted.items() if times > 1] or list(counted)
