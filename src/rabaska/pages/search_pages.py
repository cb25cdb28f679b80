"""Pages about searches: all of them, and one with its charts and its trials."""

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from rabaska.pages.run_pages import page, shown_of
from rabaska.records.search_index import SearchRecord
from rabaska.steps.shown_searches import SeenSearch, ShownSearches
from rabaska.views import search as views
from rabaska.views.search_report import search_report


def _searches_of(request: Request) -> ShownSearches:
    found: ShownSearches = request.app.state.searches
    shown_of(request).look()
    return found


def _found(request: Request) -> SearchRecord:
    name = request.path_params["name"]
    record = _searches_of(request).find(name)
    if record is None:
        raise HTTPException(404, f"no search is called {name}")
    return record


def searches(request: Request) -> Response:
    shown = _searches_of(request)
    rows = [shown.last_seen(record) for record in shown.records()]
    return page("searches.html", title="searches", rows=rows, tone=views.TONES)


def search(request: Request) -> Response:
    """As it was last seen; its cluster is asked as soon as the page is there."""
    record = _found(request)
    seen = _searches_of(request).last_seen(record)
    return page("search.html", title=record.name, name=record.name, **_shown(seen, request))


def part(request: Request) -> Response:
    """Nothing, where the browser has what was last heard: a thousand trials are two megabytes."""
    seen = _searches_of(request).seen(_found(request))
    version = f"{seen.heard} {seen.problem}".encode(errors="replace").hex()
    if request.headers.get("x-known") == version:
        return Response(status_code=204)
    answer = page("search_part.html", **_shown(seen, request))
    answer.headers["x-version"] = version
    return answer


def _shown(seen: SeenSearch, request: Request) -> dict[str, Any]:
    report = search_report(seen, sort=request.query_params.get("sort", ""))
    return {"seen": seen, "record": seen.record, "report": report}


def trial(request: Request) -> Response:
    """To the run that is this trial."""
    run = _searches_of(request).run_of(_found(request), request.path_params["number"])
    return RedirectResponse(f"/run/{shown_of(request).invite(run)}", status_code=303)
