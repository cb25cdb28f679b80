"""Watch: runs as they are now or as they were last seen; each cluster is asked apart."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rabaska.domain.curves import Curve
from rabaska.domain.runs import RunStatus
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.remote import ssh_calls, ssh_connection
from rabaska.remote.place import quoted
from rabaska.steps.connect import cluster_named, connect_for, place_of
from rabaska.steps.live_runs import LiveRuns
from rabaska.steps.run_identity import confirm
from rabaska.steps.shown_searches import ShownSearches
from rabaska.steps.sync_trackers import LiveSync

HERE = "here"
_SHORTEST, _LONGEST = 5.0, 60.0  # seconds between two questions: sites ask for no more
_SHORTEST_HERE, _LONGEST_HERE = 1.0, 2.0
_GROWS = 1.5
_SLOW = 3.0  # times the duration of an answer: a slow link is not always busy with us
_LOG_BYTES = 262_144  # of the end of a log; a slow link takes a second for it

Searches = ShownSearches

# Who has the screen to themselves lets no ssh ask for a password there.
without_prompts = ssh_connection.without_prompts


@dataclass(frozen=True)
class Seen:
    """A run as it was last seen from here."""

    record: RunRecord
    run: RunStatus | None = None  # None: not yet
    at: float = 0.0  # when, by our clock: seconds since 1970
    trouble: str = ""  # why nothing newer is known
    curves: Mapping[str, Curve] = field(default_factory=dict)
    vitals: Mapping[str, Mapping[str, Curve]] = field(default_factory=dict)  # by node

    @property
    def key(self) -> str:
        return f"{self.record.cluster}:{self.record.path}"


class Watch:
    """Runs that are watched. Threads may each ask for the runs of one cluster."""

    def __init__(self, records: Sequence[RunRecord], home: Home) -> None:
        self._home = home
        self._reading = threading.Lock()
        self._seen = {seen.key: seen for seen in map(Seen, records)}
        names = dict.fromkeys(record.cluster for record in records)
        self._live = {
            name: LiveRuns([record for record in records if record.cluster == name], home)
            for name in names
        }
        for live in self._live.values():
            for known in live.last_seen():
                seen = Seen(known.record, known.status, known.heard)
                self._seen[seen.key] = seen
        self._opened: set[str] = set()
        self.sync = LiveSync(home)

    def add(self, record: RunRecord) -> Seen:
        """Watch one more run, as the trial of a search."""
        seen = Seen(record)
        if seen.key not in self._seen:
            live = self._live.setdefault(record.cluster, LiveRuns([], self._home))
            live.records.append(record)
            (known,) = LiveRuns([record], self._home).last_seen()
            self._seen[seen.key] = Seen(record, known.status, known.heard)
        return self._seen[seen.key]

    @property
    def clusters(self) -> list[str]:
        return list(self._live)

    def seen(self) -> list[Seen]:
        return list(self._seen.values())

    def of(self, cluster: str) -> list[Seen]:
        return [seen for seen in self.seen() if seen.record.cluster == cluster]

    def refresh(self, cluster: str) -> bool:
        """Ask a cluster for all its runs, in one call; whether more waits to be sent."""
        live = self._live[cluster]
        answers = live.refresh()
        for heard in answers:
            before = self._seen[Seen(heard.record).key]
            seen = replace(
                before,
                run=heard.status or before.run,
                at=heard.heard or before.at,
                trouble=heard.problem,
            )
            # A run that is over stays the same object: nothing of it is drawn again.
            if not (seen.run and seen.run.state.over and _is_same(before, seen)):
                self._seen[seen.key] = self._with_numbers(seen)
            now = self._seen[before.key]
            over = bool(now.run and now.run.state.over)
            self.sync.look(now.record, now.curves, is_over=over)
        return any(heard.arriving for heard in answers)

    def open(self, key: str) -> None:
        """Read the numbers of a run, from now on, though it may be over."""
        self._opened.add(key)
        self._seen[key] = self._with_numbers(self._seen[key])

    def _with_numbers(self, seen: Seen) -> Seen:
        """Millions of points are read only where somebody looks, or something is going on."""
        is_over = seen.run is None or seen.run.state.over
        if is_over and seen.key not in self._opened and not seen.curves:
            return seen
        live = self._live[seen.record.cluster]
        with self._reading:
            return replace(seen, curves=live.series(seen.record), vitals=live.vitals(seen.record))


def _is_same(before: Seen, seen: Seen) -> bool:
    """Whether only the time and the age of what it tells are others."""
    if before.run is None or seen.run is None or before.trouble != seen.trouble:
        return False
    return replace(before.run, now=seen.run.now) == seen.run


def follow(
    records: Sequence[RunRecord], home: Home, complain: Callable[[str], None] = lambda _text: None
) -> Iterator[Seen]:
    """Each run, each time that its cluster was asked, until all are over."""
    watch, pauses = Watch(records, home), dict.fromkeys((r.cluster for r in records), 0.0)
    watch.sync.complain = complain
    due = dict.fromkeys(pauses, 0.0)
    while due:
        cluster = min(due, key=lambda name: due[name])
        time.sleep(max(0.0, due[cluster] - time.monotonic()))
        began = time.monotonic()
        watch.refresh(cluster)
        took = time.monotonic() - began
        pauses[cluster] = next_pause(pauses[cluster], here=cluster == HERE, took=took)
        due[cluster] = time.monotonic() + pauses[cluster]
        yield from watch.of(cluster)
        if all(seen.run and seen.run.state.over and not seen.trouble for seen in watch.of(cluster)):
            del due[cluster]
    watch.sync.finish()
    for seen in watch.seen():  # what came while another one was uploaded
        watch.sync.look(seen.record, seen.curves, is_over=True)
        watch.sync.finish()


def next_pause(last: float, *, here: bool, took: float = 0.0) -> float:
    """Seconds until the next question, `last` after the one before; 0 at the first."""
    shortest, longest = (_SHORTEST_HERE, _LONGEST_HERE) if here else (_SHORTEST, _LONGEST)
    return max(min(max(shortest, last * _GROWS), longest), took * _SLOW)


def bytes_moved() -> int:
    """Bytes of questions and answers so far, of all ssh calls of this process."""
    return ssh_calls.moved[0]


def open_connection(cluster: str, home: Home) -> None:
    """Connect to a cluster, where a password may be typed; nothing for this computer."""
    place = place_of(cluster_named(cluster, home))
    connection = getattr(place, "connection", None)
    if connection is not None:
        connection.open()


def end_of_log(record: RunRecord, job: int, home: Home) -> str:
    """The last part of what a job printed."""
    cluster = connect_for(record, home)
    confirm(record, cluster)
    log = quoted([f"{record.path}/logs/job-{job:03d}.log"])
    return cluster.place.run(f"tail -c {_LOG_BYTES} {log} 2>/dev/null").output
