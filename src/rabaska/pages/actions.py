"""What the buttons do: cancel, resume, fetch, note."""

import threading
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rabaska.errors import RabaskaError
from rabaska.pages.run_pages import found, shown_of
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.steps.progress import SilentReporter
from rabaska.views.runs import after_cancel
from rabaska.views.words import counted

_LARGEST = 20_000  # bytes of what is sent here
_busy: set[str] = set()
_lock = threading.Lock()


class Said(SilentReporter):
    """Keeps what a journey says, for the page."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def step(self, text: str) -> None:
        self.lines.append(text)

    def warn(self, text: str) -> None:
        self.lines.append(f"note: {text}")


Fields = Mapping[str, str]


async def act(request: Request) -> Response:
    """Do it in a thread of its own; twice at once for one run is refused."""
    from starlette.concurrency import run_in_threadpool

    what = request.path_params["what"]
    if what not in _ACTIONS:
        raise HTTPException(404)
    if int(request.headers.get("content-length") or 0) > _LARGEST:
        raise HTTPException(413, "that is too long")
    live = found(request)
    fields = dict(parse_qsl((await request.body()).decode(errors="replace")))
    try:
        lines = await run_in_threadpool(_once, what, live.record, shown_of(request).home, fields)
    except RabaskaError as problem:
        told = {"problem": problem.what, "why": problem.why, "hint": problem.hint}
        return JSONResponse(told, status_code=409)
    shown_of(request).reload()
    shown_of(request).ask_soon()
    return JSONResponse({"said": lines})


def _once(what: str, record: RunRecord, home: Home, fields: Fields) -> list[str]:
    from rabaska.errors import WrongUse

    with _lock:
        if record.path in _busy:
            raise WrongUse(f"{record.name} is busy", why="an earlier button is still at work")
        _busy.add(record.path)
    try:
        return _ACTIONS[what](record, home, fields)
    finally:
        with _lock:
            _busy.discard(record.path)


def _cancel(record: RunRecord, home: Home, fields: Fields) -> list[str]:
    from rabaska.journeys.cancel import cancel

    return [str(remark) for remark in after_cancel(cancel(record, home))]


def _resume(record: RunRecord, home: Home, fields: Fields) -> list[str]:
    from rabaska.journeys.resume import resume

    said = Said()
    submitted = resume(record, home, reporter=said)
    return [
        *said.lines,
        f"{submitted.run}: submitted to {submitted.cluster}, id {submitted.job_id}",
    ]


def _fetch(record: RunRecord, home: Home, fields: Fields) -> list[str]:
    from rabaska.journeys.fetch import fetch, refuse_incomplete

    said = Said()
    fetched = fetch(record, home, reporter=said)
    came = fetched.files - fetched.own_files
    refuse_incomplete(fetched)
    return [*said.lines, f"{counted(came, 'new file')} in {fetched.folder}"]


def _note(record: RunRecord, home: Home, fields: Fields) -> list[str]:
    from rabaska.journeys.note import note

    wanted = [tag.lstrip("#") for tag in fields.get("tags", "").replace(",", " ").split()]
    remove = [tag for tag in record.tags or () if tag not in wanted]
    noted = note(record, home, fields.get("note", "")[:2000], add=wanted, remove=remove)
    return [f"noted on {noted.run}"]


_ACTIONS: dict[str, Callable[[RunRecord, Home, Fields], list[str]]] = {
    "cancel": _cancel,
    "resume": _resume,
    "fetch": _fetch,
    "note": _note,
}
