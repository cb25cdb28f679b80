"""Which samples are in which batch, and when to save."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from rabaska.training import save_timing  # noqa: E402
from rabaska.training.sample_order import EpochOrders, OrderRecipe  # noqa: E402

recipes = st.builds(
    OrderRecipe,
    seed=st.integers(0, 10),
    samples=st.integers(1, 60),
    batch_size=st.integers(1, 9),
    shuffle=st.booleans(),
    drop_last=st.booleans(),
    rank=st.just(0),
    ranks=st.just(1),
)


@settings(deadline=None)
@given(recipes, st.integers(0, 3), st.integers(0, 12))
def test_from_any_place_on_the_same_batches_follow(
    recipe: OrderRecipe, epoch: int, batch: int
) -> None:
    everything = list(EpochOrders(recipe, (0, 0), 4))

    rest = list(EpochOrders(recipe, (epoch, batch), 4))

    assert rest == [turn for turn in everything if (turn.epoch, turn.number) >= (epoch, batch)]
    if batch <= recipe.batches():
        assert len(EpochOrders(recipe, (epoch, batch), 4)) == len(rest)


@settings(deadline=None)
@given(recipes.map(lambda recipe: recipe._replace(drop_last=False)))
def test_every_sample_is_used_once_in_each_epoch(recipe: OrderRecipe) -> None:
    for epoch, turns in itertools.groupby(
        EpochOrders(recipe, (0, 0), 3), key=lambda turn: turn.epoch
    ):
        used = [sample for turn in turns for sample in turn.samples]

        assert sorted(used) == list(range(recipe.samples)), epoch


@settings(deadline=None)
@given(recipes, st.integers(1, 4))
def test_ranks_share_an_epoch_and_have_equally_many_batches(
    recipe: OrderRecipe, ranks: int
) -> None:
    each = [
        list(EpochOrders(recipe._replace(rank=rank, ranks=ranks), (0, 0), 1))
        for rank in range(ranks)
    ]

    assert len({len(turns) for turns in each}) == 1
    if not recipe.drop_last:
        used = {sample for turns in each for turn in turns for sample in turn.samples}
        assert used == set(range(recipe.samples))


def test_epochs_are_shuffled_differently_and_by_the_seed() -> None:
    recipe = OrderRecipe(seed=1, samples=1000, batch_size=1000)

    first, second = [turn.samples for turn in EpochOrders(recipe, (0, 0), 2)]
    other = next(iter(EpochOrders(recipe._replace(seed=2), (0, 0), 1))).samples

    assert first != second
    assert first != other


def test_the_interval_is_youngs_within_bounds() -> None:
    assert save_timing.interval(0.1, 24 * 3600) == pytest.approx(131.45, abs=0.01)
    assert save_timing.interval(0.0) == save_timing.SHORTEST
    assert save_timing.interval(1e9) == save_timing.LONGEST
    assert save_timing.interval(0.0, writing=60.0) == 600.0


def test_the_last_save_begins_while_there_is_time_for_it() -> None:
    assert not save_timing.time_to_stop(100.0, None, saving=50.0, step=50.0)
    assert not save_timing.time_to_stop(100.0, 200.0, saving=20.0, step=10.0)
    assert save_timing.time_to_stop(100.0, 165.0, saving=20.0, step=10.0)


def test_the_deadline_is_ours_else_slurms() -> None:
    assert save_timing.deadline({"RABASKA_DEADLINE": "12.5", "SLURM_JOB_END_TIME": "99"}) == 12.5
    assert save_timing.deadline({"SLURM_JOB_END_TIME": "1000"}) == 940.0
    assert save_timing.deadline({"RABASKA_DEADLINE": "soon"}) is None
