"""Searches on a real Torque or OpenPBS: workers are jobs, some of which wait for others."""

import json

import pytest
from tests.real.test_search_on_slurm import SEARCH, TRAIN
from tests.voyages.beside import until

SLOW = """
import time
for epoch in range(40):
    print("epoch", epoch + 2, "val_accuracy", 0.5, flush=True)
    time.sleep(0.5)
"""


@pytest.fixture
def searcher(passenger):
    passenger.settings(command='"python3 train.py"', jobs="1")
    passenger.write("train.py", TRAIN)
    passenger.add_settings(SEARCH)
    return passenger


def search_of(passenger):
    return json.loads(passenger.types("search", "status", "--json").output)


def starts(passenger, *words):
    return passenger.types("search", "run", "--on", "lab", "--no-doctor", *words)


def test_every_trial_is_run_once_and_waited_for(cluster, searcher):
    waiting = searcher.start("search", "run", "--on", "lab", "--no-doctor", "--wait")
    output, errors = waiting.communicate(timeout=240)

    found = search_of(searcher)
    assert waiting.returncode == 0, errors
    assert output.count(" finished ") == 6, output
    assert found["state"] == "finished"
    assert found["best"]["values"] == {"lr": 0.01, "seed": 1}
    cluster.wait_until(lambda: not cluster.jobs())
    log = searcher.types("logs", found["best"]["run"], "--on", "lab").output
    assert "epoch 1 val_accuracy 0.89" in log


def test_a_search_runs_is_stopped_and_goes_on(cluster, searcher):
    searcher.write("train.py", TRAIN + SLOW)
    starts(searcher)
    working = until(lambda: (now := search_of(searcher))["trials"] and now, 120)

    searcher.types("search", "stop")
    until(lambda: search_of(searcher)["state"] == "stopped", 120)
    cluster.wait_until(lambda: not cluster.jobs())
    searcher.write("train.py", TRAIN)
    searcher.types("search", "more", "0")
    going_on = search_of(searcher)["state"]

    assert working["state"] == "running"
    assert working["workers"]["running"] >= 1
    assert going_on in ("queued", "running", "finished")


def test_a_time_limit_cuts_no_trial_short(cluster, searcher):
    searcher.write("train.py", TRAIN + SLOW)
    searcher.settings(command='"python3 train.py"', jobs="2", walltime='"25s"')
    searcher.add_settings(SEARCH.replace("lr = [0.1, 0.01, 0.001]", "lr = [0.1]"))
    said = starts(searcher)
    ids = said.errors.partition("submitted to lab, id ")[2].split()

    states = set()
    until(lambda: states.add(now := search_of(searcher)["state"]) or now == "finished", 400)

    assert len(ids) == 4, "two places, each with a job that waits"
    assert states <= {"queued", "running", "finished"}
    cluster.wait_until(lambda: not cluster.jobs())


def test_a_server_that_is_down_interrupts_no_search(cluster, searcher):
    searcher.write("train.py", TRAIN + SLOW)
    starts(searcher)
    until(lambda: search_of(searcher)["trials"], 120)

    cluster.stop_server()
    try:
        told = search_of(searcher)
    finally:
        cluster.start_server()

    assert told["state"] == "unknown", told
    assert "interrupted" not in {trial["state"] for trial in told["trials"]}
    until(lambda: search_of(searcher)["state"] == "running", 60)
    searcher.types("search", "stop")
    until(lambda: search_of(searcher)["state"] == "stopped", 120)
