"""Curves: joined over jobs, thinned without losing a peak, smoothed."""

import math
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.domain.curves import Curve, joined, smoothed, thinned

NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


def curve(steps, values=None, began=0.0):
    values = steps if values is None else values
    times = array("d", (began + place for place in range(len(values))))
    return Curve("loss", "printed", array("d", steps), times, array("d", values))


def test_what_a_resumed_job_repeats_replaces_what_the_killed_one_told():
    killed = curve([1, 2, 3, 4, 5], [1.0, 2.0, 3.0, 4.0, 5.0])
    resumed = curve([4, 5, 6], [40.0, 50.0, 60.0], began=100)

    whole = joined([killed, resumed])

    assert list(whole.steps) == [1, 2, 3, 4, 5, 6]
    assert list(whole.values) == [1, 2, 3, 40, 50, 60]


def test_a_third_job_that_goes_further_back_replaces_both():
    whole = joined([curve([1, 2, 3, 4]), curve([4, 5, 6]), curve([3, 4, 5, 6, 7])])

    assert list(whole.steps) == [1, 2, 3, 4, 5, 6, 7]


def test_a_job_that_told_nothing_of_a_series_takes_nothing_away():
    assert list(joined([curve([1, 2]), curve([]), curve([3])]).steps) == [1, 2, 3]


def test_series_without_steps_are_joined_as_they_came():
    none = [math.nan, math.nan]

    assert list(joined([curve(none, [1.0, 2.0]), curve(none, [3.0, 4.0])]).values) == [1, 2, 3, 4]


@given(st.lists(NUMBERS, min_size=1, max_size=400), st.integers(2, 60))
def test_no_peak_is_lost(values, points):
    thin = thinned(curve(range(len(values)), values), points)

    numbers = [value for value in values if not math.isnan(value)]
    assert len(thin) <= max(3 * points, 4)
    assert list(thin.steps) == sorted(set(thin.steps))
    if numbers:
        assert max(numbers) in thin.values
        assert min(numbers) in thin.values
    assert any(map(math.isnan, thin.values)) == any(map(math.isnan, values))


def test_a_range_is_cut_out_with_its_neighbours():
    thin = thinned(curve(range(1000)), 5000, 100, 200)

    assert (thin.steps[0], thin.steps[-1]) == (99, 201)


def test_smoothing_begins_at_the_first_value_and_passes_over_nan():
    smooth = smoothed([4.0, 4.0, math.nan, 4.0], 0.9)

    assert smooth[0] == pytest.approx(4.0)
    assert math.isnan(smooth[2])
    assert smooth[3] == pytest.approx(4.0)
