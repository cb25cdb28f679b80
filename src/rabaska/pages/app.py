"""The pages as a web application: which address shows what, and the events that keep them fresh."""

import asyncio
import json
from collections.abc import AsyncIterator
from importlib.resources import files
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from rabaska.errors import RabaskaError
from rabaska.pages import actions, cluster_pages, run_pages, search_pages, series_data
from rabaska.pages.report_file import templates
from rabaska.steps.shown_runs import ShownRuns
from rabaska.steps.shown_searches import ShownSearches

_TICK = 0.25  # seconds between two looks at what is new
_SIGN_OF_LIFE = 10.0  # seconds; a browser that hears nothing connects again


def application(shown: ShownRuns) -> Starlette:
    """All of it, but for who may use it: see `guard`."""
    made = Starlette(
        routes=[
            Route("/", run_pages.runs),
            Route("/part/runs", run_pages.runs_table),
            Route("/run/{key}", run_pages.run),
            Route("/part/run/{key}/{what}", run_pages.part),
            Route("/compare", run_pages.compare),
            Route("/report/{key}", run_pages.report),
            Route("/searches", search_pages.searches),
            Route("/search/{name}", search_pages.search),
            Route("/part/search/{name}", search_pages.part),
            Route("/trial/{name}/{number:int}", search_pages.trial),
            Route("/clusters", cluster_pages.clusters),
            Route("/cluster/{name}", cluster_pages.cluster),
            Route("/part/storage/{name}", cluster_pages.storage),
            Route("/data/series", series_data.series),
            Route("/data/vitals", series_data.vitals),
            Route("/do/{what}/{key}", actions.act, methods=["POST"]),
            Route("/events", _events),
            Mount("/static", StaticFiles(directory=Path(str(files("rabaska.pages") / "static")))),
        ],
        exception_handlers={RabaskaError: _refused, 404: _nothing_there},
    )
    made.state.shown = shown
    made.state.searches = ShownSearches(shown.home)
    return made


async def _refused(request: Request, problem: Exception) -> Response:
    page = templates().get_template("problem.html").render(problem=problem, title="rabaska")
    return HTMLResponse(page, status_code=409)


async def _nothing_there(request: Request, problem: Exception) -> Response:
    detail = getattr(problem, "detail", "")
    page = (
        templates()
        .get_template("problem.html")
        .render(
            problem={"what": detail or "there is no such page", "why": "", "hint": ""},
            title="rabaska",
        )
    )
    return HTMLResponse(page, status_code=404)


async def _events(request: Request) -> Response:
    shown: ShownRuns = request.app.state.shown
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(_news(shown), media_type="text/event-stream", headers=headers)


async def _news(shown: ShownRuns) -> AsyncIterator[str]:
    """A line whenever anything changed; it ends when the program does, or nobody listens."""
    told, quiet = -1, 0.0
    while not shown.is_over():
        shown.look()
        if shown.version != told:
            told, quiet = shown.version, 0.0
            yield f"event: changed\ndata: {json.dumps({'version': told})}\n\n"
        elif quiet >= _SIGN_OF_LIFE:
            quiet = 0.0
            yield ": still here\n\n"
        await asyncio.sleep(_TICK)
        quiet += _TICK
