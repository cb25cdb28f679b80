"""Charts and time lines as SVG, for a page that needs neither script nor network."""

import math
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import pairwise

from rabaska.domain.amounts import say_duration
from rabaska.domain.curves import Curve, smoothed, thinned
from rabaska.pages.axes import Axis, axis_for, said
from rabaska.pages.visible_text import escaped
from rabaska.views.report import Chart, moment
from rabaska.views.time_line import KINDS, JobBar

COLOURS = 8  # classes c0 … c7 of the style sheet

_WIDTH, _HEIGHT = 640, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 20, 16, 26
_WIDE = 1000  # of a time line
_POINTS = 700  # of a curve: more than the columns of a screen show nothing
_MANY = 120  # points from which a curve is drawn smoothed, over its own values
_WEIGHT = 0.8
_MOST_LINES = 16  # in one chart
_LONG_GAP = 12  # times as far apart as two points usually are
_FEW = 20
_ROW = 26  # height of a job in the time line


def chart_svg(chart: Chart) -> str:
    """The curves over steps; over time where any of them has none."""
    by_steps = all(curve.has_steps for _, curve in chart.curves)
    shown = [thinned(curve, _POINTS) for _, curve in chart.curves[:_MOST_LINES]]
    starts = [curve.times[0] for curve in shown if curve.times]
    across = [_across(curve, min(starts, default=0.0), by_steps=by_steps) for curve in shown]
    x = axis_for((v for one in across for v in one), _WIDTH - _LEFT - _RIGHT)
    y = axis_for(
        (v for one in shown for v in one.values), _HEIGHT - _TOP - _BOTTOM, may_be_log=True
    )
    parts = [*_frame(x, y, by_steps=by_steps)]
    for number, (curve, places) in enumerate(zip(shown, across, strict=True)):
        parts += _lines(curve, places, x, y, number % COLOURS)
    label = escaped(f"{chart.title}: {', '.join(name for name, _ in chart.curves[:4])}")
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">'
        f"{''.join(parts)}</svg>"
    )


def _across(curve: Curve, start: float, *, by_steps: bool) -> Sequence[float]:
    return curve.steps if by_steps else [at - start for at in curve.times]


def _frame(x: Axis, y: Axis, *, by_steps: bool) -> Iterator[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    for value in y.marks(5):
        at = bottom - y.place(value)
        yield f'<line class="grid" x1="{_LEFT}" y1="{at:.1f}" x2="{right}" y2="{at:.1f}"/>'
        yield _mark(_LEFT - 6, at + 4, said(value), "end")
    for value in x.marks():
        at = _LEFT + x.place(value)
        words = said(value) if by_steps else _lasted(value)
        yield _mark(at, _HEIGHT - 8, words)
    unit = "step" if by_steps else "time"
    scale = ", log axis" if y.is_log else ""
    yield f'<text class="unit" x="{right}" y="11" text-anchor="end">{unit}{scale}</text>'
    yield f'<line class="axis" x1="{_LEFT}" y1="{bottom}" x2="{right}" y2="{bottom}"/>'


def _mark(x: float, y: float, words: str, anchor: str = "middle") -> str:
    return f'<text class="mark" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def _lines(curve: Curve, across: Sequence[float], x: Axis, y: Axis, colour: int) -> Iterator[str]:
    many = len(curve) >= _MANY
    alone = len(curve) == 1
    how = " faint" if many else " alone" if alone else ""
    yield _line(across, curve.values, x, y, f"c{colour}{how}")
    if many:
        yield _line(across, smoothed(curve.values, _WEIGHT), x, y, f"c{colour}")


def _line(across: Sequence[float], values: Sequence[float], x: Axis, y: Axis, classes: str) -> str:
    """A path that is broken where a value is no finite number, and where there is long none."""
    gap = _gap(across)
    words, pen, last = [], "M", -math.inf
    for position, value in zip(across, values, strict=True):
        if not math.isfinite(value) or not math.isfinite(position) or (y.is_log and value <= 0):
            pen = "M"
            continue
        if position - last > gap:
            pen = "M"
        last = position
        at = _LEFT + x.place(position), _HEIGHT - _BOTTOM - y.place(value)
        # A line of no length is drawn as a dot, for a point that no other follows.
        words.append(f"{pen}{at[0]:.1f} {at[1]:.1f}{'h0' if pen == 'M' else ''}")
        pen = "L"
    return f'<path class="line {classes}" d="{"".join(words)}"/>'


def _gap(across: Sequence[float]) -> float:
    """Between two points, so that no line joins them: a node tells nothing between two jobs."""
    steps = sorted(later - earlier for earlier, later in pairwise(across))
    return max(_LONG_GAP * steps[len(steps) // 2], 0.0) if len(steps) > _FEW else math.inf


def time_line_svg(bars: Sequence[JobBar]) -> str:
    """A row for each job; the colours are those of `KINDS`, in their order."""
    if not bars:
        return ""
    height = _ROW * len(bars) + _BOTTOM
    start, end = min(bar.start for bar in bars), max(bar.end for bar in bars)
    x = axis_for([start, end], _WIDE - _LEFT - _RIGHT)
    parts: list[str] = []
    for row, bar in enumerate(bars):
        parts += _bar(bar, row * _ROW, x)
    said_before = ""
    for value in axis_for([0.0, end - start], x.length).marks():
        at = _LEFT + (value / (end - start) * x.length if end > start else 0)
        if _lasted(value) != said_before:  # a job of a second has no other words for its parts
            said_before = _lasted(value)
            parts.append(_mark(at, height - 8, said_before))
    label = f"time line of {len(bars)} jobs, from {moment(start)} to {moment(end)}"
    return (
        f'<svg class="chart timeline" viewBox="0 0 {_WIDE} {height}" role="img" '
        f'aria-label="{label}">{"".join(parts)}</svg>'
    )


def _bar(bar: JobBar, top: int, x: Axis) -> Iterator[str]:
    middle = top + _ROW / 2
    yield _mark(_LEFT - 6, middle + 4, f"job {bar.job}", "end")
    for one in bar.stretches:
        left, right = (_LEFT + x.place(at) for at in (one.start, one.end))
        title = escaped(f"job {bar.job}: {one.kind} {_lasted(one.seconds)}, {moment(one.start)}")
        yield (
            f'<rect class="k{KINDS.index(one.kind)}" x="{left:.1f}" y="{top + 5}" '
            f'width="{max(0.8, right - left):.1f}" height="{_ROW - 10}">'
            f"<title>{title}</title></rect>"
        )
    at = _LEFT + x.place(bar.end)
    title = escaped(f"job {bar.job} ended: {bar.ended}. {bar.reason}".rstrip(". "))
    yield (
        f'<circle class="end {bar.tone}" cx="{at:.1f}" cy="{middle}" r="5">'
        f"<title>{title}</title></circle>"
    )


def _lasted(seconds: float) -> str:
    try:
        return say_duration(timedelta(seconds=seconds))
    except (OverflowError, ValueError):
        return f"{seconds:g} s"  # as a node may tell whose clock is broken
