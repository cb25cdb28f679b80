"""Room for a trial: a disk that is full for a while, and a GPU whose memory trials share."""

import os

import pytest
from tests.disks import small_disk
from tests.node.search.test_trial_results import PLAN, job, run  # noqa: F401
from tests.node.vitals.conftest import fake_nvml  # noqa: F401

from rabaska.node import files
from rabaska.node.record import chain_rule, resume_evidence
from rabaska.node.search import room


def test_space_is_waited_for_and_a_worker_that_must_stop_waits_no_more(tmp_path):
    with small_disk(tmp_path / "disk", "2m") as disk:
        (disk / "filler").write_bytes(b"1" * (2 << 20))
        left = iter([False, False, True])

        in_vain = room.wait_for_space(str(disk), lambda: next(left), patience=60)
        (disk / "filler").unlink()
        then = room.wait_for_space(str(disk), lambda: False, patience=60)

        assert (in_vain, then) == (False, True)
        assert os.listdir(disk) == []


@pytest.mark.parametrize("how", [*room.FULL, chain_rule.OUT_OF_MEMORY])
def test_a_run_that_is_forgiven_goes_on(run, how):  # noqa: F811
    job(run, "", how=how, reason="full")
    before = resume_evidence.verdict_on(run, PLAN)

    room.forgive(run, "17_3")

    assert before.decision == chain_rule.GIVE_UP
    assert resume_evidence.verdict_on(run, PLAN).decision == chain_rule.GO_ON
    assert room.last_end(run).how == how


@pytest.fixture
def slots(tmp_path, fake_nvml, monkeypatch):  # noqa: F811
    """Three workers of one job, on GPUs of a driver that the test made."""
    monkeypatch.setenv("RABASKA_NVML", str(fake_nvml))
    made = [room.Slots(str(tmp_path / "slots"), slot, guarded=True) for slot in range(3)]
    for one in made:
        one.open()
    yield made
    for one in made:
        one.leave()


def test_a_trial_waits_while_the_gpu_has_no_room_beside_another(slots):
    first, second, _ = slots
    assert first.why_wait() == ""

    first.begin()
    young = second.why_wait()
    first.end(complete=True)
    first.begin()
    beside = second.why_wait()  # 12 of 40 GB are in use, by one trial
    files.write_json(os.path.join(first.folder, "peak"), {"gpu0": 30e9})
    full = second.why_wait()
    first.end(complete=True)

    assert "has not taken all its memory yet" in young
    assert beside == ""
    assert full == "gpu0 has 30.1 GB free, and a trial takes 33.0 GB"
    assert second.why_wait() == ""  # nobody is beside it


def test_the_last_worker_of_a_job_never_closes(slots):
    first, second, third = slots

    closed = [one.close() for one in (second, third, first)]

    assert closed == [True, True, False]
    assert not first.shared
