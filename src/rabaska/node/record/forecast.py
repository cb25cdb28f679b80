"""When a run will be over: how many jobs it needs, from what one job has shown so far.

Pure. A program that saves once in an epoch keeps whole epochs only: of 4 hours, with 5 minutes to
start and 50 minutes for each epoch, 4 are kept and not 4.7.
"""

import math
import re
from typing import List, NamedTuple, Optional, Tuple

from ..files import Json
from . import chain_rule, metrics

EPOCH, STEP = "epoch", "step"
_A_MOMENT = 0.1  # seconds, in which nothing is trained
_NO_END = 60 * 86400.0  # seconds: an epoch that takes longer is no epoch, but a stream
_TOO_FAR = 366 * 86400.0  # seconds: what is foretold for then is worth nothing
_SPARE = 1.1  # of the time that was measured: a slower node, a full disk
_SAVES = 4  # in a job, so that losing what came after the last one does not hurt
_NEARLY = 0.05  # an interval that differs less from whole epochs is meant to be one
# What programs call how many epochs, or steps, they shall make: `--epochs 40`, `max_epochs=40`.
_ASKED = re.compile(
    r"[-+]*(?:\w+\.)*(?:(?:n|nb|num|max|total|num[-_]train)[-_])?"
    r"(?:(?P<epoch>epochs?)|(?P<step>steps|iterations|iters|updates))(?:=(?P<number>\d+))?",
    re.IGNORECASE,
)


class Pace(NamedTuple):
    """How far the run is and how fast it goes, as one job shows."""

    unit: str
    done: float  # units of the whole run
    at: float  # when that was so, seconds since 1970
    seconds: float  # for one unit
    began: float  # when training began in this job
    total: Optional[float] = None
    save_every: Optional[float] = None  # seconds; None when no save was seen, 0 when asked to
    step: Optional[float] = None  # seconds for a step, where that is known


class Terms(NamedTuple):
    """What the chain gives to a job."""

    job: int  # its number
    begun: float  # when it began, seconds since 1970
    start: float  # units that were done before it
    seconds: float  # that it has, until its program is asked to stop
    between: float = 0.0  # seconds from the end of one job to the beginning of the next
    grace: float = 0.0  # seconds more, for it to save when it is asked to stop
    queue: str = ""  # the one there whose jobs may take longest
    longest: Optional[float] = None  # seconds that they may take; None: not known, or no limit


class Forecast(NamedTuple):
    unit: str
    done: float
    total: Optional[float]
    seconds_each: float
    per_job: float  # units that a job keeps; whole ones for a program that saves at their end
    jobs: Optional[int]  # of the whole run
    finishes: Optional[float]  # seconds since 1970, with no waiting but what was seen so far
    stuck: str = ""  # why the chain cannot advance
    hint: str = ""


def asked_for(command: List[str], unit: str) -> Optional[float]:
    """How many epochs, or steps, the words of a command ask for."""
    for word, following in zip(command, command[1:] + [""]):
        match = _ASKED.fullmatch(word)
        if match is None or not match.group(unit) or not (word[0] == "-" or match.group("number")):
            continue
        number = match.group("number") or following
        if number.isdigit() and int(number) > 0:
            return float(number)
    return None


def pace(lines: List[Json], start: float, command: List[str]) -> Optional[Pace]:
    """What the lines of a job in metrics.jsonl show; None when that is too little."""
    own = metrics.watched(lines)
    printed = [line for line in lines if "at" in line]
    if own:
        return _of_watched(own[-1], start, command)
    return _of_log(printed[-1], command) if printed else None


def _of_watched(line: Json, start: float, command: List[str]) -> Optional[Pace]:
    spent = line["time"] - line["began"]
    epochs = line["batches"] / line["length"] if line.get("length") else line["epochs"]
    if spent <= 0 or epochs <= 0:
        return None
    # The first batch of all takes longer than others, and tells nothing of them.
    warm = "each" in line and line.get("length")
    seconds = line["each"] * line["length"] if warm else spent / epochs
    if seconds > _NO_END:
        return None
    saves = line.get("saves", 0)
    every = (line["saved"] - line["began"]) / saves if saves else None
    if line.get("anywhere"):
        every = 0.0
    return Pace(
        unit=EPOCH,
        done=metrics.epoch_of(line, start),
        at=line["time"],
        seconds=seconds,
        began=line["began"],
        total=line.get("total") or asked_for(command, EPOCH),
        save_every=every,
        step=line.get("each"),
    )


def _of_log(line: Json, command: List[str]) -> Optional[Pace]:
    made, spent = line["at"] - line["from"], line["time"] - line["since"]
    if made <= 0 or spent <= 0:
        return None
    total = line.get("total") or asked_for(command, line["unit"])
    return Pace(line["unit"], line["at"], line["time"], spent / made, line["since"], total)


def after(seen: Pace, terms: Terms, kept: float, ended: float) -> Tuple[Pace, Terms]:
    """The same pace, for the job that comes after one that left `kept` units behind."""
    begins = ended + terms.between
    begun = begins + max(0.0, seen.began - terms.begun)
    following = terms._replace(job=terms.job + 1, begun=begins, start=kept)
    return seen._replace(done=kept, at=begun, began=begun), following


def forecast(seen: Pace, terms: Terms, saved: bool = False) -> Forecast:
    """`saved`: the job has left a checkpoint, of which nothing but its file is known."""
    usable = terms.seconds - max(0.0, seen.began - terms.begun)
    every = seen.save_every
    if every is None and saved and seen.unit == EPOCH:
        every = seen.seconds  # seldom more often, where nothing was seen but a file
    kept = per_job(usable, seen.seconds, every)
    jobs, finishes = _end(seen, terms, kept)
    outlook = Forecast(
        seen.unit, seen.done, seen.total, seen.seconds, round(kept, 3), jobs, finishes
    )
    ends = finishes is not None and jobs == terms.job
    return outlook if ends else _warned(outlook, seen, terms, every)


def in_one_job(outlook: Forecast, seen: Pace, terms: Terms, why: str) -> Forecast:
    """The same for a program that begins each job with the first step: more jobs do not help."""
    if outlook.finishes is not None and outlook.jobs == terms.job:
        return outlook
    outlook = outlook._replace(jobs=None, finishes=None)
    has = "a job has {} for training".format(_said(_usable(seen, terms)))
    if seen.total is None:
        return outlook._replace(hint=chain_rule.ALL_IN_ONE) if outlook.stuck else outlook
    every = seen.total * seen.seconds
    needed = max(0.0, seen.began - terms.begun) + _SPARE * every + terms.grace
    hint = "ask for one job of {}: `--walltime {}`; or make the program load its checkpoint".format(
        _said(needed), _walltime(needed)
    )
    if terms.longest is not None and needed > terms.longest:
        hint = "one job of {} would do, but {}: make the program load its checkpoint".format(
            _said(needed), _longest(terms)
        )
    return outlook._replace(
        stuck="the whole training takes {}, and {}; {}".format(_said(every), has, why), hint=hint
    )


def _usable(seen: Pace, terms: Terms) -> float:
    """Seconds of a job that are spent on training."""
    return max(0.0, terms.seconds - max(0.0, seen.began - terms.begun))


def shortage(outlook: Forecast, submitted: int) -> str:
    """Why the chain is too short, in words."""
    pace = "{} for each {}".format(_said(outlook.seconds_each), outlook.unit)
    were = "was" if submitted == 1 else "were"
    return "with {} it takes {} jobs, and {} {} submitted".format(
        pace, outlook.jobs, submitted, were
    )


def per_job(usable: float, seconds: float, every: Optional[float]) -> float:
    """Units that outlive a job of which `usable` seconds are spent on training."""
    if usable < _A_MOMENT:
        return 0.0
    if every is None or every <= 0:
        return usable / seconds  # it may save when it is asked to stop
    units = every / seconds
    if round(units) >= 1 and abs(units - round(units)) <= _NEARLY * units:
        units = float(round(units))
    return math.floor(usable / (units * seconds)) * units


def _end(seen: Pace, terms: Terms, kept: float) -> Tuple[Optional[int], Optional[float]]:
    """The number of the last job, and when it will be done."""
    if seen.total is None:
        return None, None
    left = max(0.0, seen.total - seen.done) * seen.seconds
    if left > _TOO_FAR:
        return None, None
    if seen.at + left <= terms.begun + terms.seconds:
        return terms.job, seen.at + left
    if kept <= 0:
        return None, None
    more = max(1, math.ceil((seen.total - terms.start) / kept - 1e-6) - 1)
    last = seen.total - terms.start - more * kept
    begins = terms.begun + more * (terms.seconds + terms.between)
    starting = max(0.0, seen.began - terms.begun)
    return terms.job + more, begins + starting + last * seen.seconds


def _warned(outlook: Forecast, seen: Pace, terms: Terms, every: Optional[float]) -> Forecast:
    """With a word on what keeps the chain from advancing, where something does."""
    usable = _usable(seen, terms)
    has = "a job has {} for training".format(_said(usable))
    if every is not None and every > usable:
        why = "it saves every {}, and {}".format(_said(every), has)
        return outlook._replace(stuck=why, hint=remedy(seen, terms, every))
    if every is None and outlook.unit == EPOCH and outlook.seconds_each > usable:
        why = "one epoch takes {}, and {}".format(_said(outlook.seconds_each), has)
        return outlook._replace(stuck=why, hint=remedy(seen, terms, outlook.seconds_each))
    return outlook


def remedy(seen: Pace, terms: Terms, every: float) -> str:
    """What to do about saves that come every so many seconds, which is more than a job has."""
    starting = max(0.0, seen.began - terms.begun)
    usable = max(0.0, terms.seconds - starting)
    save = "save more often than once in {}".format(_said(usable))
    if seen.step and usable > _SAVES * seen.step:
        save = "save every {} steps or so".format(_round(usable / _SAVES / seen.step))
    needed = starting + _SPARE * every + terms.grace
    if terms.longest is None or needed <= terms.longest:
        longest = ", as the queue `{}` allows".format(terms.queue) if terms.queue else ""
        return "{}, or ask for jobs of {}: `--walltime {}`{}".format(
            save, _said(needed), _walltime(needed), longest
        )
    return "{}; jobs of {} would do, but {}".format(save, _said(needed), _longest(terms))


def _longest(terms: Terms) -> str:
    longest = _said(terms.longest or 0.0)
    return "the longest queue there, `{}`, ends after {}".format(terms.queue, longest)


def _round(number: float) -> int:
    """Down to one digit and zeros: nobody counts 4,711 steps."""
    zeros = 10 ** int(math.log10(number))
    return int(number // zeros * zeros)


def _walltime(seconds: float) -> str:
    """As `--walltime` takes it, rounded up."""
    whole = math.ceil(round(seconds, 3))
    minutes = math.ceil(whole / 60)
    if minutes < 2:
        return "{}s".format(whole)
    return "{}m".format(minutes) if minutes < 600 else "{}h".format(math.ceil(minutes / 60))


def _said(seconds: float) -> str:
    if seconds < 10:
        return "{:.2g} s".format(seconds)
    if seconds < 120:
        return "{:.0f} s".format(seconds)
    if seconds < 7200:
        return "{:.0f} min".format(seconds / 60)
    return "{:.1f} h".format(seconds / 3600)
