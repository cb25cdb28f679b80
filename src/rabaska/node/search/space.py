"""The space of a search: its parameters, and the values of a point in it."""

import itertools
import math
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence

CHOICE, FLOAT, INT, LOG = "choice", "float", "int", "log"
_RANGES = (FLOAT, INT, LOG)
_MANY = 100000  # points of a grid; who has more wants something else
_WHOLE = 64  # values of an integer range that a grid takes one by one

Values = Dict[str, Any]


class WrongSpace(ValueError):
    """What is wrong with a space, in words; `name` is the parameter."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(what)
        self.name = name


class Parameter(NamedTuple):
    name: str
    kind: str  # CHOICE, FLOAT, INT or LOG
    choices: Sequence[Any] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False  # whole numbers only
    points: Optional[int] = None  # of a range, in a grid
    when: Dict[str, Sequence[Any]] = {}  # other parameters, with the values for which it counts

    def at(self, place: float) -> Any:
        """The value at a place from 0 up to 1."""
        if self.kind == CHOICE:
            return self.choices[min(int(place * len(self.choices)), len(self.choices) - 1)]
        if self.kind == LOG:
            low, high = math.log(self.low), math.log(self.high)
            return self._rounded(math.exp(low + place * (high - low)))
        if self.whole:
            count = int(self.high) - int(self.low) + 1
            return int(self.low) + min(int(place * count), count - 1)
        return self._rounded(self.low + place * (self.high - self.low))

    def _rounded(self, value: float) -> Any:
        """As people would write it, and inside the range."""
        if self.whole:
            return int(min(max(round(value), self.low), self.high))
        return min(max(float("{:.6g}".format(value)), self.low), self.high)

    def grid(self) -> List[Any]:
        if self.kind == CHOICE:
            return list(self.choices)
        count = self.points
        if count is None and self.whole and self.high - self.low < _WHOLE:
            return list(range(int(self.low), int(self.high) + 1))
        if count is None:
            raise WrongSpace(self.name, "a grid needs a list of values, or `points = 5`")
        # The ends belong to it.
        spread = [number / max(1, count - 1) for number in range(count)]
        if self.whole and self.kind == INT:
            width = self.high - self.low
            return _distinct(round(self.low + one * width) for one in spread)
        return _distinct(self.at(one) for one in spread)


def parameter(name: str, given: Any) -> Parameter:
    """As rabaska.toml spells it: a list of values, or a table; WrongSpace says what is wrong."""
    if isinstance(given, list):
        return _choice(name, given, {})
    if not isinstance(given, dict):
        example = "[{!r}, …]".format(given)
        raise WrongSpace(name, "it must be a list such as {}, or a table".format(example))
    table = dict(given)
    when = _condition(name, table.pop("when", {}))
    points = table.pop("points", None)
    if points is not None and (not isinstance(points, int) or points < 1):
        raise WrongSpace(name, "`points` must be a whole number, 1 or more")
    kinds = [key for key in table if key in _RANGES or key == CHOICE]
    unknown = [key for key in table if key not in kinds]
    if unknown:
        known = "`float`, `int`, `log`, `choice`, `points` and `when`"
        raise WrongSpace(name, "unknown key `{}`; the keys are {}".format(unknown[0], known))
    if len(kinds) != 1:
        raise WrongSpace(
            name, "it needs one of `log = [low, high]`, `float = […]`, `int = […]`, `choice = […]`"
        )
    if kinds[0] == CHOICE:
        return _choice(name, table[CHOICE], when)
    return _range(name, kinds[0], table[kinds[0]], when)._replace(points=points)


def _condition(name: str, given: Any) -> Dict[str, Sequence[Any]]:
    if not isinstance(given, dict):
        raise WrongSpace(name, '`when` must be a table, such as {optimizer = "sgd"}')
    return {key: one if isinstance(one, list) else [one] for key, one in given.items()}


def _choice(name: str, given: Any, when: Dict[str, Sequence[Any]]) -> Parameter:
    if not isinstance(given, list) or not given:
        raise WrongSpace(name, "it has no values")
    if any(isinstance(one, (list, dict)) for one in given):
        raise WrongSpace(name, "each value must be a number, a text, true or false")
    # 1 and true are equal to Python, and not to a command line.
    if len({repr(one) for one in given}) < len(given):
        raise WrongSpace(name, "it has the same value twice")
    return Parameter(name, CHOICE, list(given), when=when)


def _range(name: str, kind: str, given: Any, when: Dict[str, Sequence[Any]]) -> Parameter:
    numbers = given if isinstance(given, list) else []
    if len(numbers) != 2 or any(not _is_number(one) for one in numbers):
        raise WrongSpace(name, "`{}` must be two numbers, [lowest, highest]".format(kind))
    low, high = numbers
    if not low < high:
        raise WrongSpace(
            name, "the lowest value, {}, is not below the highest, {}".format(*numbers)
        )
    whole = all(isinstance(one, int) for one in numbers)
    if kind == INT and not whole:
        raise WrongSpace(name, "`int` must be two whole numbers")
    if kind == LOG and low <= 0:
        raise WrongSpace(name, "a log axis has no {}; begin above 0".format(low))
    return Parameter(name, kind, (), float(low), float(high), whole and kind != FLOAT, when=when)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def parameters(given: Dict[str, Any]) -> List[Parameter]:
    """All of them, checked one against another."""
    if not given:
        raise WrongSpace("", "the space is empty; write [search.space] with a line for each option")
    found = {name: parameter(name, one) for name, one in given.items()}
    for one in found.values():
        for other, values in one.when.items():
            _check_condition(one, found.get(other), other, values)
    _check_order(found)
    return list(found.values())


def _check_condition(
    one: Parameter, other: Optional[Parameter], name: str, values: Sequence[Any]
) -> None:
    if other is None:
        raise WrongSpace(one.name, "`when` names `{}`, which is not in the space".format(name))
    if other.kind != CHOICE:
        raise WrongSpace(
            one.name, "`when` needs a list of values, and `{}` is a range".format(name)
        )
    never = [value for value in values if value not in other.choices]
    if never:
        said = "it would never be used: `{}` is never {!r}".format(name, never[0])
        raise WrongSpace(one.name, said)


def _check_order(found: Dict[str, Parameter]) -> None:
    for start in found:
        seen, waiting = set(), list(found[start].when)
        while waiting:
            name = waiting.pop()
            if name == start:
                raise WrongSpace(start, "its `when` depends on itself")
            if name not in seen:
                seen.add(name)
                waiting += found[name].when


def active(space: Sequence[Parameter], values: Values) -> Values:
    """`values` without those whose condition does not hold, in the order of the space."""
    named = {one.name: one for one in space}

    def counts(one: Parameter) -> bool:
        return all(
            counts(named[other]) and values.get(other) in wanted
            for other, wanted in one.when.items()
        )

    return {one.name: values[one.name] for one in space if counts(one)}


def at(space: Sequence[Parameter], places: Sequence[float]) -> Values:
    """The point at `places`, one for each parameter."""
    return active(space, {one.name: one.at(place) for one, place in zip(space, places)})


def grid(space: Sequence[Parameter]) -> List[Values]:
    """Every point of the grid, each once."""
    axes = [one.grid() for one in space]
    size = 1
    for axis in axes:
        size *= len(axis)
    if size > _MANY:
        raise WrongSpace("", "the grid has {:,} points; {:,} are allowed".format(size, _MANY))
    names = [one.name for one in space]
    points = (active(space, dict(zip(names, point))) for point in itertools.product(*axes))
    if not any(one.when for one in space):
        return list(points)
    return list({repr(sorted(point.items())): point for point in points}.values())


def _distinct(values: Iterator[Any]) -> List[Any]:
    return sorted(set(values))
