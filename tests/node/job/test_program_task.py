"""Of several processes, the one that failed by itself is the cause, not those srun killed then."""

import os
import socket
import subprocess
import sys

import pytest

from rabaska.node.job import program_task
from rabaska.node.job.program_process import ProgramEnd, explain_exit
from rabaska.node.job.stop_signals import Stop
from rabaska.node.record import chain_rule

KILLED_BY_SRUN = explain_exit(137, None)


@pytest.fixture
def noted(tmp_path):
    return tmp_path / "failures.jsonl"


def task(noted, script: str) -> "subprocess.Popen[bytes]":
    """A task whose input stays open, as it does for as long as the agent lives."""
    words = [sys.executable, "-m", "rabaska.node", "task", "--failures", str(noted), "--"]
    return subprocess.Popen(
        [*words, "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=dict(os.environ, SLURM_PROCID="5"),
    )  # fmt: skip


def test_a_task_notes_how_its_process_failed(noted):
    with task(noted, "exit 3") as failing:
        assert failing.wait() == 3

    first = program_task.first(str(noted))
    assert first is not None
    assert (first.code, first.rank) == (3, 5)


def test_what_ends_well_or_after_a_signal_notes_nothing(noted):
    with task(noted, "exit 0") as ending_well:
        assert ending_well.wait() == 0
    with task(noted, "echo ready; sleep 0.5; exit 3") as ended:
        assert ended.stdout is not None
        ended.stdout.readline()
        ended.terminate()
        assert ended.wait() == 3

    assert program_task.first(str(noted)) is None


def test_the_first_is_blamed_and_says_who_it_is(noted):
    program_task.note(str(noted), 1, "3")
    program_task.note(str(noted), 143, "0")

    end = program_task.explained_by_first_failure(KILLED_BY_SRUN, program_task.first(str(noted)))

    assert (end.how, end.exit_code) == (chain_rule.CRASHED, 1)
    assert end.reason.startswith("process 3 on ")
    assert end.reason.endswith(" failed first: the program ended with exit code 1")


def test_a_launcher_of_several_has_no_rank(noted):
    program_task.note(str(noted), 1, None)

    end = program_task.explained_by_first_failure(KILLED_BY_SRUN, program_task.first(str(noted)))

    assert end.reason == f"{socket.gethostname()} failed first: the program ended with exit code 1"


def test_one_that_was_killed_for_its_memory_is_still_killed(noted):
    program_task.note(str(noted), 137, "1")

    assert (
        program_task.explained_by_first_failure(KILLED_BY_SRUN, program_task.first(str(noted))).how
        == chain_rule.KILLED
    )


def test_a_program_that_was_asked_to_stop_is_not_blamed(noted):
    program_task.note(str(noted), 1, "3")
    asked = ProgramEnd(chain_rule.TIME_LIMIT, "", 1, stop=Stop(chain_rule.TIME_LIMIT, ""))

    assert program_task.explained_by_first_failure(asked, program_task.first(str(noted))) == asked


def test_half_a_line_does_not_count(noted):
    noted.write_text('{"code": 1, "ho')
    assert program_task.first(str(noted)) is None
    assert program_task.explained_by_first_failure(KILLED_BY_SRUN, None) == KILLED_BY_SRUN
    program_task.note(str(noted), 2, "1")
    assert program_task.first(str(noted)).code == 2


def test_a_full_disk_costs_only_the_note():
    with task("/dev/full", "exit 3") as failing:
        assert failing.wait() == 3
