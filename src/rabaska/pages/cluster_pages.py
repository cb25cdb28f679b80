"""Pages about clusters: their queues, the jobs that are there, what is kept and until when."""

import json
import time
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rabaska.errors import RabaskaError
from rabaska.node import files
from rabaska.pages.run_pages import page, shown_of
from rabaska.records.home import Home
from rabaska.settings.profile_files import names
from rabaska.steps.connect import cluster_named, observations_of
from rabaska.steps.shown_runs import known_status
from rabaska.views.clusters import QUEUE_HEADINGS, TIER_HEADINGS, cluster_row, profile_view
from rabaska.views.phases import now as doing_now
from rabaska.views.storage import KEPT_HEADINGS, storage_view


def clusters(request: Request) -> Response:
    """Those that have runs; the others are a list of names."""
    shown = shown_of(request)
    used: dict[str, list[Any]] = {}
    for live in shown.runs():
        used.setdefault(live.record.cluster, []).append(live)
    rows = [(name, len(runs), _going_on(runs), _newest(runs)) for name, runs in used.items()]
    others = [name for name in names(shown.home.profiles) if name not in used]
    return page("clusters.html", title="clusters", rows=rows, others=others)


def _going_on(runs: list[Any]) -> int:
    return sum(not known_status(live).state.over for live in runs)


def _newest(runs: list[Any]) -> Any:
    return max(runs, key=lambda live: live.heard)


def cluster(request: Request) -> Response:
    shown, name = shown_of(request), request.path_params["name"]
    if name not in names(shown.home.profiles):
        raise HTTPException(404, f"no cluster is called {name}")
    profile = cluster_named(name, shown.home)
    view = profile_view(profile, observations_of(name, shown.home))
    runs = [live for live in shown.runs() if live.record.cluster == name]
    jobs = [
        (live, shown.key(live.record), status, doing_now(status))
        for live in runs
        if not (status := known_status(live)).state.over
    ]
    return page(
        "cluster.html",
        title=name,
        name=name,
        row=cluster_row(profile),
        view=view,
        jobs=jobs,
        newest=_newest(runs) if runs else None,
        queue_headings=QUEUE_HEADINGS,
        astuple=lambda row: list(asdict(row).values()),
    )


def storage(request: Request) -> Response:
    """Asked of the cluster, which takes a while; what it said last where it does not answer."""
    shown, name = shown_of(request), request.path_params["name"]
    if name not in names(shown.home.profiles):
        raise HTTPException(404, f"no cluster is called {name}")
    view, seen, trouble = _storage(name, shown.home)
    return page(
        "storage.html", view=view, seen=seen, trouble=trouble, kept_headings=KEPT_HEADINGS,
        tier_headings=TIER_HEADINGS,
    )  # fmt: skip


def _storage(name: str, home: Home) -> tuple[dict[str, Any] | None, float, str]:
    from rabaska.journeys.storage import storage as journey

    file = home.live / f"{name}.storage.json"
    try:
        view = asdict(storage_view(journey(name, home)))
    except RabaskaError as problem:
        with suppress(OSError, ValueError):
            if old := files.read_json(str(file)):
                return old, file.stat().st_mtime, problem.what
        return None, 0.0, problem.what
    with suppress(OSError):
        home.live.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.write_whole(str(file), json.dumps(view))
    return view, time.time(), ""
