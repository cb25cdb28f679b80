"""When a job of a rehearsal is cut off, told from its log and its checkpoints."""

import zipfile
from pathlib import Path

import pytest
from made_runs import begin_job, make_run

from rabaska.node.job import interruptions
from rabaska.node.job.stop_signals import Stop
from rabaska.node.record import plan
from rabaska.node.record.plan import ASK, KILL, KILL_WHILE_SAVING, PlannedInterruption
from rabaska.node.record.run_folder import RunFolder


class Begun:
    """A run whose first job has begun, with one cut."""

    def __init__(self, store: Path, cut: PlannedInterruption) -> None:
        self.run: RunFolder = make_run(store, cuts=[cut])
        self.job = begin_job(self.run)
        wanted = plan.load(self.run)
        assert wanted is not None
        self.look = interruptions.planned_for(self.run, wanted, self.job, lambda: None)

    def prints(self, *steps: int) -> None:
        with open(self.run.log(self.job), "a") as log:
            log.writelines(f"step {step} loss 0.1\n" for step in steps)

    def saves(self, content: bytes = b"") -> Path:
        path = Path(self.run.checkpoints(self.job)) / "last.npz"
        if content:
            path.write_bytes(content)
        else:
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("weights.npy", b"1234")
        return path


def test_a_job_without_a_cut_of_its_own_looks_as_ever(tmp_path):
    run = make_run(tmp_path)
    wanted = plan.load(run)

    def look():
        return None

    assert interruptions.planned_for(run, wanted, 1, look) is look


def test_a_kill_waits_for_its_step_and_for_something_to_go_on_from(tmp_path):
    begun = Begun(tmp_path, PlannedInterruption(KILL, step=10, latest=20, seconds=0.0))

    begun.prints(9)
    begun.saves()
    too_early = begun.look()
    begun.prints(10)
    stop = begun.look()

    assert too_early is None
    assert isinstance(stop, Stop)
    assert stop.at_once


def test_without_a_save_a_cut_comes_at_its_latest_step(tmp_path):
    begun = Begun(tmp_path, PlannedInterruption(ASK, step=10, latest=20, seconds=0.0))

    begun.prints(10, 19)
    too_early = begun.look()
    begun.prints(20)
    stop = begun.look()

    assert too_early is None
    assert stop is not None
    assert not stop.at_once


def test_a_kill_while_saving_waits_for_half_a_file(tmp_path):
    begun = Begun(
        tmp_path, PlannedInterruption(KILL_WHILE_SAVING, step=10, latest=2000, seconds=0.0)
    )

    begun.prints(11)
    whole = begun.saves().read_bytes()
    before = begun.look()
    begun.saves(whole[: len(whole) // 2])
    stop = begun.look()

    assert before is None
    assert stop is not None


@pytest.mark.parametrize(("seconds", "due"), [(0.0, True), (3600.0, False)])
def test_a_program_that_tells_no_steps_is_cut_by_the_clock(tmp_path, seconds, due):
    begun = Begun(tmp_path, PlannedInterruption(KILL, step=None, latest=None, seconds=seconds))

    before = begun.look()
    begun.prints()

    assert before is None  # nothing is cut before the program begins
    assert (begun.look() is not None) is due
