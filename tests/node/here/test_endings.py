"""Time limits and cancellation: nothing of a job is left, however it resists."""

import time
from pathlib import Path

import pytest
from toy_queue import until

from rabaska.node import processes

STUBBORN = """
python3 - <<'END'
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("pid.x", "w").write(str(os.getpid()))
os.rename("pid.x", "pid")
time.sleep(60)
END
"""

# A daemon as textbooks teach it, which also drops its environment when told to.
DAEMON = """
python3 - <<'END'
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open("pid.x", "w").write(str(os.getpid()))
        os.rename("pid.x", "pid")
        {}
        time.sleep(60)
    os._exit(0)
END
until [ -e pid ]; do sleep 0.05; done
"""
WITHOUT_TAG = 'os.execve("/bin/sleep", ["sleep", "60"], {})'


def pid_in(folder: Path) -> int:
    until((folder / "pid").exists, "the program wrote its pid")
    return int((folder / "pid").read_text())


def is_gone(pid: int) -> bool:
    return processes.start_id(pid) is None


def test_a_program_over_its_time_that_ignores_term_is_killed(here):
    here.submit(STUBBORN, "--time=1 --grace=1")
    program = pid_in(here.folder)

    here.wait()

    state, _, reason, started, ended = here.status(1)["1_1"][:5]
    assert (state, reason) == ("TIMEOUT", "it took longer than 1 s")
    assert float(ended) - float(started) >= 2
    assert is_gone(program)


@pytest.mark.parametrize("hide", ["pass", WITHOUT_TAG])
def test_a_double_forked_child_is_ended_at_the_time_limit(here, hide):
    here.submit(DAEMON.format(hide) + "sleep 60", "--time=1.5 --grace=1")
    daemon = pid_in(here.folder)

    here.wait()

    assert here.state(1) == "TIMEOUT"
    assert is_gone(daemon)


@pytest.mark.parametrize("hide", ["pass", WITHOUT_TAG])
def test_what_outlives_its_script_is_ended_and_the_script_is_still_done(here, hide):
    here.submit(DAEMON.format(hide), "--grace=0.5")

    here.wait()

    assert here.status(1)["1_1"][:2] == ["DONE", "0"]
    assert is_gone(pid_in(here.folder))


def test_the_script_is_asked_before_its_children(here):
    # The agent stands in the script's place and passes on a signal of the program's choice.
    here.submit(
        """
        trap 'echo script >> asked; kill -USR1 $child; wait $child; exit 0' TERM
        bash -c 'trap "echo program >> asked; exit 0" USR1; trap "echo term >> asked" TERM
                 touch ready; while :; do sleep 0.1; done' &
        child=$!
        wait $child
        """,
        "--grace=10",
    )
    until((here.folder / "ready").exists)

    here.run("cancel", 1)
    here.wait()

    assert here.lines("asked") == ["script", "program"]
    assert here.status(1)["1_1"][:2] == ["CANCELLED", "0"]


def test_the_next_element_begins_after_a_time_limit(here):
    here.submit("echo $RABASKA_JOB_ID >> begun; sleep 60", "--time=0.5 --elements=2")

    here.wait()

    assert here.lines("begun") == ["1_1", "1_2"]
    assert here.states() == {"1_1": "TIMEOUT", "1_2": "TIMEOUT"}


def test_a_cancelled_job_is_stopping_until_it_is_cancelled(here):
    here.submit(STUBBORN, "--grace=3 --elements=2")
    program = pid_in(here.folder)

    here.run("cancel", 1)
    between = here.states()
    here.wait()

    assert between == {"1_1": "STOPPING", "1_2": "QUEUED"}
    assert here.states() == {"1_1": "CANCELLED", "1_2": "CANCELLED"}
    assert is_gone(program)
    assert here.local_folders() == []


def test_a_job_cancelled_in_the_queue_never_starts(here):
    here.submit("until [ -e go ]; do sleep 0.1; done")
    here.submit("touch ran")

    here.run("cancel", 2)
    until(lambda: here.state(2) == "CANCELLED")
    (here.folder / "go").touch()
    here.wait()

    assert here.states() == {"1_1": "DONE", "2_1": "CANCELLED"}
    assert not (here.folder / "ran").exists()


def test_one_element_can_be_cancelled_and_the_chain_goes_on(here):
    here.submit(
        "[ $RABASKA_JOB_ID = 1_3 ] || { touch begun-$RABASKA_JOB_ID; sleep 60; }", "--elements=3"
    )
    until((here.folder / "begun-1_1").exists)

    here.run("cancel", "1_2", "1_1")
    here.wait()

    assert here.states() == {"1_1": "CANCELLED", "1_2": "CANCELLED", "1_3": "DONE"}
    assert not (here.folder / "begun-1_2").exists()


def test_what_comes_after_an_element_can_be_cancelled_and_it_goes_on_itself(here):
    here.submit("touch begun-$RABASKA_JOB_ID; until [ -e go ]; do sleep 0.1; done", "--elements=3")
    until((here.folder / "begun-1_1").exists)

    here.run("cancel", "--rest", "1_1")
    (here.folder / "go").touch()
    here.wait()

    assert here.states() == {"1_1": "DONE", "1_2": "CANCELLED", "1_3": "CANCELLED"}
    assert not (here.folder / "begun-1_2").exists()


def test_cancelling_what_is_over_changes_nothing(here):
    here.submit("true")
    here.wait()

    done = here.run("cancel", 1)

    assert done.returncode == 0
    assert here.state(1) == "DONE"


def test_cancelling_an_unknown_job_says_so_and_cancels_the_others(here):
    here.submit("sleep 60")

    done = here.run("cancel", "77", "1")
    here.wait()

    assert done.returncode == 1
    assert "no job 77" in done.stderr
    assert here.state(1) == "CANCELLED"


def test_a_stopped_program_does_not_hold_up_its_end(here):
    here.submit("echo $$ > pid.x; mv pid.x pid; kill -STOP $$", "--grace=30")
    program = pid_in(here.folder)
    before = time.monotonic()

    here.run("cancel", 1)
    here.wait()

    assert is_gone(program)
    assert time.monotonic() - before < 30
