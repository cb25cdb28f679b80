"""When a run will be over, from what its folder tells: the facts for `forecast`."""

import os
from typing import List, Optional

from ..files import Json
from ..record import forecast, links, metrics
from ..record.plan import Plan
from ..record.runfolder import RunFolder
from .submission import submissions


def outlook(
    run: RunFolder, asked: Optional[Plan], lines: List[Json], saved: Optional[Json]
) -> Optional[Json]:
    """The forecast from the last link's `lines` in metrics.jsonl; None when nobody can tell."""
    link = run.holder()
    begun, ended = links.read_begun(run, link), links.read_ended(run, link)
    if asked is None or begun is None or os.path.exists(run.done):
        return None
    start = _start(begun, lines)
    seen = forecast.pace(lines, start, asked.command)
    if seen is None:
        return None
    if seen.unit == forecast.STEP:
        start = float(lines[-1].get("from", 0.0))
    # What a job spends before its link begins, it will spend in the next one, too.
    until = begun.until or begun.begun + asked.walltime - asked.grace
    seconds, between = until - begun.begun, _between(run, link)
    terms = forecast.Terms(link, begun.begun, start, seconds, between)
    if ended is not None:
        kept = _kept(lines, start, saved) if seen.unit == forecast.EPOCH else seen.done
        seen, terms = forecast.after(seen, terms, kept, ended.ended)
    progressed = links.progressed(begun.checkpoint_seen, saved)
    told = forecast.forecast(seen, terms, progressed)
    return dict(told._asdict(), links_there=_links_there(run))


def _start(begun: links.Begun, lines: List[Json]) -> float:
    if begun.epoch is not None:
        return begun.epoch
    told = metrics.watched(lines)
    return float(told[-1].get("first_epoch") or 0) if told else 0.0


def _kept(lines: List[Json], start: float, saved: Optional[Json]) -> float:
    return start if saved is None else metrics.epoch_at(lines, saved["mtime_ns"] / 1e9, start)


def _between(run: RunFolder, link: int) -> float:
    """Seconds from the end of one link to the beginning of the next: the median so far."""
    waits: List[float] = []
    for number in range(1, link):
        ended, following = links.read_ended(run, number), links.read_begun(run, number + 1)
        if ended is not None and following is not None:
            waits.append(max(0.0, following.begun - ended.ended))
    return sorted(waits)[len(waits) // 2] if waits else 0.0


def _links_there(run: RunFolder) -> int:
    """The number of the last link that was submitted."""
    last = 0
    for each in submissions(run):
        if each.get("exit_code") == 0:
            before = last if each.get("after") else int(each.get("after_link") or 0)
            last = before + int(each.get("links") or 1)
    return last
