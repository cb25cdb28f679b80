"""Whatever a cluster answers is of the shape that was expected, or said not to be."""

import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.domain.untrusted import NANOSECONDS, PATH, SIZE, TIME, Unexpected, checked, count, read

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    SCALARS, lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(), each, max_size=3)
)
SHAPE = {"name": re.compile("[a-z]+"), "size": SIZE, "more?": [(str, None)], "each?": {str: float}}


@given(VALUES | st.fixed_dictionaries({"name": SCALARS, "size": SCALARS, "more": VALUES}))
def test_what_passes_is_of_its_shape(value):
    try:
        found = read(json.dumps(value), SHAPE)
    except Unexpected:
        return
    assert re.fullmatch("[a-z]+", found["name"])
    assert 0 <= found["size"] < 2**63
    assert all(each is None or isinstance(each, str) for each in found.get("more", []))


@given(st.text() | st.binary())
def test_text_that_is_no_json_is_said_to_be_none(text):
    try:
        json.loads(text)
    except ValueError:
        with pytest.raises(Unexpected, match="is not JSON"):
            read(text, SHAPE)


@pytest.mark.parametrize("text", ["[" * 99999, '{"a":' * 99999, "9" * 5000, "", "{"], ids=range(5))
def test_text_that_python_can_hardly_read(text):
    with pytest.raises(Unexpected):
        read(text, {})


@pytest.mark.parametrize(
    ("shape", "good", "bad"),
    [
        (int, [0, -5, 2**64], [True, 1.0, "1", 2**99, None]),
        (float, [0, 1.5, math.nan, math.inf], [True, "1", 2**99]),
        (TIME, [0, 1.7e9], [-1, math.nan, 1e300, True]),
        (PATH, ["a/b", "caf\udce9"], ["", "a\0", "\ud800", 5]),
        (SIZE, [0, 2**63 - 1], [-1, 2**63, 1.0]),
        (NANOSECONDS, [-(10**9)], [2**63]),
        ((str, None), ["", None], [5]),
        ({"a?": str}, [{}, {"a": "", "b": 5}], [{"a": 5}, []]),
        (re.compile("[a-z]"), ["a"], ["a\n", "ab", 5]),
    ],
    ids=["int", "float", "time", "path", "size", "nanoseconds", "text or none", "field", "pattern"],
)
def test_each_shape(shape, good, bad):
    for value in good:
        assert checked(value, shape) is value
    for value in bad:
        with pytest.raises(Unexpected):
            checked(value, shape)


def test_numbers_are_the_digits_that_commands_print():
    assert [count(text) for text in ("0", "123", "²", "٣", "", "-1", "9" * 5000)] == [
        0, 123, None, None, None, None, None,
    ]  # fmt: skip


@pytest.mark.parametrize("depth", range(700, 1000, 20))
def test_an_answer_of_any_depth_is_refused(depth):
    with pytest.raises(Unexpected):
        read('{"a":' + "[" * depth + "]" * depth + "}", {"a": str})
