"""Several reads at once: results in order, and no task begun before there is room for it."""

import threading

import pytest

from rabaska.node.data.read_ahead import ahead


@pytest.mark.parametrize("streams", [1, 3, 50])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 20])
def test_results_come_in_the_order_of_the_tasks(count, streams):
    assert list(ahead(lambda task: task * 2, iter(range(count)), streams)) == [
        task * 2 for task in range(count)
    ]


def test_reads_are_under_way_at_the_same_time():
    together = threading.Barrier(3, timeout=30)

    assert len(list(ahead(lambda _: together.wait(), range(6), 3))) == 6


@pytest.mark.parametrize("streams", [1, 4])
def test_no_more_tasks_are_taken_than_are_under_way(streams):
    tasks = iter(range(20))
    results = ahead(lambda task: task, tasks, streams)

    seen = [next(results) for _ in range(5)]
    untouched = list(tasks)

    assert seen == list(range(5))
    assert untouched[0] <= 5 + streams
    assert list(results) == list(range(5, untouched[0]))


def test_what_went_wrong_is_raised_in_its_turn():
    def read(task):
        if task == 2:
            raise OSError("no such disk")
        return task

    results = ahead(read, range(8), 4)

    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(OSError, match="no such disk"):
        next(results)
