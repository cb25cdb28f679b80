"""Loss curves as pictures: a drawing for a browser, and one of letters for a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

Curve = Mapping[int, float]  # step → loss

_WIDTH, _HEIGHT, _MARGIN = 720, 360, 48
_COLOURS = ("#c1440e", "#1b7f5a", "#7a3db8", "#b8860b")
_ALONE, _BOTH, _CUT = "·", "●", "x"


@dataclass(frozen=True)
class _Frame:
    """What part of the plane is shown, and how large."""

    first: int
    last: int
    low: float
    high: float
    width: int
    height: int

    def place(self, step: int, loss: float) -> tuple[float, float]:
        """From the left and from the top."""
        across = (step - self.first) / max(self.last - self.first, 1)
        up = (loss - self.low) / ((self.high - self.low) or 1.0)
        return across * self.width, (1.0 - up) * self.height


def _frame(curves: Sequence[Curve], width: int, height: int) -> _Frame:
    steps = [step for curve in curves for step in curve]
    losses = [loss for curve in curves for loss in curve.values()]
    return _Frame(min(steps), max(steps), min(losses), max(losses), width, height)


def picture(reference: Curve, cut: Sequence[Curve]) -> str:
    """An SVG: the run that was left alone in black, those that were interrupted over it."""
    frame = _frame([reference, *cut], _WIDTH, _HEIGHT)
    lines = [_line(reference, frame, "#222222", 3.0)]
    lines += [
        _line(curve, frame, _COLOURS[number % len(_COLOURS)], 1.2)
        for number, curve in enumerate(cut)
    ]
    size = f"{_WIDTH + 2 * _MARGIN} {_HEIGHT + 2 * _MARGIN}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-{_MARGIN} -{_MARGIN} {size}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="none" stroke="#cccccc"/>',
            *lines,
            *_labels(frame, len(cut)),
            "</svg>\n",
        ]
    )


def _line(curve: Curve, frame: _Frame, colour: str, width: float) -> str:
    places = [frame.place(step, curve[step]) for step in sorted(curve)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f'<polyline fill="none" stroke="{colour}" stroke-width="{width}" points="{points}"/>'


def _labels(frame: _Frame, cut: int) -> Iterator[str]:
    def text(x: float, y: float, words: str, colour: str = "#222222", anchor: str = "start") -> str:
        return f'<text x="{x}" y="{y}" fill="{colour}" text-anchor="{anchor}">{words}</text>'

    yield text(-4, 10, f"{frame.high:.4g}", anchor="end")
    yield text(-4, frame.height, f"{frame.low:.4g}", anchor="end")
    yield text(0, frame.height + 16, f"step {frame.first}")
    yield text(frame.width, frame.height + 16, str(frame.last), anchor="end")
    yield text(0, -12, "uninterrupted")
    for number in range(cut):
        words = f"interrupted {number + 1}"
        yield text(90 + 110 * number, -12, words, _COLOURS[number % len(_COLOURS)])


def letters(
    reference: Curve, cut: Sequence[Curve], *, width: int = 64, height: int = 12
) -> list[str]:
    """Lines of text: `·` the run that was left alone, `x` one that was not, `●` both."""
    frame = _frame([reference, *cut], width - 1, height - 1)
    alone = _cells([reference], frame)
    others = _cells(cut, frame)
    rows = []
    for row in range(height):
        cells = ((column, row) for column in range(width))
        rows.append("".join(_letter(cell in alone, cell in others) for cell in cells).rstrip())
    labels = [f"{frame.high:.4g}", *[""] * (height - 2), f"{frame.low:.4g}"]
    room = max(map(len, labels))
    below = f"step {frame.first}".ljust(width - len(str(frame.last))) + str(frame.last)
    return [
        *(f"{label:>{room}} │{row}" for label, row in zip(labels, rows, strict=True)),
        f"{'':{room}}  {below}",
        f"{'':{room}}  {_ALONE} uninterrupted  {_CUT} interrupted  {_BOTH} both",
    ]


def _cells(curves: Sequence[Curve], frame: _Frame) -> set[tuple[int, int]]:
    places = (frame.place(step, loss) for curve in curves for step, loss in curve.items())
    return {(round(x), round(y)) for x, y in places}


def _letter(alone: bool, other: bool) -> str:
    if alone and other:
        return _BOTH
    return _ALONE if alone else _CUT if other else " "
