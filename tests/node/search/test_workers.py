"""Workers of a search that did not notice that another one has their trial by now."""

import os
import threading
import time

import pytest
from tests.node.search.test_trial_results import settings

from rabaska.node.job.stop_signals import Interrupts
from rabaska.node.job.this_job import ThisJob
from rabaska.node.record import jobs, lease
from rabaska.node.search import room, trial_run, worker
from rabaska.node.search import trials as records
from rabaska.node.search.study import Study
from rabaska.node.search.trials import Trials


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.setenv("RABASKA_LEASE_SECONDS", "0.3")
    return Study(str(tmp_path / "searches" / "cats-7f3a"))


@pytest.fixture
def held_elsewhere(study):
    """Trial 1, which a worker of another node runs: its job gives signs of life."""
    trial = records.claim(study, 1, {"lr": 0.1})
    records.take_over(study, trial)
    run = trial_run.make(study, settings(), trial)
    os.rename(run.carried(0), run.carried(1))
    os.makedirs(run.job(1), exist_ok=True)
    jobs.write_begun(run, jobs.Begun(1, "9", "other-node", "b", 1, "1", 100.0, ready=True))
    over = threading.Event()

    def live():
        beats = 0
        while not over.wait(0.02):
            beats += 1
            lease._beat(run.heartbeat(1), beats)

    thread = threading.Thread(target=live)
    thread.start()
    yield trial
    over.set()
    thread.join()


def test_a_worker_that_woke_too_late_does_not_fail_the_trial_of_another(
    study, held_elsewhere, tmp_path
):
    this_job = ThisJob("7", time.time() + 60, time.monotonic() + 60, "")
    slots = room.Slots(str(tmp_path / "slots"))
    late = worker.Worker(study, settings(), this_job, Interrupts(os.getppid()), {}, slots)

    ended = worker._bring_to_end(late, held_elsewhere, Trials(study))

    assert not ended
    assert not os.path.exists(study.file(1, ".result.json"))
