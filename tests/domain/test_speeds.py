"""What measured storage means for a dataset."""

import pytest

from rabaska.domain.data_placement import DatasetSize, TierSpeed, best_mode

MB = 10**6
SHARED = TierSpeed(
    "scratch", write=200 * MB, read=500 * MB, seconds_to_make=0.002, seconds_to_read=0.001
)


@pytest.mark.parametrize(
    ("data", "pays"),
    [
        (DatasetSize(100_000, 200 * MB), True),
        (DatasetSize(40, 4000 * MB), False),
        (DatasetSize(1, 1), True),
    ],
)
def test_packing_pays_where_opening_files_takes_longer_than_reading_them(data, pays):
    assert SHARED.packing_pays(data) is pays


def test_how_long_each_way_takes():
    data = DatasetSize(1000, 1000 * MB)

    assert SHARED.epoch_of_files(data) == pytest.approx(3)
    assert SHARED.epoch_of_shards(data) == pytest.approx(2)
    assert SHARED.staged_as_files(data) == pytest.approx(7)
    assert SHARED.staged_as_shards(data) == pytest.approx(5)


@pytest.mark.parametrize(
    ("files", "near", "mode"),
    [(1000, None, "files"), (60_000, None, "shards"), (1000, SHARED, "files"),
     (40_000, TierSpeed("disk", write=MB, seconds_to_make=0.01), "shards")],
)  # fmt: skip
def test_shards_are_for_what_would_take_too_long_to_unpack(files, near, mode):
    assert best_mode(DatasetSize(files, MB), near) == mode
