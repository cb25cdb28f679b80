"""Several cuts written in turn: none is left out, and what was done adds up."""

from hypothesis import given
from hypothesis import strategies as st

from rabaska.packing import digests
from rabaska.packing.shard_borders import ShardRange
from rabaska.packing.shards_in_turn import in_turn, side_by_side
from rabaska.packing.write_shards import Packed, Written


@given(count=st.integers(0, 50), workers=st.integers(1, 8))
def test_every_cut_is_written_once_and_every_worker_has_its_share(count, workers):
    cuts = [ShardRange(number, number, number + 1, number == count - 1) for number in range(count)]

    groups = side_by_side(cuts, workers)

    assert [cut for group in groups for cut in group] == cuts
    assert all(len(group) in (1, digests.COUNT) for group in groups)
    assert sum(len(group) > 1 for group in groups) % workers == 0


@given(st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20), max_size=3))
def test_words_about_progress_are_summed_up_and_results_kept(steps):
    results = [Written(number, []) for number in range(len(steps))]
    writers = [
        iter([*(Packed(*step) for step in each), result])
        for each, result in zip(steps, results, strict=True)
    ]

    said = list(in_turn(writers))

    progress = [word for word in said if isinstance(word, Packed)]
    assert sorted(word for word in said if isinstance(word, Written)) == results
    assert sum(word.files for word in progress) == sum(files for each in steps for files, _ in each)
    assert sum(word.bytes for word in progress) == sum(size for each in steps for _, size in each)


def test_each_takes_a_step_before_one_takes_its_next():
    taken = []

    def writer(name):
        for step in range(3):
            taken.append(f"{name}{step}")
            yield Packed(1, 1)

    list(in_turn([writer("a"), writer("b")]))

    assert taken == ["a0", "b0", "a1", "b1", "a2", "b2"]
