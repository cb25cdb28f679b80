"""Takes the points of all sources of a job, and writes each number once, under one name.

Sources that tell the same are recognised by their names and values. The better one is kept; what
was written of the other is withdrawn. A step never goes back within a job, and what an earlier
job told already, in a file that the program writes anew, is not told again.
"""

import os
from bisect import bisect_left
from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from .same_series import RECENT, Evidence, agree, is_same_run, may_be_same, rank, words
from .series_format import LONGEST_NAME, SeriesFile, Told
from .sources import Point
from .spark import Spark

MOST_NAMES = 2000  # series of a job
MOST_POINTS = 4 * 1000 * 1000
_UNDECIDED = 500  # points for which a series may wait for a decision
_PATIENCE = 60.0  # seconds, likewise
_SPLITS = ("train", "training", "val", "validation", "valid", "test", "eval", "dev")
_AHEAD, _BACK = 120.0, 30 * 86400.0  # seconds that a clock may be off, or a file may be old
LIVE, WAITING, DROPPED = "live", "waiting", "dropped"


class Group(NamedTuple):
    """Where points come from: files of one kind in one folder."""

    kind: str
    folder: str


class Track:
    """One name of one group."""

    def __init__(self, group: Group, name: str, now: float) -> None:
        self.group = group
        self.name = name  # as it is shown
        self.words = words(name)
        self.state = LIVE
        self.since = now
        self.number = -1
        self.points = 0
        self.last: Tuple[Optional[float], Optional[float]] = (None, None)
        self.recent: Dict[float, float] = {}
        self.partners: Dict["Track", Evidence] = {}
        self.waiting: List[Tuple[Optional[float], float, float]] = []
        self.spark = Spark()

    def remember(self, step: float, value: float) -> None:
        self.recent[step] = value
        if len(self.recent) > 2 * RECENT:
            self.recent = dict(list(self.recent.items())[-RECENT:])


class Collector:
    def __init__(
        self,
        file: SeriesFile,
        earlier: Dict[str, Told],
        dropped: Optional[Dict[str, str]] = None,
        floors: Optional[Dict[str, float]] = None,
        *,
        fills: bool = False,
    ) -> None:
        """`earlier` is what earlier jobs told; `floors` are the last steps that this one did.

        `dropped` is what was told elsewhere, too, and under which name. What `fills` continues
        these: of a job whose own disk is gone, what it printed is the last that is known.
        """
        self.file = file
        self._floors = floors or {}
        self._nowhere = Track(Group("", ""), "", 0.0)
        self._nowhere.state = DROPPED
        self.left_out: Set[str] = set()  # names, where there are too many
        self.points = 0
        self._earlier = earlier
        self._dropped = dict(dropped or {})
        self._fills = fills
        self._tracks: Dict[Tuple[Group, str], Track] = {}
        self._names: Dict[str, Track] = {}
        self._looked = file.began

    @property
    def tracks(self) -> List[Track]:
        """What is shown, in the order in which it was found."""
        return [track for track in self._tracks.values() if track.state == LIVE and track.points]

    @property
    def dropped(self) -> Dict[str, str]:
        """What was found to be told elsewhere, too, and how that is called."""
        return dict(self._dropped)

    def take(self, group: Group, points: Sequence[Point], now: float) -> None:
        """Points of one source, as it told them."""
        untimed = sum(point.moment is None for point in points)
        share = (now - self._looked) / untimed if untimed and now > self._looked else 0.0
        moment = self._looked if share else now
        for point in points:
            if point.moment is None:
                moment += share
                self._offer(group, point, moment, now)
            else:
                fits = -_BACK < point.moment - now < _AHEAD
                self._offer(group, point, point.moment if fits else now, now)

    def settle(self, now: float, at_end: bool = False) -> None:
        """Decide about series that may be another one; all of them `at_end`."""
        self._looked = now
        for track in [track for track in self._tracks.values() if track.partners]:
            self._judge(track)
        for track in [one for one in self._tracks.values() if one.state == WAITING]:
            late = now - track.since > _PATIENCE or len(track.waiting) > _UNDECIDED
            if not track.partners:
                self._show(track)
            elif late or at_end:
                same = [one for one in track.partners if set(one.words) == set(track.words)]
                better = [one for one in same if rank(one.group.kind) < rank(track.group.kind)]
                self._drop(track, better[0]) if better else self._show(track)

    def _offer(self, group: Group, point: Point, moment: float, now: float) -> None:
        track = self._tracks.get((group, point.name))
        if track is None:
            track = self._new_track(group, point.name, now)
        if track.state == DROPPED or self.points >= MOST_POINTS:
            return
        step, value = point.step, point.value
        if step is not None:
            last, before = track.last
            if last is not None and (step < last or (step == last and _is(value, before))):
                return
            if (last is None or self._fills) and self._is_told(track.name, step, value):
                return
            if track.partners:
                _compare(track, step, value)
            if last is None:
                track.spark = Spark()  # what came before the first step is not shown
            track.remember(step, value)
        elif track.last[0] is not None:
            return  # what is told between the steps, as a best value, has no place among them
        track.last = (step, value)
        if track.state == WAITING:
            track.waiting.append((step, moment, value))
        else:
            self._write(track, step, moment, value)

    def _write(self, track: Track, step: Optional[float], moment: float, value: float) -> None:
        if track.number < 0:
            source = "{} {}".format(track.group.kind, track.group.folder).strip()
            track.number = self.file.declare(track.name, source)
            self._begin_spark(track, step)
        self.file.add_point(track.number, step, moment, value)
        track.points += 1
        self.points += 1
        if self._fills and step is not None:
            self._floors[track.name] = step
        track.spark.add(value)

    def _begin_spark(self, track: Track, step: Optional[float]) -> None:
        told = self._earlier.get(track.name)
        if told is not None and step is not None:
            for value in told.values[: bisect_left(told.steps, step)]:
                track.spark.add(value)

    def _is_told(self, name: str, step: float, value: float) -> bool:
        """Whether this very point was told before: files that are written anew repeat it."""
        if step <= self._floors.get(name, step - 1):
            return True
        told = self._earlier.get(name)
        before = told.at(step) if told is not None else None
        return before is not None and "%.9g" % before == "%.9g" % value

    def _new_track(self, group: Group, name: str, now: float) -> Track:
        if len(self._tracks) >= MOST_NAMES:
            if len(self.left_out) < MOST_NAMES:
                self.left_out.add(name[:LONGEST_NAME])
            return self._nowhere
        track = Track(group, self._free_name(group, name), now)
        self._tracks[(group, name)] = track
        told_as = self._dropped.get(_key(group.kind, name))
        if told_as is not None:
            track.name, track.state = told_as, LIVE if self._fills else DROPPED
            return track
        for other in list(self._tracks.values()):
            apart = other.group.kind != group.kind and other.state != DROPPED
            if apart and may_be_same(track.words, other.words):
                track.partners[other] = other.partners[track] = Evidence()
        if any(other.state == LIVE for other in track.partners):
            track.state = WAITING
        else:
            self._names.setdefault(track.name, track)
        return track

    def _free_name(self, group: Group, name: str) -> str:
        inner = os.path.basename(group.folder)
        if group.kind == "tensorboard":
            of_several = name.replace("/", "_") + "_"  # as `add_scalars` calls their folders
            if inner.lower() in _SPLITS:
                name = inner + "/" + name
            elif inner.startswith(of_several):
                name = name + "/" + inner[len(of_several) :]
        taken = self._names.get(name)
        if taken is None or taken.group == group or taken.group.kind != group.kind:
            return name
        return (inner or group.kind) + "/" + name

    def _judge(self, track: Track) -> None:
        for other, evidence in list(track.partners.items()):
            verdict = evidence.verdict()
            if not verdict and is_same_run(track.recent, other.recent):
                verdict = True  # they count otherwise: from 0 or from 1, steps or epochs
            if verdict is None:
                continue
            _part(track, other)
            if verdict:
                ranked = sorted((track, other), key=lambda one: rank(one.group.kind))
                self._drop(ranked[1], ranked[0])
                if ranked[0].state == WAITING:
                    self._show(ranked[0])
                if ranked[1] is track:
                    return

    def _show(self, track: Track) -> None:
        if self._names.get(track.name) not in (None, track):
            track.name = "{} ({})".format(track.name, track.group.kind)
        self._names[track.name] = track
        track.state = LIVE
        for step, moment, value in track.waiting:
            self._write(track, step, moment, value)
        track.waiting = []

    def _drop(self, track: Track, same: Track) -> None:
        """It is told by another one."""
        track.state, track.waiting, track.recent = DROPPED, [], {}
        for other in list(track.partners):
            _part(track, other)
        names = [name for (group, name), one in self._tracks.items() if one is track]
        # Also what was told to be this one.
        renamed = [key for key, told in self._dropped.items() if told == track.name]
        self._dropped.update((key, same.name) for key in renamed)
        self._dropped.update((_key(track.group.kind, name), same.name) for name in names)
        if track.number >= 0:
            self.file.withdraw(track.number)
        if self._names.get(track.name) is track:
            del self._names[track.name]


def _key(kind: str, name: str) -> str:
    return kind + "\t" + name


def _is(one: float, other: Optional[float]) -> bool:
    return one == other or (other is not None and one != one and other != other)


def _part(one: Track, other: Track) -> None:
    one.partners.pop(other, None)
    other.partners.pop(one, None)


def _compare(track: Track, step: float, value: float) -> None:
    for other, evidence in track.partners.items():
        there = other.recent.get(step)
        if there is not None:
            evidence.count(agree(value, there))
