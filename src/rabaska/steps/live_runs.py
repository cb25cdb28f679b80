"""Runs as they go on: their status, their numbers, and how old both are.

`refresh` asks each cluster once about all of its runs and fetches only what is new. What arrived
is kept on this computer, so a cluster that does not answer leaves what was last seen.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rabaska.domain import untrusted
from rabaska.domain.curves import Curve
from rabaska.domain.runs import RunStatus
from rabaska.errors import RabaskaError
from rabaska.node import files
from rabaska.records.caches import Report
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.records.series_files import (
    RunNumbers,
    copy_folder,
    held,
    numbers_folder,
    take,
)
from rabaska.steps.connect import ConnectedCluster, connect_for
from rabaska.steps.query_status import scheduler_answer, standing, statuses
from rabaska.steps.status_report import LAST, report


@dataclass(frozen=True)
class LiveRun:
    """A run as it was last heard of."""

    record: RunRecord
    status: RunStatus | None = None  # None: its cluster never answered
    heard: float = 0.0  # when that was, by this computer's clock; 0: never
    problem: str = ""  # why it is not fresh; "": it is
    arriving: bool = False  # more numbers are there than one answer carries: refresh again


_Shared = tuple[ConnectedCluster, Report]  # what the runs of a cluster have in common


class LiveRuns:
    """These runs; `records` may be changed between two calls of `refresh`."""

    def __init__(self, records: Sequence[RunRecord], home: Home) -> None:
        self.records = list(records)
        self._home = home
        self._numbers: dict[Path, RunNumbers] = {}
        self._copies = _Copies(home)

    def refresh(self, *, explained: bool = False) -> list[LiveRun]:
        """Ask each cluster once; runs of one that does not answer are as they were last seen."""
        found: dict[RunRecord, LiveRun] = {}
        records = list(self.records)
        for name in dict.fromkeys(record.cluster for record in records):
            wanted = [record for record in records if record.cluster == name]
            found.update((live.record, live) for live in self._ask(wanted, explained=explained))
        return [found[record] for record in records]

    def last_seen(self) -> list[LiveRun]:
        """What is known without asking anybody."""
        return self._copies.last_seen(self.records, "")

    def series(self, record: RunRecord) -> dict[str, Curve]:
        """What its program reported, by name, as far as it has arrived."""
        return self._fresh(record).series

    def vitals(self, record: RunRecord) -> dict[str, dict[str, Curve]]:
        """What its nodes measured, by node and name, as far as it has arrived."""
        return self._fresh(record).vitals

    def _fresh(self, record: RunRecord) -> RunNumbers:
        folder = numbers_folder(self._home, record)
        copies = copy_folder(self._home, record) / "read"
        numbers = self._numbers.setdefault(folder, RunNumbers(folder, copies))
        numbers.refresh()
        return numbers

    def _ask(self, records: Sequence[RunRecord], *, explained: bool) -> list[LiveRun]:
        try:
            told = statuses(records, self._home, explained=explained, listener=self._copies)
        except RabaskaError as problem:
            why = f"{problem.what}: {problem.why}" if problem.why else problem.what
            return self._copies.last_seen(records, why)
        now, left = time.time(), self._copies.left
        return [
            LiveRun(record, status, now, arriving=left.get(record.path, 0) > 0)
            for record, status in zip(records, told, strict=True)
        ]


class _Copies:
    """What arrived, as it is kept on this computer; see `query_status.Listener`."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._written: dict[str, str] = {}
        self._records: dict[str, RunRecord] = {}
        self.left: dict[str, int] = {}  # bytes that are still to come, by run folder

    def have(self, record: RunRecord) -> dict[str, int] | None:
        self._records[record.path] = record
        return None if record.cluster == "here" else held(numbers_folder(self._home, record))

    def take(self, record: RunRecord, new: Mapping[str, Any]) -> None:
        self.left[record.path] = take(numbers_folder(self._home, record), new)

    def heard(self, cluster: str, reports: Mapping[str, Report], last: Report) -> None:
        self._keep(self._answer(cluster), {"last": last})
        for path, told in reports.items():
            self._keep(self._report(self._records[path]), told)

    def last_seen(self, records: Sequence[RunRecord], problem: str) -> list[LiveRun]:
        """There may be a thousand: what they share is read once."""
        shared: dict[tuple[str, str], _Shared] = {}
        return [self._last_seen(record, problem, shared) for record in records]

    def _last_seen(
        self, record: RunRecord, problem: str, shared: "dict[tuple[str, str], _Shared]"
    ) -> LiveRun:
        with suppress(OSError, ValueError, KeyError, TypeError, RabaskaError):
            place = record.cluster, os.path.dirname(record.path)  # noqa: PTH120
            if place not in shared:
                shared[place] = self._shared(record)
            cluster, last = shared[place]
            file = self._report(record)
            told = report(files.read_json(str(file)) or {})
            heard = scheduler_answer({record.path: told}, last, cluster)
            status = standing([record], heard, cluster, explained=False)[record]
            return LiveRun(record, status, file.stat().st_mtime, problem)
        return LiveRun(record, problem=problem)

    def _shared(self, record: RunRecord) -> "_Shared":
        answer = files.read_json(str(self._answer(record.cluster))) or {}
        return connect_for(record, self._home), untrusted.checked(answer["last"], LAST)

    def _keep(self, file: Path, value: Report) -> None:
        text = json.dumps(value)
        if self._written.get(str(file)) != text:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            files.write_whole(str(file), text)
            self._written[str(file)] = text
        else:
            os.utime(file)  # it still holds

    def _answer(self, cluster: str) -> Path:
        return self._home.live / f"{cluster}.json"

    def _report(self, record: RunRecord) -> Path:
        return copy_folder(self._home, record) / "report.json"
