"""The page of one run as lines that fit a width and a height, whatever these are."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from rich.text import Text

from rabaska.domain.amounts import say_duration, say_size
from rabaska.domain.curves import Curve, smoothed, thinned
from rabaska.domain.runs import RunStatus
from rabaska.journeys.watch import Seen
from rabaska.screen.safe_text import line, log_lines, painted
from rabaska.views import chain_line, forecast, phases
from rabaska.views.plot import Look, bar, number, plot, spark
from rabaska.views.runs import JobRow, run_view
from rabaska.views.watched import age_of, main_curve, progress_of

_SMOOTHING = 0.9
_FRESH = 15.0  # seconds
_JOBS_SHOWN = 3
_TWO = 76  # columns in which two measurements have room
_ORDER_OF_GPU = ("use", "memory", "power", "temperature", "errors", "throttled", "clock")
_ORDER = ("cores used", "memory used", "cores of workers", "bytes read", "bytes written")
_NARROW = 40  # columns: a state is worth more than a name
_LETTERS = {chain_line.WAITS: "░", chain_line.STARTS: "▒", chain_line.TRAINS: "█"}
_PLAIN = {chain_line.WAITS: ".", chain_line.STARTS: "-", chain_line.TRAINS: "#"}
_JOB_TONES = {"running": "active", "finished": "good"}


@dataclass(frozen=True)
class Choice:
    """What somebody chose to see."""

    curve: str = ""  # "": the first one
    by_time: bool = False
    smooth: bool = False
    look: Look = field(default_factory=Look)


def run_lines(seen: Seen, choice: Choice, *, width: int, height: int, now: float) -> list[Text]:
    """At most `height` lines; what matters less is left out first."""
    run = seen.run
    if run is None:
        why = seen.trouble or f"asking {seen.record.cluster} …"
        return [painted(seen.record.name, "strong"), line(width, [(why, "dim")])][:height]
    head = [*_head(seen, run, width, now)]
    chain = [*_chain(run, width, choice)]
    vitals = [*_vitals(seen, width, choice)]
    notes = [*_notes(run, width)]
    tail = log_lines(run.tail)
    left = height - len(head)
    shares = _shares(left, [len(chain), 9, len(vitals), len(notes), len(tail) + 1])
    curve = _curve(seen, choice, width, shares[1] + max(0, left - sum(shares)))
    log = [line(width, [("─ log ".ljust(width, "─"), "dim")])] if shares[4] > 1 else []
    room = shares[4] - len(log)
    log += [line(width, [(text, "")]) for text in (tail[-room:] if room > 0 else [])]
    parts = [chain[: shares[0]], curve, vitals[: shares[2]], notes[: shares[3]], log]
    return [*head, *(text for part in parts for text in part)][: max(0, height)]


def _shares(left: int, wanted: Sequence[int]) -> list[int]:
    """Lines for chain, curve, vitals, notes and log: a few for each, then more of the rest."""
    least = [2, 4, 2, 1, 3]
    given = [0] * len(wanted)
    for limits in (least, wanted):
        for place, limit in enumerate(limits):
            more = max(0, min(limit, wanted[place]) - given[place])
            more = min(more, max(0, left))
            given[place] += more
            left -= more
    return given


def _head(seen: Seen, run: RunStatus, width: int, now: float) -> Iterator[Text]:
    view = run_view(run)
    age = age_of(seen, now, _FRESH)
    name = [(run.name, "strong"), (f" on {run.cluster}", "")]
    state = [(view.state, view.tone)]
    old = f"  {age}" if age else ""
    old += f": {seen.trouble}" if seen.trouble else ""
    first, second = (name, state) if width >= _NARROW else (state, name)
    yield line(width, [*first, ("  ", ""), *second, (old, "caution")])
    doing = " · ".join(part for part in (run.reason, phases.now(run)) if part)
    if doing:
        yield line(width, [(doing, "bad" if view.tone == "bad" else "")])
    if run.hint:
        yield line(width, [(f"hint: {run.hint}", "")])
    share, words = progress_of(run)
    told = forecast.expected(run.forecast) if run.forecast and not run.state.over else ""
    if share is not None:
        filled = bar(share, min(30, width // 3))
        rest = f" {share:.0%} {told or words}"
        yield line(width, [(filled, view.tone), (rest, "")])
    elif told or words:
        yield line(width, [(told or words, "")])


def _chain(run: RunStatus, width: int, choice: Choice) -> Iterator[Text]:
    parts = chain_line.stretches(run)
    view = run_view(run)
    tones = {job.number: _job_tone(job) for job in view.jobs}
    letters = _PLAIN if choice.look.ascii else _LETTERS
    if parts:
        total = say_duration(timedelta(seconds=round(sum(part.seconds for part in parts))))
        room = width - len(total) - 1
        drawn = [
            (letters[piece.kind] * piece.width, _tone(piece, tones))
            for piece in chain_line.pieces(parts, room)
        ]
        yield line(width, [*drawn, (f" {total}", "dim")])
    for job in view.jobs[-_JOBS_SHOWN:][::-1]:
        start = f", from {job.started_from}" if job.started_from else ""
        steps = f", steps {job.steps}" if job.steps else ""
        where = f" on {job.node}" if job.node else ""
        text = f"job {job.number}{where} {job.time}: "
        yield line(width, [(text, ""), (job.state, _job_tone(job)), (f"{steps}{start}", "dim")])
    earlier = len(view.jobs) - _JOBS_SHOWN
    if earlier > 0:
        yield line(width, [(f"and {earlier} before", "dim")])


def _tone(piece: chain_line.Piece, tones: dict[int, str]) -> str:
    return tones.get(piece.job, "waiting") if piece.kind == chain_line.TRAINS else "dim"


def _job_tone(job: JobRow) -> str:
    return _JOB_TONES.get(job.state, "bad" if job.state.startswith("crashed") else "caution")


def _curve(seen: Seen, choice: Choice, width: int, height: int) -> list[Text]:
    if height < 1 or not seen.curves:
        return []
    names = list(seen.curves)
    name = choice.curve if choice.curve in names else main_curve(names)
    curve = thinned(seen.curves[name], max(16, 4 * width), by_time=choice.by_time)
    values = smoothed(curve.values, _SMOOTHING) if choice.smooth else curve.values
    by_time = choice.by_time or not curve.has_steps
    began = curve.times[0] if len(curve) else 0.0
    xs = [moment - began for moment in curve.times] if by_time else curve.steps
    words = [f"{name}"]
    words += [f"{number(curve.values[-1])}"] if len(curve) else []
    words += [
        word for word, is_so in (("smoothed", choice.smooth), ("log", choice.look.log)) if is_so
    ]
    place = f"{names.index(name) + 1}/{len(names)}" if len(names) > 1 else ""
    title = line(width, [("─ ", "dim"), ("  ".join(words), "strong"), (f"  {place} ", "dim")])
    title.append("─" * max(0, width - title.cell_len), "dim")
    unit = "seconds" if by_time else "step"
    drawn = plot(xs, values, width=width, height=height - 1, look=choice.look, unit=unit)
    return [title, *(line(width, [(text, "active")]) for text in drawn)]


def _vitals(seen: Seen, width: int, choice: Choice) -> Iterator[Text]:
    """What nodes measured, two to a line where there is room; GPUs first."""
    measured = [
        (node, name, curve)
        for node, vitals in seen.vitals.items()
        for name, curve in vitals.items()
        if len(curve)
    ]
    measured.sort(key=lambda one: _weight(one[1]))
    across = 2 if width >= _TWO else 1
    room = width // across
    cells = [_vital(*one, room - 1, plain=choice.look.ascii) for one in measured]
    for place in range(0, len(cells), across):
        whole = Text(no_wrap=True, overflow="crop", end="")
        for cell in cells[place : place + across]:
            whole.pad_right(max(0, room * (whole.cell_len > 0) - whole.cell_len))
            whole.append_text(cell)
        yield whole


def _weight(name: str) -> int:
    """The place of a measurement in the list: what people look at first is first."""
    what = name.partition(" ")[2] if name.startswith("gpu") else name
    known = (*_ORDER_OF_GPU, *_ORDER) if name.startswith("gpu") else _ORDER
    shift = 0 if name.startswith("gpu") else len(_ORDER_OF_GPU)
    return shift + known.index(what) if what in known else 100


def _vital(node: str, name: str, curve: Curve, width: int, *, plain: bool) -> Text:
    full, room = 1.0 if curve.source == "fraction" else None, min(12, width // 4)
    history = "" if plain else spark(curve.values[-200:], room, full=full)
    value = _amount(curve.values[-1], "" if name.endswith(curve.source) else curve.source)
    return line(width, [(f"{node} {name} ", "dim"), (value, ""), (f" {history}", "active")])


def _amount(value: float, unit: str) -> str:
    if not math.isfinite(value):
        return "?"
    if unit == "fraction":
        return f"{value:.0%}"
    if unit.startswith("bytes"):
        return say_size(int(value)) + unit.removeprefix("bytes")
    return f"{number(value)} {unit}".strip()


def _notes(run: RunStatus, width: int) -> Iterator[Text]:
    if run.checkpoint:
        age = say_duration(timedelta(seconds=max(0.0, run.now - run.checkpoint.written)))
        size = say_size(run.checkpoint.size)
        text = f"newest valid checkpoint: {run.checkpoint.path} ({size}, {age} old)"
        yield line(width, [(text, "")])
    for remark in run_view(run).remarks:
        if remark.tone:
            yield line(width, [(str(remark), "caution")])
            if remark.hint:
                yield line(width, [(f"  hint: {remark.hint}", "")])
