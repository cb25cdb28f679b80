"""Durations and sizes as people write and read them."""

import contextlib
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.domain.amounts import duration, say_count, say_duration, say_size, size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("1h30m", 5400),
        ("2 days", 172800),
        ("12:00:00", 43200),
        ("00:30", 1800),
        ("1-00:00:00", 86400),
        ("1.5 hours", 5400),
        ("3 min", 180),
        ("1d 2h", 93600),
    ],
)
def test_durations_are_read_in_every_usual_spelling(text, seconds):
    assert duration(text).total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "soon", "3", "3 parsecs", "h3", "1h-2m", "12:3"])
def test_what_is_no_duration_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match=r"write 90s|is not a unit"):
        duration(text)


@given(st.text(st.sampled_from("0123456789smhdwkGiTB.:- "), max_size=400))
def test_no_text_at_all_is_answered_by_anything_but_a_value_or_a_value_error(text):
    for read, kind in ((duration, timedelta), (size, int)):
        with contextlib.suppress(ValueError):
            assert isinstance(read(text), kind)


@pytest.mark.parametrize(
    ("text", "count"),
    [("1024", 1024), ("64 GB", 64 * 10**9), ("500M", 5 * 10**8), ("2 GiB", 2**31), ("1.5k", 1500)],
)
def test_sizes_are_read_in_decimal_and_binary_units(text, count):
    assert size(text) == count


@pytest.mark.parametrize("text", ["", "much", "5 apples", "3i", "-1 GB"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="is not a size"):
        size(text)


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (1166, "1,166 files")]
)
def test_only_a_single_thing_is_counted_in_the_singular(count, words):
    assert say_count(count, "file") == words


def test_an_irregular_plural_is_given():
    assert say_count(2, "copy", "copies") == "2 copies"


def test_one_byte_is_not_said_in_the_plural():
    assert say_size(1) == "1 byte"


@given(st.integers(0, 10**18))
def test_any_size_is_said_in_at_most_four_digits_and_a_unit(count):
    number, unit = say_size(count).split()

    assert unit in ("byte", "bytes", "kB", "MB", "GB", "TB")
    assert len(number.replace(".", "")) <= 3 or unit == "TB"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(5, "5 s"), (600, "10 min"), (3 * 3600 + 300, "3 h 05 min"), (52 * 3600, "2 d 4 h")],
)
def test_durations_are_said_in_two_units_at_the_most(seconds, said):
    assert say_duration(timedelta(seconds=seconds)) == said
