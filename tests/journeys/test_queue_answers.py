"""A queue that complained, or said nothing, is not an empty one, whatever the scheduler."""

import pytest

from rabaska.domain.jobs import JobState, JobStatus
from rabaska.domain.runs import RunState
from rabaska.schedulers import SCHEDULERS, named
from rabaska.steps.query_status import read_queue
from rabaska.steps.read_status import _how

BY_ID = ("pbs", "torque")
LISTED = ("slurm", "sge", "moab", "sqsub", "flux")
# What each prints when the user has no job, as their recordings and notes have it.
EMPTY = {
    "slurm": "slurm|JOBID|STATE|REASON|.\n",
    "sge": "<?xml version='1.0'?>\n<job_info>\n  <queue_info>\n  </queue_info>\n</job_info>\n",
    "moab": '<Data><Object>queue</Object><queue count="0" option="active"></queue></Data>\n',
    "sqsub": "2460 CPUs total, 837 idle, 1623 busy; 1251 jobs running; 0 suspended\n",
    "flux": "flux|JOBID|STATUS|RC|URG|T_RUN|DEPENDENCIES|EXCEPTION-TYPE|EXCEPTION-NOTE|NAME|.\n",
}
COMPLAINTS = (
    "",
    "qstat: PBS is not configured to maintain job history 56.control\n",
    "bash: warning: setlocale: LC_ALL: cannot change locale (en_US.UTF-8)\n",
    "qstat: cannot connect to server control (errno=15010)\n",
    "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
    "qstat: Unknown Job Id 57.control\n",  # another one
    "qstat: Unknown Job Id 156.control\n",
)
BOTH_CODES = [(complaint, code) for complaint in COMPLAINTS[1:] for code in (0, 153)]


def read(scheduler, said="", complained="", code=0, asked=()):
    queue = {"exit_code": code, "said": said, "complained": complained, "asked": list(asked)}
    return read_queue(queue, None, named(scheduler, program=("python3", "x"), queue="q"))


def test_every_scheduler_is_asked_in_one_of_these_ways():
    asked = {*BY_ID, *LISTED, "local"}  # `local` is our own program

    assert SCHEDULERS.keys() - asked == set(), "add it to LISTED and EMPTY, or to BY_ID"


@pytest.mark.parametrize("scheduler", LISTED)
@pytest.mark.parametrize("complaint", COMPLAINTS)
def test_a_list_that_is_not_there_is_no_empty_list(scheduler, complaint):
    assert read(scheduler, complained=complaint)[0] is None
    assert read(scheduler, said=complaint)[0] is None


@pytest.mark.parametrize("scheduler", LISTED)
def test_a_queue_without_jobs_says_so(scheduler):
    assert read(scheduler, said=EMPTY[scheduler]) == ({}, "")


@pytest.mark.parametrize("scheduler", BY_ID)
# Slurm's qstat has an exit code for jobs that it does not know, and no words.
@pytest.mark.parametrize(("complaint", "code"), [(COMPLAINTS[0], 0), *BOTH_CODES])
def test_a_job_of_which_nothing_was_said_is_unknown_and_not_gone(scheduler, complaint, code):
    queue, _ = read(scheduler, complained=complaint, code=code, asked=["56.control"])

    assert queue["56"].state is JobState.UNKNOWN
    assert complaint.strip() in queue["56"].reason


@pytest.mark.parametrize("scheduler", BY_ID)
@pytest.mark.parametrize("known", ["Unknown Job Id 56.control", "Unknown Job Id Error 56.control"])
def test_a_job_that_the_queue_does_not_know_is_gone(scheduler, known):
    assert read(scheduler, complained=f"qstat: {known}\n", code=153, asked=["56.control"]) == (
        {},
        "",
    )


@pytest.mark.parametrize("scheduler", sorted(SCHEDULERS))
def test_a_command_that_failed_did_not_answer(scheduler):
    assert read(scheduler, complained="no\n", code=255) == (None, "no")


@pytest.mark.parametrize("state", [JobState.DONE, JobState.FAILED])
@pytest.mark.parametrize(
    ("silent", "run", "how"),
    [
        (2.0, RunState.RUNNING, ""),
        (2.0, RunState.FINISHED, "finished"),
        (2.0, RunState.INTERRUPTED, "lost"),
        (40.0, RunState.RUNNING, "lost"),
    ],
)
def test_a_job_that_ended_after_its_records_were_read_is_not_lost(state, silent, run, how):
    read_before = {
        "how": "running",
        "id": "7_1",
        "holder_alive": True,
        "heartbeat": 1000.0 - silent,
    }

    assert _how(read_before, {"7_1": JobStatus(state)}, now=1000.0, state=run) == how
