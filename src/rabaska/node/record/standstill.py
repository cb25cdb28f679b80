"""Whether a job that left a newer checkpoint got any further than those before it.

A program may save whenever it ends: as it crashes, or because it is asked to stop while it waits
for a worker that hangs. Each of its jobs would leave another file with the same state in it. Only
what was counted tells then; where that does not tell, nothing is claimed.
"""

from typing import Dict, List, Optional

from . import chain_rule, jobs, metrics, printed_progress, step_tracks
from .run_folder import RunFolder
from .step_tracks import Track

_AFTER_ALL_ITS_TIME = (chain_rule.TIME_LIMIT, chain_rule.ASKED_TO_GO_ON)
_EXPECTED = 10.0  # numbers that a job would have printed, at the pace of an earlier one


def shown(run: RunFolder, job: int, pattern: str, own: List[Track], now: jobs.Ended) -> str:
    """What shows that the job, which ended as `now` says, got no further; "" if nothing does."""
    begun = jobs.read_begun(run, job)
    checkpoint = begun.checkpoint_seen if begun is not None else None
    if begun is None or checkpoint is None or now.checkpoint is None or not now.progressed:
        return ""
    if now.how not in (chain_rule.CRASHED,) + _AFTER_ALL_ITS_TIME:
        return ""
    if checkpoint["path"] != now.checkpoint["path"] or _has_stepped(run, job):
        return ""
    earlier = _earlier(run, job)
    furthest = _furthest(earlier)
    for mine in own:
        if mine.what in furthest and not _is_behind(mine, furthest[mine.what], now.how):
            return ""  # it counted further, or it cannot be told
    compared = [mine.what for mine in own if mine.what in furthest and not mine.weak]
    if compared:
        return _told(job, compared[0], furthest)
    if own or not _is_silent(run, job, pattern):
        return ""  # it counted something else
    spent = now.ended - begun.begun
    paces = _paces(run, earlier)
    enough = 0.0 if now.how == chain_rule.CRASHED else _EXPECTED
    telling = [what for what in paces if what in furthest and paces[what] * spent >= enough]
    return _told(job, telling[0], furthest) if telling else ""


def _told(job: int, what: str, furthest: Dict[str, float]) -> str:
    counted = what.partition(" in ")[0]
    return "job {} did not get beyond {} {:g}".format(job, counted, furthest[what])


def _has_stepped(run: RunFolder, job: int) -> bool:
    """Whether the program was watched as it made steps, whatever it printed."""
    lines = metrics.watched(metrics.tail(run, job))
    return bool(lines) and bool(lines[-1].get("steps"))


def _earlier(run: RunFolder, job: int) -> Dict[int, List[Track]]:
    tracks = {}  # type: Dict[int, List[Track]]
    for number in range(1, job):
        ended = jobs.read_ended(run, number)
        tracks[number] = step_tracks.from_json(ended.tracks) if ended is not None else []
    return tracks


def _furthest(earlier: Dict[int, List[Track]]) -> Dict[str, float]:
    """How far each thing was counted; of what is told once in a job nobody knows what it is."""
    furthest = {}  # type: Dict[str, float]
    for tracks in earlier.values():
        for track in tracks:
            furthest[track.what] = max(track.last[0], furthest.get(track.what, track.last[0]))
    often = {track.what for tracks in earlier.values() for track in tracks if track.seen > 1}
    return {what: last for what, last in furthest.items() if what in often}


def _is_behind(mine: Track, furthest: float, how: str) -> bool:
    """Whether it certainly counted no further.

    Steps within one epoch are not recorded, so an epoch that is the same may be further on. After
    all of its time, a counter that began lower may be one that begins again with each epoch.
    """
    if mine.what.startswith("epoch"):
        return mine.last[0] < furthest and how == chain_rule.CRASHED
    if how == chain_rule.CRASHED:
        return mine.last[0] <= furthest
    return mine.first[0] == mine.last[0] == furthest


def _is_silent(run: RunFolder, job: int, pattern: str) -> bool:
    """Whether its log tells no number at all: one that falls again gives no track, either."""
    span = printed_progress.span(run.log(job), pattern)
    return span.last_step is None and span.epoch is None


def _paces(run: RunFolder, earlier: Dict[int, List[Track]]) -> Dict[str, float]:
    """Numbers that a job printed in a second, at best."""
    pace = {}  # type: Dict[str, float]
    for number, tracks in earlier.items():
        seconds = _seconds(run, number)
        for track in [track for track in tracks if seconds and not track.weak]:
            pace[track.what] = max(track.seen / (seconds or 1.0), pace.get(track.what, 0.0))
    return pace


def _seconds(run: RunFolder, job: int) -> Optional[float]:
    begun, ended = jobs.read_begun(run, job), jobs.read_ended(run, job)
    if begun is None or ended is None or ended.ended <= begun.begun:
        return None
    return ended.ended - begun.begun
