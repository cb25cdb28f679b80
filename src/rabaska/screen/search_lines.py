"""The charts of a search as lines that fit a width and a height."""

import math
from collections.abc import Iterator, Sequence

from rich.text import Text

from rabaska.screen.safe_text import TONES, cut, harmless, line
from rabaska.views.plot import Look, Points, bar, dots, letter, number
from rabaska.views.search_charts import CHOICE, LOG, Scale, SearchCharts
from rabaska.views.search_report import SearchReport

_NAME = 16  # letters of a parameter
_MOST_LINES = 300  # trials, the best of all: more would fill the screen


def chart_names(charts: SearchCharts) -> list[str]:
    """What can be shown, in the order of the keys ← and →."""
    fixed = ["parallel coordinates", "best so far", "curves of the trials", "importance"]
    fixed = [name for name in fixed if name != "best so far" or charts.history]
    return [*fixed, *(f"{charts.metric.name} over {scale.name}" for scale in charts.parameters)]


def head_lines(report: SearchReport, age: str, width: int) -> Iterator[Text]:
    old = f"  {age}: {report.trouble}" if report.trouble else ""
    name = [(report.name, "strong"), (f" on {report.cluster}  ", ""), (report.state, report.tone)]
    yield line(width, [*name, (old, "caution")])
    for text in report.lines:
        yield line(width, [(text, "")])


def chart_lines(
    charts: SearchCharts, name: str, *, width: int, height: int, look: Look | None = None
) -> list[Text]:
    """At most `height` lines, the first with the name of the chart."""
    look = look or Look()
    if height < 1:
        return []
    title = line(width, [("─ ", "dim"), (f"{name} ", "strong")])
    title.append("─" * max(0, width - title.cell_len), "dim")
    room = height - 1
    if name == "parallel coordinates":
        drawn = _parallel(charts, width, room, look)
    elif name == "best so far":
        drawn = _over(charts, [charts.history], [], width, room, look, "trials that ended")
    elif name == "curves of the trials":
        curves = [_finite(one.trial.curve) for one in charts.points[-_MOST_LINES:]]
        drawn = _over(charts, curves[-1:], curves[:-1], width, room, look, "reports")
    elif name == "importance":
        drawn = _importance(charts, width)
    else:
        drawn = _slice(charts, name, width, room, look)
    return [title, *drawn][:height]


def _finite(curve: Sequence[tuple[float, float]]) -> Points:
    return [(float(at), value) for at, value in curve if math.isfinite(value)]


def _parallel(charts: SearchCharts, width: int, height: int, look: Look) -> list[Text]:
    """A line for each trial; the best is bright."""
    scales = [*charts.parameters, charts.metric]
    ends = len(scales) - 1
    frame = [(0.0, 0.0), (float(ends), 1.0)]  # so that all have one scale
    lines = [list(_unbroken((*one.places, one.height))) for one in charts.points[-_MOST_LINES:]]
    rows = height - 3
    if rows < 1 or not lines:
        return _names(scales, width)
    dim = [part for parts in lines[:-1] for part in parts]
    bright, faint, _ = dots([lines[-1], dim, [frame]], width, rows)
    top, bottom = ([_end(scale, at) for scale in scales] for at in (1, 0))
    return [
        *_names(scales, width),
        _spread(top, width),
        *_merged(bright, faint, look),
        _spread(bottom, width),
    ]


def _unbroken(places: Sequence[float | None]) -> Iterator[Points]:
    """Parts of a line: it is broken at an axis of which its trial has no value."""
    part: list[tuple[float, float]] = []
    for at, share in enumerate(places):
        if share is not None:
            part.append((float(at), share))
        elif part:
            yield part
            part = []
    if part:
        yield part


def _end(scale: Scale, at: int) -> str:
    if scale.kind == CHOICE:
        return (scale.choices[-1 if at else 0] if scale.choices else "")[:_NAME]
    return number(scale.high if at else scale.low)


def _names(scales: Sequence[Scale], width: int) -> list[Text]:
    return [_spread([f"{s.name}{' log' if s.kind == LOG else ''}" for s in scales], width, "")]


def _spread(texts: Sequence[str], width: int, tone: str = "dim") -> Text:
    """Over the width: the first at the left, the last at the right, the others between."""
    room = max(1, width // max(1, len(texts)) - 1)
    shown = [cut(harmless(text), room) for text in texts]
    placed = [" "] * width
    for place, text in enumerate(shown):
        middle = place * (width - 1) / max(1, len(shown) - 1)
        start = min(max(0, round(middle - len(text) / 2)), max(0, width - len(text)))
        for offset, one in enumerate(text[: width - start]):
            placed[start + offset] = one
    return line(width, [("".join(placed), tone)])


def _over(
    charts: SearchCharts,
    bright: Sequence[Points],
    dim: Sequence[Points],
    width: int,
    height: int,
    look: Look,
    unit: str,
    *,
    joined: bool = True,
) -> list[Text]:
    points = [point for curve in (*bright, *dim) for point in curve]
    if not points or height < 2:
        return [line(width, [("no numbers yet", "dim")])]
    low, high = (limit(y for _, y in points) for limit in (min, max))
    labels = [number(high), number(low)]
    margin = max(map(len, labels)) + 1
    margin = margin if width - margin >= 8 else 0
    rows = height - 1
    strong, faint = dots([bright, dim], max(1, width - margin), rows, joined=joined)
    drawn = _merged(strong, faint, look)
    found = []
    for place, text in enumerate(drawn):
        label = labels[0] if place == 0 else labels[1] if place == rows - 1 else ""
        label_text = Text(f"{label:>{margin - 1}} " if margin else "", end="")
        found.append(label_text.append_text(text))
    first, last = (limit(x for x, _ in points) for limit in (min, max))
    below = f"{' ' * margin}{number(first)}"
    end = f"{number(last)} {unit}"
    gap = " " * max(1, width - len(below) - len(end))
    return [*found, line(width, [(f"{below}{gap}{end}", "dim")])]


def _merged(
    bright: Sequence[Sequence[int]], faint: Sequence[Sequence[int]], look: Look
) -> list[Text]:
    """Where both are, the best trial is seen alone."""
    rows = []
    for strong, dim in zip(bright, faint, strict=True):
        text = Text(no_wrap=True, overflow="crop", end="")
        for mine, others in zip(strong, dim, strict=True):
            text.append(letter(mine or others, look), TONES["caution" if mine else "dim"])
        rows.append(text)
    return rows


def _importance(charts: SearchCharts, width: int) -> list[Text]:
    if not charts.importance:
        return [line(width, [("known once ten trials have finished", "dim")])]
    room = max(5, width - _NAME - 8)
    return [
        line(
            width,
            [
                (f"{harmless(name)[:_NAME]:>{_NAME}} ", ""),
                (bar(share, room), "active"),
                (f" {share:.0%}", ""),
            ],
        )
        for name, share in charts.importance
    ]


def _slice(charts: SearchCharts, name: str, width: int, height: int, look: Look) -> list[Text]:
    place = next(
        at
        for at, s in enumerate(charts.parameters)
        if name == f"{charts.metric.name} over {s.name}"
    )
    scale = charts.parameters[place]
    told = [
        (share, one.trial.value)
        for one in charts.points
        if (share := one.places[place]) is not None
        and one.trial.value is not None
        and math.isfinite(one.trial.value)
    ]
    drawn = _over(charts, [told[-1:]], [told[:-1]], width, height, look, "", joined=False)
    ends = [_end(scale, 0), f"{scale.name} {_end(scale, 1)}{' log' if scale.kind == LOG else ''}"]
    return [*drawn[:-1], _spread(ends, width)]
