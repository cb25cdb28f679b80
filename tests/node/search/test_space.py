"""The space of a search: what may be written, and the points in it."""

import pytest

from rabaska.node.search import sobol
from rabaska.node.search import space as spaces

SPACE = {
    "lr": {"log": [1e-5, 1e-1]},
    "depth": {"int": [2, 8]},
    "optimizer": ["sgd", "adam"],
    "momentum": {"float": [0.0, 0.99], "when": {"optimizer": "sgd"}},
}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "the space is empty"),
        ({"lr": 0.1}, "it must be a list such as [0.1, …], or a table"),
        ({"lr": []}, "it has no values"),
        ({"lr": [0.1, 0.1]}, "the same value twice"),
        ({"lr": {"log": [1, 0.1]}}, "the lowest value, 1, is not below the highest, 0.1"),
        ({"lr": {"log": [0, 1]}}, "a log axis has no 0; begin above 0"),
        ({"lr": {"log": [0.1, 1], "float": [0, 1]}}, "it needs one of"),
        ({"lr": {"lgo": [0.1, 1]}}, "unknown key `lgo`"),
        ({"n": {"int": [1.5, 3]}}, "`int` must be two whole numbers"),
        ({"lr": {"float": [0, float("nan")]}}, "must be two numbers"),
        ({"a": {"float": [0, 1], "when": {"b": 1}}}, "`when` names `b`, which is not in the space"),
        (
            {"o": ["x"], "a": {"float": [0, 1], "when": {"o": "y"}}},
            "it would never be used: `o` is never 'y'",
        ),
        (
            {"a": {"choice": [1], "when": {"b": 2}}, "b": {"choice": [2], "when": {"a": 1}}},
            "its `when` depends on itself",
        ),
    ],
)
def test_a_wrong_space_is_refused_in_words(given, words):
    with pytest.raises(spaces.WrongSpace, match=r".") as refusal:
        spaces.parameters(given)

    assert words in str(refusal.value)


def test_a_point_is_inside_the_space_and_leaves_out_what_does_not_count():
    space = spaces.parameters(SPACE)

    lowest = spaces.at(space, [0.0, 0.0, 0.0, 0.0])
    highest = spaces.at(space, [0.999999] * 4)

    assert lowest == {"lr": 1e-5, "depth": 2, "optimizer": "sgd", "momentum": 0.0}
    assert highest == {"lr": pytest.approx(0.1, rel=1e-4), "depth": 8, "optimizer": "adam"}
    assert highest["lr"] <= 0.1


def test_a_grid_has_each_point_once_though_a_parameter_may_not_count():
    space = spaces.parameters(
        {
            "optimizer": ["sgd", "adam"],
            "momentum": {"float": [0.0, 0.9], "points": 3, "when": {"optimizer": "sgd"}},
        }
    )

    assert spaces.grid(space) == [
        {"optimizer": "sgd", "momentum": 0.0},
        {"optimizer": "sgd", "momentum": 0.45},
        {"optimizer": "sgd", "momentum": 0.9},
        {"optimizer": "adam"},
    ]


def test_a_grid_needs_points_for_a_range():
    with pytest.raises(spaces.WrongSpace, match="a grid needs a list of values, or `points = 5`"):
        spaces.grid(spaces.parameters({"lr": {"log": [0.001, 0.1]}}))


def test_sobol_points_fill_each_half_quarter_and_eighth_evenly():
    points = [sobol.point(number, 5, seed=3) for number in range(64)]

    for dimension in range(5):
        eighths = [int(point[dimension] * 8) for point in points]
        assert [eighths.count(part) for part in range(8)] == [8] * 8


def test_the_first_sobol_points_are_those_that_everybody_knows():
    plain = [[a ^ b for a, b in zip(_bits(n), _bits(0), strict=True)] for n in range(1, 4)]

    assert plain == [[1 << 29] * 3, [3 << 28, 1 << 28, 1 << 28], [1 << 28, 3 << 28, 3 << 28]]


def _bits(number):
    return [int(one * 2**30) for one in sobol.point(number, 3, seed=0)]
