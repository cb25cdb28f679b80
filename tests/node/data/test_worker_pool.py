"""Work shared among processes: all of it is done once, and a failure is heard."""

import os
import signal
from collections import Counter

import pytest

from rabaska.node.data import worker_pool


def doubled(task):
    yield task * 2, os.getpid()


@pytest.mark.parametrize(("tasks", "count"), [(0, 2), (1, 4), (100, 3), (40_000, 2)])
def test_every_task_is_done_once(tasks, count):
    messages = list(worker_pool.share(doubled, range(tasks), count))

    assert Counter(value for value, _ in messages) == Counter(task * 2 for task in range(tasks))
    assert os.getpid() not in {pid for _, pid in messages}


def test_a_process_draws_tasks_as_it_goes_and_none_is_drawn_twice():
    def work(mine):
        first = next(mine)
        yield [first]
        if first == 0:
            signal.pause()  # the other one does all the rest
        yield list(mine)

    messages = worker_pool.draw(work, range(100), 2)
    drawn = [next(messages) for _ in range(3)]
    messages.close()

    assert sorted(drawn) == [[0], [1], list(range(2, 100))]


def test_long_messages_arrive_whole():
    def talk(task):
        yield bytes([task]) * 300_000

    messages = list(worker_pool.share(talk, range(6), 3))

    assert sorted(messages) == [bytes([task]) * 300_000 for task in range(6)]


def test_the_first_error_is_raised_and_nobody_is_left():
    def fail(task):
        yield os.getpid()
        if task == 3:
            raise FileNotFoundError(2, "No such file", "cat.jpg")
        signal.pause()

    pids = []
    with pytest.raises(FileNotFoundError) as caught:
        pids.extend(worker_pool.share(fail, [3, 1, 2], 3))

    assert caught.value.filename == "cat.jpg"
    assert pids
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_a_worker_killed_from_outside_is_noticed():
    def die(task):
        yield task
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(worker_pool.WorkerLost):
        list(worker_pool.share(die, [1], 1))


def test_who_stops_listening_ends_the_workers():
    def endless(task):
        while True:
            yield os.getpid()

    messages = worker_pool.share(endless, [1, 2], 2)
    pid = next(messages)

    messages.close()

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
