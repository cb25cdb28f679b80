"""All runs of this computer's list, asked after while somebody looks at them.

Each cluster is asked by a thread of its own, so one that does not answer holds up no other. One
that fails is asked less and less often, and none while nobody looks.
"""

import random
import threading
import time
from collections.abc import Sequence

from rabaska.domain.curves import Curve
from rabaska.domain.runs import RunState, RunStatus
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord, digest, remembered
from rabaska.steps.live_runs import LiveRun, LiveRuns

_LIVE = 2.0  # seconds between two questions while a run goes on
_OVER = 30.0  # where all are over
_LONGEST = 120.0  # where the cluster does not answer
_ALL = 300.0  # seconds after which runs that are over are asked after again
_LOOKED = 20.0  # seconds after the last look in which somebody still looks

Runs = dict[str, LiveRun]


class ShownRuns:
    def __init__(self, home: Home) -> None:
        self.home = home
        self.version = 1  # changes when anything does
        self._lock = threading.Lock()
        self._runs: dict[RunRecord, LiveRun] = {}
        self._guests: dict[RunRecord, LiveRun] = {}  # shown, though they are not in the list
        self._listed = 0  # when a run was last added to the list, or removed from it
        self._reader = LiveRuns([], home)
        self._reading: dict[str, threading.Lock] = {}  # one run at a time by one thread
        self._looked = time.monotonic()
        self._watchers: dict[str, _Watcher] = {}
        self._over = threading.Event()
        self.reload()

    def reload(self) -> None:
        """Read the list of runs again: one may be new, deleted or forgotten."""
        self._listed = self._changed()
        records = remembered(self.home.runs)
        with self._lock:
            known = {record.id or record.path: live for record, live in self._runs.items()}
        missing = [record for record in records if (record.id or record.path) not in known]
        seen = LiveRuns(missing, self.home).last_seen() if missing else []
        known.update((live.record.id or live.record.path, live) for live in seen)
        resumed = set()
        with self._lock:
            runs = {}
            for record in records:
                live = known[record.id or record.path]
                if live.record.job_id != record.job_id:  # submitted again, by any command
                    resumed.add(record.cluster)
                runs[record] = live if live.record == record else _renewed(live, record)
            if list(runs) != list(self._runs):
                self.version += 1
            self._runs = runs
            listed = {(record.cluster, record.path) for record in runs}
            for guest in [one for one in self._guests if (one.cluster, one.path) in listed]:
                del self._guests[guest]
        for name in resumed & self._watchers.keys():
            self._watchers[name].ask_all()

    def start(self) -> None:
        """Ask every cluster, from now on."""
        for name in dict.fromkeys(live.record.cluster for live in self._all()):
            self._watch(name)

    def stop(self) -> None:
        self._over.set()
        for watcher in self._watchers.values():
            watcher.soon.set()

    def is_over(self) -> bool:
        return self._over.is_set()

    def look(self) -> None:
        """Somebody looks now."""
        was_away = time.monotonic() - self._looked > _LOOKED
        self._looked = time.monotonic()
        if self._listed != self._changed():
            before = self.version
            self.reload()
            was_away |= self.version != before  # asking writes into the list, too
        if was_away:
            self.ask_soon()

    def _changed(self) -> int:
        """When a run was submitted, adopted or forgotten, by any command; 0 before the first."""
        try:
            return self.home.runs.stat().st_mtime_ns
        except OSError:
            return 0

    def ask_soon(self) -> None:
        """Ask at once, and of all runs, for something was just done."""
        self.start()
        for watcher in self._watchers.values():
            watcher.ask_all()

    def runs(self) -> list[LiveRun]:
        """Newest first."""
        with self._lock:
            return list(reversed(self._runs.values()))

    def _all(self) -> list[LiveRun]:
        with self._lock:
            return [*self._guests.values(), *reversed(self._runs.values())]

    def invite(self, record: RunRecord) -> str:
        """Show a run that is not in the list, as the trials of a search; its key."""
        place = record.cluster, record.path
        with self._lock:
            here = [*self._runs, *self._guests]
        known = next((one for one in here if (one.cluster, one.path) == place), None)
        if known is None:
            (seen,) = LiveRuns([record], self.home).last_seen()
            with self._lock:
                self._guests[record] = seen
            self.ask_soon()
        return self.key(known or record)

    def find(self, key: str) -> LiveRun | None:
        """The run that an address names."""
        return next((live for live in self._all() if self.key(live.record) == key), None)

    def key(self, record: RunRecord) -> str:
        """How an address names a run: by its name, and its digest where others have that name."""
        with self._lock:
            known = {*self._runs, *self._guests}
            alone = sum(other.name == record.name for other in known) < 2
        return record.name if alone else f"{record.name}~{digest(record)}"

    def series(self, record: RunRecord) -> dict[str, Curve]:
        with self._reading.setdefault(record.path, threading.Lock()):
            return self._reader.series(record)

    def vitals(self, record: RunRecord) -> dict[str, dict[str, Curve]]:
        with self._reading.setdefault(record.path, threading.Lock()):
            return self._reader.vitals(record)

    def is_looked_at(self) -> bool:
        return time.monotonic() - self._looked <= _LOOKED

    def of_cluster(self, name: str, *, everything: bool) -> list[RunRecord]:
        """Whose status is asked for: of those that are over only now and then."""
        runs = [live for live in self._all() if live.record.cluster == name]
        return [
            live.record
            for live in runs
            if everything or live.status is None or not live.status.state.over
        ]

    def heard(self, told: Sequence[LiveRun]) -> None:
        with self._lock:
            places = {
                record.id or record.path: (record, runs)
                for runs in (self._guests, self._runs)
                for record in runs
            }
            changed = False
            for live in told:
                record, runs = places.get(live.record.id or live.record.path, (None, self._runs))
                if record is None:
                    continue
                before = runs[record]
                going_on = live.status is not None and not live.status.state.over
                changed |= going_on or (before.problem, before.status is None) != (
                    live.problem,
                    live.status is None,
                )
                changed |= bool(
                    before.status and live.status and before.status.state is not live.status.state
                )
                runs[record] = live
            self.version += changed

    def _watch(self, name: str) -> None:
        if name not in self._watchers and not self._over.is_set():
            self._watchers[name] = _Watcher(name, self)
            self._watchers[name].thread.start()


class _Watcher:
    """Asks one cluster again and again."""

    def __init__(self, name: str, shown: ShownRuns) -> None:
        self._name = name
        self._shown = shown
        self._live = LiveRuns([], shown.home)
        self._asked_all = 0.0
        self._wants_all = True
        self._pause = _LIVE
        self.soon = threading.Event()
        self.thread = threading.Thread(target=self._work, name=f"asks {name}", daemon=True)

    def ask_all(self) -> None:
        """At once, and also of runs that were over: one may have been resumed."""
        self._wants_all = True
        self.soon.set()

    def _work(self) -> None:
        shown = self._shown
        while not shown.is_over():
            if shown.is_looked_at():
                shown.reload()
                shown.heard(self._ask())
            self.soon.wait(self._pause)
            self.soon.clear()

    def _ask(self) -> list[LiveRun]:
        everything = self._wants_all or time.monotonic() - self._asked_all > _ALL
        self._wants_all = False
        self._live.records = self._shown.of_cluster(self._name, everything=everything)
        told = self._live.refresh(explained=True) if self._live.records else []
        if any(live.problem for live in told):
            self._wants_all |= everything
            self._pause = min(_LONGEST, max(self._pause, _LIVE) * 2) * random.uniform(0.8, 1.2)  # noqa: S311
            return told
        self._asked_all = time.monotonic() if everything else self._asked_all
        going_on = any(live.status and not live.status.state.over for live in told)
        arriving = any(live.arriving for live in told)
        self._pause = 0.1 if arriving else _LIVE if going_on else _OVER
        return told


def _renewed(live: LiveRun, record: RunRecord) -> LiveRun:
    """With what the list says of it now: its note, its tags."""
    from dataclasses import replace

    status = live.status
    if status is not None:
        status = replace(
            status,
            note=status.note if record.note is None else record.note,
            tags=status.tags if record.tags is None else record.tags,
        )
    return replace(live, record=record, status=status)


def known_status(live: LiveRun) -> RunStatus:
    """Its status; of a run that was never heard of only that."""
    if live.status is not None:
        return live.status
    record = live.record
    return RunStatus(
        name=record.name,
        cluster=record.cluster,
        state=RunState.UNKNOWN,
        reason=live.problem or "not asked yet",
        note=record.note or "",
        tags=record.tags or (),
        created=record.created,
        path=record.path,
        job_id=record.job_id,
        now=time.time(),
    )
