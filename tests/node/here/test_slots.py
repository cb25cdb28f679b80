"""Jobs wait in line and run in order, never more of them at once than there are slots."""

import subprocess
import threading

import pytest
from toy_queue import Here, until

NOTES = "echo begin $RABASKA_JOB_ID >> notes; sleep {}; echo end $RABASKA_JOB_ID >> notes"


def begun(here: Here) -> list[str]:
    return [line.split()[1] for line in here.lines("notes") if line.startswith("begin")]


def most_at_once(here: Here) -> int:
    now = most = 0
    for line in here.lines("notes"):
        now += 1 if line.startswith("begin") else -1
        most = max(most, now)
    return most


def fake_gpus(here: Here, count: int) -> None:
    tools = here.folder / "tools"
    tools.mkdir()
    listed = "\n".join(f"GPU {n}: NVIDIA A100 (UUID: GPU-{n}{n})" for n in range(count))
    (tools / "nvidia-smi").write_text(f"#!/bin/sh\ncat <<'END'\n{listed}\nEND\n")
    (tools / "nvidia-smi").chmod(0o755)
    here.variables["PATH"] = f"{tools}:{here.variables['PATH']}"


def test_jobs_run_one_after_another_in_the_order_they_came(here):
    jobs = [here.submit(NOTES.format(0.1)) for _ in range(4)]

    here.wait()

    assert begun(here) == [f"{job}_1" for job in jobs]
    assert most_at_once(here) == 1


def test_two_slots_run_two_jobs_at_once_and_no_more(here):
    here.variables["RABASKA_SLOTS"] = "2"
    jobs = [here.submit(NOTES.format(0.7)) for _ in range(4)]

    here.wait()

    assert sorted(begun(here)[:2]) == [f"{job}_1" for job in jobs[:2]]
    assert sorted(begun(here)[2:]) == [f"{job}_1" for job in jobs[2:]]
    assert most_at_once(here) == 2


def test_the_slots_of_a_queue_can_be_written_down(here):
    here.queue.mkdir()
    (here.queue / "capacity.json").write_text('{"slots": 3}')
    for _ in range(3):
        here.submit("echo x >> begun; until [ $(wc -l < begun) = 3 ]; do sleep 0.1; done")

    here.wait()

    assert set(here.states().values()) == {"DONE"}


def test_a_chain_goes_on_before_a_younger_job_begins(here):
    here.submit(NOTES.format(0.2), "--elements=3")
    here.submit(NOTES.format(0))

    here.wait()

    assert begun(here) == ["1_1", "1_2", "1_3", "2_1"]


def test_a_small_job_does_not_pass_a_big_one_that_came_first(here):
    fake_gpus(here, 2)
    here.submit(NOTES.format(1), "--gpus=1")
    here.submit(NOTES.format(0), "--gpus=2")
    here.submit(NOTES.format(0), "--gpus=1")

    here.wait()

    assert begun(here) == ["1_1", "2_1", "3_1"]


def test_jobs_at_the_same_time_get_gpus_of_their_own(here):
    fake_gpus(here, 2)
    meet = "echo $CUDA_VISIBLE_DEVICES >> gpus; until [ $(wc -l < gpus) = 2 ]; do sleep 0.1; done"
    here.submit(meet)
    here.submit(meet, "--gpus=1")
    here.submit("echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER >> gpus", "--gpus=2")

    here.wait()

    assert sorted(here.lines("gpus")[:2]) == ["0", "1"]
    assert here.lines("gpus")[2] == "0,1 PCI_BUS_ID"


def test_without_gpus_the_program_sees_what_the_user_set(here):
    here.variables["CUDA_VISIBLE_DEVICES"] = "mine"
    here.submit("echo $CUDA_VISIBLE_DEVICES > gpus")

    here.wait()

    assert here.lines("gpus") == ["mine"]


@pytest.mark.parametrize("gpus", [0, 1])
def test_more_gpus_than_there_are_is_refused_at_once(here, gpus):
    fake_gpus(here, gpus)

    refused = here.run("submit", here.script("true", f"--gpus={gpus + 1}"))

    assert refused.returncode == 1
    assert f"asks for {gpus + 1} GPU(s)" in refused.stderr
    assert refused.stdout == ""
    assert here.states() == {}


def test_submissions_at_the_same_moment_get_different_numbers(here):
    script = here.script("true")
    done: list[subprocess.CompletedProcess[str]] = []
    threads = [
        threading.Thread(target=lambda: done.append(here.run("submit", script))) for _ in range(6)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    here.wait()

    assert sorted(one.stdout for one in done) == [f"here job {n}\n" for n in range(1, 7)]
    assert set(here.states().values()) == {"DONE"}


@pytest.mark.slow
def test_ten_chains_queue_up_and_all_finish(here):
    here.variables["RABASKA_SLOTS"] = "2"
    for _ in range(10):
        here.submit(NOTES.format(0.05), "--elements=2")

    here.wait()

    assert set(here.states().values()) == {"DONE"}
    assert len(begun(here)) == 20
    assert most_at_once(here) <= 2


def test_status_says_what_a_queued_job_waits_for(here):
    here.submit("sleep 60", "--elements=2")
    here.submit("true")
    until(lambda: here.state(1) == "RUNNING")

    shown = here.status()

    assert shown["1_2"][:3] == ["QUEUED", "", "waits for the one before"]
    assert shown["2_1"][:3] == ["QUEUED", "", "waits for its turn"]
