"""Curves for the browser: thinned so that no peak is lost, and asked for again at each zoom."""

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from rabaska.domain.curves import Curve, thinned
from rabaska.pages.run_pages import found, shown_of

_MOST_POINTS = 4000  # of a curve in one answer
_MOST_CURVES = 40


def series(request: Request) -> Response:
    """`run`, `name` (both repeatable), `axis` step or time, `low`, `high`, `points`."""
    query, shown = request.query_params, shown_of(request)
    told = []
    for key in query.getlist("run")[:_MOST_CURVES]:
        live = found(request, key)
        curves = shown.series(live.record)
        for name in query.getlist("name")[:_MOST_CURVES]:
            if name in curves:
                told.append({"run": key, **_answer(curves[name], request)})
    return _json({"curves": told})


def vitals(request: Request) -> Response:
    """`run`, `node` and `name`, as many of the last two as each other."""
    query, shown = request.query_params, shown_of(request)
    of_nodes = shown.vitals(found(request, query.get("run", "")).record)
    pairs = list(zip(query.getlist("node"), query.getlist("name"), strict=False))[:_MOST_CURVES]
    told = []
    for node, name in pairs:
        curve = of_nodes.get(node, {}).get(name)
        if curve is not None:
            label = f"{node} {name}" if len(of_nodes) > 1 else name
            told.append({"run": label, **_answer(curve, request)})
    return _json({"curves": told})


def _answer(curve: Curve, request: Request) -> dict[str, Any]:
    query = request.query_params
    low, high = _number(query.get("low")), _number(query.get("high"))
    points = int(_number(query.get("points")) or 1000)
    by_time = query.get("axis") == "time" or not curve.has_steps
    shown = thinned(curve, max(10, min(points, _MOST_POINTS)), low, high, by_time=by_time)
    return {
        "name": curve.name,
        "unit": curve.source,
        "points": len(curve),
        "shown": len(shown),
        "x": list(shown.times if by_time else shown.steps),
        "y": _finite(shown.values),
        "during": _during(curve, low, high, by_time=by_time),
    }


def _during(
    curve: Curve, low: float | None, high: float | None, *, by_time: bool
) -> Sequence[float]:
    """When that was: what nodes measured meanwhile is shown below."""
    axis = curve.times if by_time else curve.steps
    if not len(axis):
        return []
    first = 0 if low is None else min(len(axis) - 1, bisect_left(axis, low))
    last = len(axis) - 1 if high is None else max(first, bisect_right(axis, high) - 1)
    return [curve.times[first], curve.times[last]]


def _finite(values: "array[float]") -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values]


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "nan")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _json(value: Any) -> Response:
    import json

    return Response(json.dumps(value, separators=(",", ":")), media_type="application/json")
