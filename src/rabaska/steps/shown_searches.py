"""Searches that somebody looks at: asked after now and then, and kept as they were last seen."""

import json
import re
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from rabaska.domain.search import SearchState, SearchStatus, Trial
from rabaska.domain.trial_values import trial_numbered
from rabaska.errors import NoSuchRun, RabaskaError
from rabaska.node import files
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.records.search_index import SearchRecord, remembered
from rabaska.remote.place import quoted, surely
from rabaska.steps import submit_search
from rabaska.steps.connect import connect_for

_LIVE = 4.0  # seconds between two questions while a search goes on
_OVER = 60.0
_LONGEST = 120.0  # where the cluster does not answer
_NONE = 93  # how a script ends where there is no run
_ID = re.compile(r'"id": "([0-9a-z]{1,64})"')
_STATUS = {field.name for field in fields(SearchStatus)}
_TRIAL = {field.name for field in fields(Trial)}


@dataclass(frozen=True)
class SeenSearch:
    """A search as it was last heard of."""

    record: SearchRecord
    status: SearchStatus | None = None  # None: its cluster never answered
    heard: float = 0.0  # when that was, by this computer's clock; 0: never
    problem: str = ""  # why it is not fresh; "": it is


class ShownSearches:
    """All searches of this computer's list; any thread may ask."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._seen: dict[str, SeenSearch] = {}
        self._next: dict[str, float] = {}  # when it may be asked after again
        self._failed: dict[str, int] = {}
        self._asking: dict[str, threading.Lock] = {}

    def records(self) -> list[SearchRecord]:
        """Newest first."""
        return remembered(self._home.searches)[::-1]

    def find(self, name: str) -> SearchRecord | None:
        return next((one for one in self.records() if one.name == name), None)

    def last_seen(self, record: SearchRecord) -> SeenSearch:
        """What is known without asking anybody."""
        known = self._seen.get(record.name)
        return known if known and known.record == record else self._kept(record)

    def seen(self, record: SearchRecord) -> SeenSearch:
        """Asked of its cluster, if that was not done a moment ago."""
        with self._asking.setdefault(record.name, threading.Lock()):
            if time.monotonic() >= self._next.get(record.name, 0.0):
                self._seen[record.name] = self._asked(record)
            return self._seen.get(record.name) or self._kept(record)

    def run_of(self, record: SearchRecord, number: int) -> RunRecord:
        """The run that is this trial, though it may not be in this computer's list."""
        status = self.seen(record).status
        if status is None:
            raise NoSuchRun(f"nothing is known of search {record.name} yet")
        trial = trial_numbered(status, number)
        store = record.path.rpartition("/searches/")[0]
        run = RunRecord(
            trial.run, record.cluster, f"{store}/runs/{trial.run}", record.project, trial.begun
        )
        return replace(run, id=self._id_of(record, run))

    def _id_of(self, record: SearchRecord, run: RunRecord) -> str:
        """As its run.json has it; asked for once, so that it is known without the cluster too."""
        file = str(self._home.live / f"search-{record.name}.runs.json")
        known: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            known = files.read_json(file) or {}
        if run.path not in known:
            cluster = connect_for(run, self._home)
            plan = quoted([f"{run.path}/run.json"])
            script = f"[ -e {plan} ] || exit {_NONE}\ngrep '^ \"id\": ' {plan} || true"
            outcome = surely(lambda: cluster.place.run(script))
            if outcome.exit_code == _NONE:
                raise NoSuchRun(
                    f"trial {run.name} has no folder on {record.cluster}",
                    why="it has not begun, or it was removed: `keep_others` under [search] decides",
                )
            found = _ID.search(outcome.output)
            known[run.path] = found[1] if found else ""
            with suppress(OSError):
                files.write_whole(file, json.dumps(known))
        return str(known[run.path])

    def _asked(self, record: SearchRecord) -> SeenSearch:
        began = time.monotonic()
        try:
            status = submit_search.ask(record, self._home, curves=True)
        except RabaskaError as problem:
            failed = self._failed[record.name] = self._failed.get(record.name, 0) + 1
            self._next[record.name] = time.monotonic() + min(_LONGEST, _LIVE * 2**failed)
            before = self.last_seen(record)
            why = f"{problem.what}: {problem.why}" if problem.why else problem.what
            status_known = None if isinstance(problem, NoSuchRun) else before.status
            return SeenSearch(record, status_known, before.heard, why)
        self._failed.pop(record.name, None)
        took = time.monotonic() - began
        pause = _OVER if status.state.over else max(_LIVE, 4 * took)
        self._next[record.name] = time.monotonic() + pause
        self._keep(record, status)
        return SeenSearch(record, status, time.time())

    def _file(self, record: SearchRecord) -> Path:
        return self._home.live / f"search-{record.name}.json"

    def _keep(self, record: SearchRecord, status: SearchStatus) -> None:
        with suppress(OSError, ValueError):
            self._home.live.mkdir(mode=0o700, parents=True, exist_ok=True)
            kept = {**asdict(status), "state": status.state.value, "plan": {}, "workers": {}}
            files.write_whole(str(self._file(record)), json.dumps(kept))

    def _kept(self, record: SearchRecord) -> SeenSearch:
        file = self._file(record)
        with suppress(OSError, ValueError, TypeError, KeyError):
            kept = files.read_json(str(file))
            if kept and kept["path"] == record.path:
                return SeenSearch(record, _status(kept), file.stat().st_mtime)
        return SeenSearch(record)


def _status(kept: Mapping[str, Any]) -> SearchStatus:
    values = {name: kept[name] for name in _STATUS & kept.keys()}
    trials = tuple(_trial(one) for one in kept["trials"])
    return SearchStatus(**{**values, "state": SearchState(kept["state"]), "trials": trials})


def _trial(kept: Mapping[str, Any]) -> Trial:
    values = {name: kept[name] for name in _TRIAL & kept.keys()}
    curve = tuple((int(at), float(value)) for at, value in kept.get("curve", ()))
    return Trial(**{**values, "names": tuple(kept.get("names", ())), "curve": curve})
