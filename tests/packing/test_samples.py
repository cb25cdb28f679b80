"""Files of one stem are one sample."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.errors import DatasetError
from rabaska.packing.shard_borders import Samples, samples_among


def test_what_most_samples_consist_of_is_said_and_the_others_are_counted():
    names = sorted([b"a/1.jpg", b"a/1.cls", b"a/2.jpg", b"a/2.cls", b"b/1.seg.png", b"readme"])

    assert samples_among(names) == Samples(3, ("cls", "jpg"), 1, "b/1")


@pytest.mark.parametrize(
    "names", [[b"s.cls", b"s.d/x.jpg", b"s.jpg"], [b"q.d/s.cls", b"q.d/s.d/x", b"q.d/s.e/x.y"]]
)
def test_a_folder_that_comes_between_is_refused_only_if_it_parts_a_sample(names):
    whole = samples_among(names[:2])

    assert whole.count >= 1
    if b"s.jpg" in names:
        with pytest.raises(DatasetError, match="sample s do not follow"):
            samples_among(names)


def test_files_without_endings_are_no_samples():
    with pytest.raises(DatasetError, match="no samples"):
        samples_among([b"a", b"b.d/c"])


@given(st.sets(st.text("ab.-1", min_size=1, max_size=6)))
def test_within_one_folder_samples_are_always_neighbours(names):
    stems = {name.partition(".")[0] for name in names if "." in name}

    if stems:
        assert samples_among(sorted(map(str.encode, names))).count == len(stems)
