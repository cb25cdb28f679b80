"""After kill -9, a reboot or a damaged file, the queue tells the truth and goes on."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest
from toy_queue import Here, until

from rabaska.node import processes

WORK = """
trap '' TERM
touch "$RABASKA_LOCAL/data"
echo $$ > pid.x; mv pid.x pid
sleep 60; sleep 60
"""


def running_program(here: Here) -> int:
    until((here.folder / "pid").exists, "the program wrote its pid")
    return int((here.folder / "pid").read_text())


def test_a_killed_keeper_loses_its_element_and_is_never_done(here):
    here.submit(WORK, "--elements=3")
    running_program(here)

    here.kill_keeper(1)

    assert here.states() == {"1_1": "LOST", "1_2": "NEVER_RAN", "1_3": "NEVER_RAN"}


def test_the_next_command_ends_what_a_killed_keeper_left(here):
    here.submit(WORK)
    program = running_program(here)
    here.kill_keeper(1)
    left_before = here.local_folders()

    here.run("status")

    assert len(left_before) == 1
    assert here.local_folders() == []
    assert processes.start_id(program) is None
    assert here.active() == []


def test_a_waiting_job_takes_the_slot_of_a_killed_keeper_by_itself(here):
    here.submit(WORK)
    program = running_program(here)
    # A dead process that nobody has buried yet (Z) does no more work.
    here.submit(f"ps -o stat= -p {program} | grep -q '^[^Z]' && touch two-at-once; touch ran")

    here.kill_keeper(1)
    until((here.folder / "ran").exists, "the next job ran, and nobody typed a command")
    here.wait()

    assert not (here.folder / "two-at-once").exists()
    assert here.states() == {"1_1": "LOST", "2_1": "DONE"}


def test_a_job_killed_in_the_queue_never_ran_and_blocks_nobody(here):
    here.submit("until [ -e go ]; do sleep 0.1; done")
    here.submit("touch ran")
    here.submit("true")

    here.kill_keeper(2)
    (here.folder / "go").touch()
    here.wait()

    assert here.states() == {"1_1": "DONE", "2_1": "NEVER_RAN", "3_1": "DONE"}
    assert not (here.folder / "ran").exists()


def test_elements_that_ended_before_the_accident_keep_their_end(here):
    here.submit("[ $RABASKA_JOB_ID = 1_1 ] || { touch second; sleep 60; }", "--elements=3")
    until((here.folder / "second").exists)

    here.kill_keeper(1)

    assert here.states() == {"1_1": "DONE", "1_2": "LOST", "1_3": "NEVER_RAN"}


def test_a_keeper_told_to_stop_ends_its_program_first(here):
    here.submit("trap 'touch saved; exit 0' TERM; touch ready; sleep 60 & wait", "--elements=2")
    until((here.folder / "ready").exists)

    os.kill(here.keeper(1), signal.SIGTERM)
    here.wait()

    assert (here.folder / "saved").exists()
    assert here.states() == {"1_1": "LOST", "1_2": "NEVER_RAN"}
    assert here.local_folders() == []


@pytest.mark.parametrize("record", ["1.ended.json", "1.begun.json", "job.json"])
@pytest.mark.parametrize("damage", [b"", b'{"state": "DO', b"\xff\xfe\0", b"[]", b'{"id": 1}'])
def test_a_damaged_record_hides_no_other_job(here, record, damage):
    here.submit("true", "--elements=2")
    here.submit("true")
    here.wait()

    (here.queue / "jobs" / "1" / record).write_bytes(damage)
    shown = here.states()

    assert shown["2_1"] == "DONE"
    assert shown.get("1_2", "DONE") == "DONE"
    assert "1_1" in shown or shown["1"] == "UNKNOWN"
    if record == "1.ended.json":
        assert shown["1_1"] == "UNKNOWN"


def test_a_damaged_record_of_a_dead_job_does_not_block_the_queue(here):
    here.submit(WORK)
    program = running_program(here)
    here.kill_keeper(1)
    (here.queue / "jobs" / "1" / "job.json").write_bytes(b"{")

    job = here.submit("true")
    here.wait()
    os.kill(program, signal.SIGKILL)

    assert here.state(job) == "DONE"


def test_a_submission_cut_short_leaves_no_job(here):
    here.submit("true")
    (here.queue / "jobs" / "2").mkdir()

    job = here.submit("true")
    here.wait()

    assert job == 3
    assert here.states() == {"1_1": "DONE", "3_1": "DONE"}


def kill_at_a_random_moment(here: Here, chance: random.Random) -> None:
    """Run a chain, kill its keeper at some moment, and look whether all that is said is true."""
    (here.folder / "facts").unlink(missing_ok=True)
    job = here.submit(
        "echo begin $RABASKA_JOB_ID >> facts; sleep 0.1; echo end $RABASKA_JOB_ID >> facts",
        "--elements=3",
    )
    keeper = here.keeper(job)
    time.sleep(chance.uniform(0, 0.9))
    processes.signal_all([keeper], signal.SIGKILL)
    until(lambda: processes.start_id(keeper) is None)

    said = here.states(job)

    began = [line.split()[1] for line in here.lines("facts") if line.startswith("begin")]
    finished = {line.split()[1] for line in here.lines("facts") if line.startswith("end")}
    for element, state in said.items():
        assert state in ("DONE", "LOST", "NEVER_RAN")
        assert state != "DONE" or element in finished
        assert state != "NEVER_RAN" or element not in began
    assert len(began) == len(set(began))
    assert here.local_folders() == []
    assert here.active() == []


def kill_often(here: Here, times: int) -> None:
    for seed in range(times):
        kill_at_a_random_moment(here, random.Random(seed))

    after = here.submit("true")
    here.wait()

    assert here.state(after) == "DONE"


def test_a_keeper_killed_at_a_random_moment_leaves_the_truth(here):
    kill_often(here, 4)


@pytest.mark.slow
def test_a_keeper_killed_at_forty_random_moments_leaves_the_truth(here):
    kill_often(here, 40)


# Dies of kill -9 at its nth dealing with the queue's files; past the last of them it submits.
KILLED_AT = """
import os, signal, sys
from rabaska.node.here.commands import main

moments, submission = int(sys.argv[1]), os.getpid()

def die_in_time(event, about):
    global moments
    moments -= "/queue" in str(about[:1]) and os.getpid() == submission
    if moments < 0:
        signal.raise_signal(signal.SIGKILL)

sys.addaudithook(die_in_time)
sys.exit(main(sys.argv[3:]))
"""


def kill_submission(here: Here, moment: int) -> bool:
    """Whether there was such a moment, and the submission died in it."""
    words = [sys.executable, "-c", KILLED_AT, str(moment), *here.words("submit")[3:]]
    done = subprocess.run(
        [*words, here.script("true")], cwd=here.folder, env=here.variables, check=False
    )
    return done.returncode == -signal.SIGKILL


@pytest.mark.slow
def test_a_submission_killed_at_any_moment_leaves_a_queue_that_works(here):
    moments = 0
    while kill_submission(here, moments):
        moments += 1

    after = here.submit("true")
    here.wait()

    assert moments > 10
    assert here.state(after) == "DONE"
    assert set(here.states().values()) <= {"DONE", "NEVER_RAN"}
