"""The order of samples: exact, shared fairly, resumed anywhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.training import Order

pytest.importorskip("numpy")


class Numbered:
    """Three samples to a shard."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def shards_of(self, positions):
        return [position // 3 for position in positions]


@given(st.integers(0, 200), st.integers(0, 5), st.booleans())
def test_every_sample_is_seen_once_in_an_epoch(count, seed, by_arrival):
    order = Order(Numbered(count), seed, by_arrival=by_arrival)

    assert sorted(order) == list(range(count))


@given(st.integers(1, 200), st.integers(0, 3), st.integers(0, 200), st.booleans())
def test_going_on_in_the_middle_gives_exactly_the_rest(count, epoch, done, by_arrival):
    whole = Order(Numbered(count), 7, by_arrival=by_arrival)
    whole.set_epoch(epoch)
    resumed = Order(Numbered(count), 7, by_arrival=by_arrival)

    resumed.resume(epoch, min(done, count))

    assert list(resumed) == list(whole)[min(done, count) :]
    assert len(resumed) == len(list(resumed))


@given(st.integers(0, 100), st.integers(1, 7))
def test_ranks_share_an_epoch_without_overlap(count, ranks):
    shares = [list(Order(Numbered(count), 1, rank=rank, ranks=ranks)) for rank in range(ranks)]

    together = [position for share in shares for position in share]
    assert len(set(together)) == len(together) == count // ranks * ranks
    assert {len(share) for share in shares} == {count // ranks}


def test_epochs_and_seeds_differ():
    order = Order(Numbered(100), 1)
    first = list(order)
    order.set_epoch(1)

    assert list(order) != first
    assert list(Order(Numbered(100), 2)) != first


def test_the_first_epoch_can_follow_the_arrival_of_shards():
    order = Order(Numbered(240), by_arrival=True)

    seen = list(order)

    assert set(seen[:24]) == set(range(24))
    assert seen[:24] != list(range(24))


def test_its_state_is_small_and_exact():
    order = Order(Numbered(50), 3)
    order.resume(2, 20)
    other = Order(Numbered(50))

    other.load_state_dict(order.state_dict())

    assert list(other) == list(order)
