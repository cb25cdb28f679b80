"""A search where the queue is asked by id or knows no arrays: its workers are jobs that wait."""

import json
import time

import pytest
from tests.voyages.test_other_schedulers import _write, guest
from tests.voyages.test_silent_queues import ASKED

__all__ = ["guest"]

pytestmark = pytest.mark.slow

TRAIN = """
import argparse, os, time
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--gate")
options = parser.parse_args()
print("epoch 1 val_accuracy", 1 - options.lr, flush=True)
while not os.path.exists(options.gate):
    time.sleep(0.05)
print("epoch 2 val_accuracy", 1 - options.lr, flush=True)
"""
SEARCH = """
[search]
metric = "val_accuracy"
method = "grid"
at_once = 2
[search.space]
lr = [0.1, 0.2, 0.3, 0.4]
"""


@pytest.fixture
def searcher(guest):
    guest.write("train.py", TRAIN)
    guest.settings(command=f'"python train.py --gate {guest.gate}"', jobs="2")
    with (guest.project / "rabaska.toml").open("a") as stream:
        stream.write(SEARCH)
    yield guest
    guest.gate.touch()


def told(searcher):
    return json.loads(searcher.types("search", "status", "--json").output)


def until(searcher, met):
    """Ask how the search is until `met` is content with it."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if met(now := told(searcher)):
            return now
    raise AssertionError(f"still waiting: {now}")


@pytest.mark.parametrize("guest", ["pbs", "torque"], indirect=True)
def test_a_search_that_works_says_so_and_is_waited_for(searcher):
    waiting = searcher.start("search", "run", "--on", "there", "--no-doctor", "--wait")
    ids = next(line for line in waiting.stderr if "submitted to there" in line).split("id ")[1]
    working = until(searcher, lambda now: now["trials"])
    searcher.gate.touch()
    output, errors = waiting.communicate(timeout=60)

    assert len(ids.split()) == 4, "two workers at once, and one after each of them"
    assert working["state"] == "running"
    assert working["workers"]["waiting"] >= 2
    assert {trial["state"] for trial in working["trials"]} == {"running"}
    assert output.count("finished") == 4, errors
    assert told(searcher)["state"] == "finished"


@pytest.mark.parametrize("guest", ["pbs"], indirect=True)
def test_a_silent_queue_interrupts_no_search(searcher):
    searcher.types("search", "run", "--on", "there", "--no-doctor")
    until(searcher, lambda now: now["trials"])
    command = searcher.programs / ASKED[searcher.scheduler]
    command.rename(command.with_suffix(".real"))
    _write(command, "#!/bin/sh\necho 'cannot connect to server' >&2\nexit 1\n")

    found = told(searcher)
    shown = searcher.types("search", "status").output

    assert found["state"] == "unknown"
    assert {trial["state"] for trial in found["trials"]} == {"running"}
    assert "unknown (the queue did not answer: cannot connect to server)" in shown
    command.with_suffix(".real").rename(command)
    searcher.gate.touch()
    until(searcher, lambda now: now["state"] == "finished")
