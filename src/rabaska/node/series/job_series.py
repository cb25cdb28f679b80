"""The series of one job: its sources are found, read on, and written to series/job-001.tsv.

series/sources.json says how far each was read, so that the next job goes on there;
series/summary.json has the newest values and a few that show the course, for `status`.
"""

import os
import time
from typing import Any, Dict, Optional, Sequence

from .. import files
from ..record import jobs
from ..record.run_folder import RunFolder
from . import find_sources
from .collector import Collector, Group
from .main_metric import main_metric
from .printed_series import PrintedSeries
from .series_format import SERIES, SeriesFile, Told, read_told
from .sources import Source

MOST_EARLIER = 128 * 1024 * 1024  # bytes of earlier jobs' series that are read
_SUMMARISED = 40  # series whose newest value is noted
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0  # seconds between two searches for files
_SHARE = 1 / 20  # of the job so far: programs begin to log after a minute of imports, too
_COST = 100  # a search that took a second is followed by a pause of so many
_AT_END = 5.0  # seconds for the last look: results are still to be kept then


def series_file(run: RunFolder, job: int) -> str:
    return os.path.join(run.path, SERIES, "job-{:03d}.tsv".format(job))


def _sources_file(run: RunFolder) -> str:
    return os.path.join(run.path, SERIES, "sources.json")


def summary_file(run: RunFolder) -> str:
    return os.path.join(run.path, SERIES, "summary.json")


class JobSeries:
    """`look` reads what is new and writes it; files that were there before are read on only."""

    def __init__(
        self,
        run: RunFolder,
        job: int,
        began: float,
        roots: Sequence[str],
        pattern: str = "",
        *,
        fills: bool = False,
    ) -> None:
        self._run, self._job, self._roots = run, job, list(roots)
        self._state = _load(_sources_file(run))
        self._sources: Dict[str, Source] = {}
        self._refused: Dict[str, int] = {}  # files that hold no numbers, and how large they are
        self._kept: Any = None
        self._began, self._searched, self._search_at = began, began, began
        own: Dict[str, Told] = {}
        path = series_file(run, job)
        read_told(path, own)
        floors = {name: told.steps[-1] for name, told in own.items()}
        file, dropped = SeriesFile(path, job, began), _texts(self._state.get("dropped"))
        self._collector = Collector(file, _earlier(run, job), dropped, floors, fills=fills)
        log = self._state.get("log") if self._state.get("job") == job else None
        offset, head = _place(log)
        self._log = PrintedSeries(run.log(job), offset, head, pattern, first_log=run.log(1))
        self._find(at_start=not fills)
        # At once: the next job must know what was old, also if this one is killed in a second.
        files.make_inside(os.path.join(run.path, SERIES))
        self._keep_sources()

    def look(self, now: float, at_end: bool = False) -> None:
        """Read what is new, and write it."""
        began = time.monotonic()
        if at_end or not self._searched <= now < self._search_at:  # a clock may be set back
            self._find()
            # A folder of very many files on busy storage is searched less often.
            pause = min(_LONGEST_PAUSE, max(_FIRST_PAUSE, (now - self._began) * _SHARE))
            pause = max(pause, _COST * (time.monotonic() - began))
            self._searched, self._search_at = now, now + pause
        for name, source in sorted(self._sources.items()):
            if at_end and time.monotonic() > began + _AT_END:
                break  # the rest is read by the job after this one, if there is one
            group = Group(source.kind, _folder(source.kind, name))
            self._collector.take(group, source.read(), now)
        self._collector.take(Group(self._log.kind, ""), self._log.read(), now)
        self._collector.settle(now, at_end)
        if self._collector.file.flush() or at_end:
            self._keep()

    def _find(self, at_start: bool = False) -> None:
        known = self._state.get("files")
        for name, path in find_sources.find(self._roots).items():
            if name in self._sources:
                continue
            kind = self._kind_of(path)
            if kind is None or len(self._sources) >= find_sources.MOST_FILES:
                continue
            place = known.get(name) if isinstance(known, dict) else None
            source = kind(path, *_place(place))
            if at_start and place is None:
                source.skip()
            self._sources[name] = source

    def _kind_of(self, path: str) -> Any:
        try:
            size = os.stat(path).st_size
            if self._refused.get(path) == size:
                return None
            kind = find_sources.kind_of(path)
        except OSError:
            return None
        if kind is None:
            self._refused[path] = size
        return kind

    def _keep(self) -> None:
        """Note how far everything was read; the points themselves are written before."""
        self._keep_sources()
        files.write_json(summary_file(self._run), self._summary())

    def _keep_sources(self) -> None:
        state = {
            "job": self._job,
            "files": {name: source.state() for name, source in self._sources.items()},
            "log": self._log.state(),
            "dropped": self._collector.dropped,
        }
        if state != self._kept:
            files.write_json(_sources_file(self._run), state)
            self._kept = state

    def _summary(self) -> Dict[str, Any]:
        tracks = {track.name: track for track in self._collector.tracks}
        main = main_metric(tracks)
        newest = [(name, track.last[0], track.last[1]) for name, track in tracks.items()]
        return {
            "job": self._job,
            "main": main,
            "curve": tracks[main].spark.values() if main is not None else [],
            "newest": [[name, step, repr(value)] for name, step, value in newest[:_SUMMARISED]],
            "series": len(tracks),
            "points": self._collector.points,
            "left_out": len(self._collector.left_out),
        }


def finish_earlier(run: RunFolder, job: int, roots: Sequence[str], now: float) -> None:
    """Read what the job before left unread, for it was killed: that belongs to its own series."""
    state = _load(_sources_file(run))
    before = state.get("job")
    if isinstance(before, int) and 0 < before < job:
        begun = jobs.read_begun(run, before)
        began = begun.begun if begun is not None else now
        JobSeries(run, before, began, roots, fills=True).look(now, at_end=True)


def _earlier(run: RunFolder, job: int) -> Dict[str, Told]:
    told: Dict[str, Told] = {}
    paths = [series_file(run, number) for number in range(1, job)]
    if sum(os.path.getsize(path) for path in paths if os.path.exists(path)) <= MOST_EARLIER:
        for path in paths:
            read_told(path, told)
    return told


def _folder(kind: str, name: str) -> str:
    """Files of one kind in one folder tell of the same, and so do those of several checkpoints."""
    folder = os.path.dirname(name)
    if kind == "trainer_state.json" and os.path.basename(folder).startswith("checkpoint-"):
        return os.path.dirname(folder)
    return folder


def _load(path: str) -> Dict[str, Any]:
    try:
        value = files.read_json(path)
    except (OSError, ValueError):
        return {}  # everything is read from where it is now
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> Dict[str, str]:
    told = value if isinstance(value, dict) else {}
    return {key: one for key, one in told.items() if isinstance(one, str)}


def _place(state: Optional[Any]) -> Any:
    told = state if isinstance(state, dict) else {}
    numbers = [told.get("offset", 0), told.get("head", 0)]
    return numbers if all(isinstance(one, int) and one >= 0 for one in numbers) else [0, 0]
