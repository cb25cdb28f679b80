"""Charts of a search as SVG: parallel coordinates, history, curves, slices, importance.

Each trial has its number in `data-trial`, in all charts: a page can light it up in each of them.
"""

import math
from collections.abc import Callable, Iterator, Sequence

from rabaska.domain.search import FINISHED
from rabaska.pages.axes import Axis, axis_for, said
from rabaska.pages.visible_text import escaped
from rabaska.views.search_charts import CHOICE, LOG, Scale, SearchCharts, TrialPoint, metric_scale

_WIDTH, _HEIGHT = 640, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 14, 30
_WIDE, _TALL = 1000, 360
_EDGE, _CEILING, _FLOOR = 60, 44, 46  # of parallel coordinates
_NOT_SET = _TALL - 14  # where a line passes an axis of which its trial has no value
_SHADES = 10  # classes q0 … q9 of the style sheet, from the worst to the best
_BAR = 24  # height of a parameter in the chart of importance
_LONG = 22  # letters of a name or a value at an axis
_MOST_POINTS = 200  # of one trial's curve


def parallel_svg(charts: SearchCharts, links: str = "") -> str:
    """A line for each trial, through its values and what it reached.

    `links` is the beginning of the address of a trial, which its number ends; "": no links.
    """
    scales = [*charts.parameters, charts.metric]
    gap = (_WIDE - 2 * _EDGE) / max(1, len(scales) - 1)
    lines = [_EDGE + place * gap for place in range(len(scales))]
    parts = []
    for point in charts.points:
        heights = [*point.places, point.height]
        at = [
            f"{x:.0f} {_NOT_SET if height is None else _tall(height):.1f}"
            for x, height in zip(lines, heights, strict=True)
            if height is not None or x != lines[-1]
        ]
        if len(at) > 1:
            places = ",".join("" if one is None else f"{one:.3f}" for one in heights)
            path = (
                f'<path class="trial {_shade(point)}" data-trial="{point.trial.number}" '
                f'data-places="{places}" d="M{"L".join(at)}">{_title(point, charts)}</path>'
            )
            parts.append(_linked(path, point, links))
    for place, x in enumerate(lines[:-1]):
        if any(point.places[place] is None for point in charts.points):
            parts.append(_mark(x, _NOT_SET + 13, "not set"))
    for place, (x, scale) in enumerate(zip(lines, scales, strict=True)):
        parts += _upright(x, scale, place, is_last=place == len(scales) - 1)
    return _svg(_WIDE, _TALL, "parallel", "parallel coordinates: a line for each trial", parts)


def _tall(share: float) -> float:
    return _TALL - _FLOOR - share * (_TALL - _CEILING - _FLOOR)


def _upright(x: float, scale: Scale, place: int, *, is_last: bool) -> Iterator[str]:
    top, bottom = _tall(1.0), _tall(0.0)
    yield f'<line class="axis" x1="{x:.0f}" y1="{top}" x2="{x:.0f}" y2="{bottom}"/>'
    name = escaped(_short(scale.name) + (" (log)" if scale.kind == LOG else ""))
    yield f'<text class="name" x="{x:.0f}" y="{_CEILING - 20}" text-anchor="middle">{name}</text>'
    anchor, aside = ("start", 6) if not is_last else ("end", -6)
    for share, words in _marks(scale, _TALL - _CEILING - _FLOOR):
        yield (
            f'<text class="mark halo" x="{x + aside:.0f}" y="{_tall(share) + 4:.1f}" '
            f'text-anchor="{anchor}">{words}</text>'
        )
    # What a pointer takes hold of, to choose a range.
    yield (
        f'<rect class="hold" data-axis="{place}" data-top="{top}" data-bottom="{bottom}" '
        f'x="{x - 14:.0f}" y="{top - 4}" width="28" height="{bottom - top + 8}"/>'
    )


def _marks(scale: Scale, length: float, most: int = 5) -> Iterator[tuple[float, str]]:
    """Places from 0 to 1, with what is written there; it is escaped."""
    if scale.kind == CHOICE:
        for choice in scale.choices[:30]:
            yield scale.place(choice) or 0.0, escaped(_short(choice))
        return
    if scale.low == scale.high:
        yield 0.5, said(scale.low)
        return
    axis = Axis(scale.low, scale.high, length, scale.kind == LOG)
    for value in axis.marks(most):
        yield axis.place(value) / length, said(value)


def _short(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"


def history_svg(charts: SearchCharts, ends: dict[int, int], links: str = "") -> str:
    """What each trial reached, in the order in which they ended, and the best so far."""
    x = axis_for([1, max(ends.values(), default=1)], _WIDTH - _LEFT - _RIGHT)
    parts = [*_frame(x, charts.metric, "trials that ended")]
    for point in charts.points:
        if point.height is not None and point.trial.number in ends:
            at = _LEFT + x.place(ends[point.trial.number])
            parts.append(_dot(point, at, charts, links))
    if charts.history:
        steps, before = [], 0.0
        for count, best in charts.history:
            across, high = _LEFT + x.place(count), _high(charts.metric.place(best) or 0.0)
            steps += [f"{across:.1f} {before or high:.1f}", f"{across:.1f} {high:.1f}"]
            before = high
        parts.append(f'<path class="line c1" d="M{"L".join(steps)}"/>')
    return _svg(_WIDTH, _HEIGHT, "history", "history of the best value", parts)


def curves_svg(charts: SearchCharts, links: str = "") -> str:
    """The metric of each trial as it reported it, over each other; the best on top."""
    told = [point for point in charts.points if point.trial.curve]
    x = axis_for([at for one in told for at, _ in one.trial.curve], _WIDTH - _LEFT - _RIGHT)
    reported = [value for one in told for _, value in one.trial.curve]
    scale = metric_scale(charts.metric.name, [one for one in reported if math.isfinite(one)])
    parts = [*_frame(x, scale, "reports")]
    for point in told:
        at = [
            f"{_LEFT + x.place(step):.1f} {_high(height):.1f}"
            for step, value in _thinned(point.trial.curve)
            if (height := scale.place(value)) is not None
        ]
        if at:
            dot = "h0" if len(at) == 1 else ""
            path = (
                f'<path class="trial {_shade(point)}" data-trial="{point.trial.number}" '
                f'd="M{"L".join(at)}{dot}"/>'
            )
            parts.append(_linked(path, point, links))
    return _svg(_WIDTH, _HEIGHT, "curves", f"{charts.metric.name} of each trial", parts)


def _thinned(curve: Sequence[tuple[int, float]]) -> Sequence[tuple[int, float]]:
    every = max(1, len(curve) // _MOST_POINTS)
    return curve if every == 1 else [*curve[::every], curve[-1]]


def slice_svg(charts: SearchCharts, place: int, links: str = "") -> str:
    """What trials reached, over their values of one parameter."""
    scale, length = charts.parameters[place], _WIDTH - _LEFT - _RIGHT
    parts = [*_across(charts.metric)]
    parts += [
        _mark(_LEFT + at * length, _HEIGHT - 14, words) for at, words in _marks(scale, length, 6)
    ]
    counts: dict[float, int] = {}
    for point in charts.points:
        share = point.places[place]
        if share is None or point.height is None:
            continue
        aside = 0.0
        if scale.kind == CHOICE:  # next to each other, so that they can be told apart
            turn = counts[share] = counts.get(share, 0) + 1
            aside = ((turn * 0.618) % 1 - 0.5) * 0.5 / len(scale.choices)
        parts.append(_dot(point, _LEFT + (share + aside) * length, charts, links))
    name = scale.name + (", log axis" if scale.kind == LOG else "")
    parts.append(_unit(name))
    return _svg(_WIDTH, _HEIGHT, "slice", f"{charts.metric.name} over {scale.name}", parts)


def importance_svg(charts: SearchCharts) -> str:
    """A bar for each parameter."""
    most = max((share for _, share in charts.importance), default=0.0) or 1.0
    length, parts = _WIDTH - 200 - 60, []
    for place, (name, share) in enumerate(charts.importance):
        top = place * _BAR
        parts.append(_mark(190, top + 16, escaped(_short(name)), "end"))
        width = max(1.0, share / most * length)
        parts.append(
            f'<rect class="share" x="200" y="{top + 5}" width="{width:.1f}" height="{_BAR - 10}"/>'
        )
        parts.append(_mark(206 + width, top + 16, f"{share:.0%}", "start"))
    height = max(1, len(charts.importance)) * _BAR
    return _svg(_WIDTH, height, "importance", "importance of each parameter", parts)


def _high(share: float) -> float:
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def _across(scale: Scale) -> Iterator[str]:
    right = _WIDTH - _RIGHT
    for share, words in _marks(scale, _HEIGHT - _TOP - _BOTTOM):
        at = _high(share)
        yield f'<line class="grid" x1="{_LEFT}" y1="{at:.1f}" x2="{right}" y2="{at:.1f}"/>'
        yield _mark(_LEFT - 6, at + 4, words, "end")
    bottom = _HEIGHT - _BOTTOM
    yield f'<line class="axis" x1="{_LEFT}" y1="{bottom}" x2="{right}" y2="{bottom}"/>'


def _frame(x: Axis, scale: Scale, unit: str) -> Iterator[str]:
    yield from _across(scale)
    for value in x.marks():
        if value == int(value):
            yield _mark(_LEFT + x.place(value), _HEIGHT - 14, said(value))
    yield _unit(unit + (", log axis" if scale.kind == LOG else ""))


def _unit(words: str) -> str:
    return (
        f'<text class="unit" x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 1}" text-anchor="end">'
        f"{escaped(words)}</text>"
    )


def _mark(x: float, y: float, words: str, anchor: str = "middle") -> str:
    return f'<text class="mark" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def _dot(point: TrialPoint, x: float, charts: SearchCharts, links: str) -> str:
    shape = "" if point.trial.state == FINISHED else " open"
    circle = (
        f'<circle class="trial {_shade(point)}{shape}" data-trial="{point.trial.number}" '
        f'cx="{x:.1f}" cy="{_high(point.height or 0.0):.1f}" r="4">'
        f"{_title(point, charts)}</circle>"
    )
    return _linked(circle, point, links)


def _title(point: TrialPoint, charts: SearchCharts) -> str:
    value = point.trial.value
    reached = f", {charts.metric.name} {value:.6g}" if value is not None else ""
    text = f"trial {point.trial.number}, {point.trial.state}{reached}: {point.words}"
    return f"<title>{escaped(text)}</title>"


def _linked(shape: str, point: TrialPoint, links: str) -> str:
    """Not in the order of the Tab key: the table has the same links."""
    return f'<a href="{links}{point.trial.number}" tabindex="-1">{shape}</a>' if links else shape


def _shade(point: TrialPoint) -> str:
    if point.rank is None:
        return "q0"
    best = " best" if point.rank >= 1.0 and point.trial.state == FINISHED else ""
    return f"q{min(_SHADES - 1, int(point.rank * _SHADES))}{best}"


def _svg(width: float, height: float, kind: str, label: str, parts: Sequence[str]) -> str:
    return (
        f'<svg class="chart {kind}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escaped(label)}">{"".join(parts)}</svg>'
    )


# By the names under which templates know them.
SEARCH_CHARTS: dict[str, Callable[..., str]] = {
    "parallel": parallel_svg,
    "history": history_svg,
    "trial_curves": curves_svg,
    "slice_of": slice_svg,
    "importance": importance_svg,
}
