"""Torque keeps the contract, with what its commands print, and Slurm's of the same names."""

import os
import pwd
from dataclasses import replace
from datetime import timedelta

import pytest
from contract import PLAIN, Printed, SchedulerContract
from hypothesis import given
from hypothesis import strategies as st
from recorded import printed, recorded
from shells import printed_by_bash

from rabaska.domain.jobs import JobId, JobSpec, JobState, TrialAnswer
from rabaska.schedulers.torque import Torque

TORQUE = Torque()
STATES = {
    "0": JobState.DONE, "1": JobState.FAILED, "2": JobState.TIMEOUT, "3": JobState.CANCELLED,
    "4": JobState.QUEUED,  # for ever: what it waits for failed
    "5": JobState.FAILED,
    "6": JobState.FAILED,  # its shell was killed: nobody deleted it
    "7": JobState.RUNNING,
    "8": JobState.CANCELLED,  # while it waited
    "9": JobState.RUNNING,  # it waited for 8, and began when that was deleted
    "10": JobState.HELD, "11": JobState.HELD, "12": JobState.SUSPENDED, "13": JobState.QUEUED,
    "14": JobState.QUEUED,
    "15": JobState.RUNNING,  # run again, with the exit status of its first time
}  # fmt: skip
REFUSALS = recorded("torque", "qsub-refused.txt").splitlines()


class TestTorque(SchedulerContract):
    scheduler = TORQUE
    printed = Printed(
        submitted=recorded("torque", "qsub.txt"),
        job="0.control",
        status=printed("torque", "qstat.txt"),
        states=STATES,
        refusals=tuple(line for line in REFUSALS if line.startswith("qsub: ")),
        gone=(
            "qdel: Unknown Job Id Error 99.tqhost",
            "qdel: nonexistent job id: 99",
            *(line for line in recorded("torque", "qdel.txt").splitlines() if "qdel:" in line),
        ),
        shown={
            "Queue: gpu\n    queue_type = Execution\n    enabled = False\n    started = True\n": (
                TrialAnswer(refusal="the queue takes no jobs: enabled = False")
            ),
        },
    )


class TestSlurmsOwnQsub(SchedulerContract):
    scheduler = TORQUE
    printed = Printed(
        submitted="11\n",
        job="11",
        status=recorded("torque", "qstat-slurm.txt"),
        states={"1": JobState.FAILED, "2": JobState.RUNNING, "3": JobState.QUEUED},
        refusals=("There was an error running the Slurm sbatch command.\nThe command was:\n",),
        gone=("exit code 1",),  # its qdel says nothing
        shown={
            "Queue: gpu\n    queue_type = Execution\n    enabled = False\n    started = True\n": (
                TrialAnswer(refusal="the queue takes no jobs: enabled = False")
            ),
        },
    )


def options(spec: JobSpec) -> list[str]:
    return [line.removeprefix("#PBS ") for line in TORQUE.directives(spec)]


def asking(**resources: object) -> JobSpec:
    return replace(PLAIN, resources=replace(PLAIN.resources, **resources))


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (PLAIN, "-l nodes=1"),
        (asking(gpus=8), "-l nodes=1:gpus=8"),
        (asking(gpus=1, cores=2, gpu_model="k80"), "-l nodes=1:ppn=2:gpus=1:k80"),
        (replace(PLAIN, features=("bigmem",)), "-l nodes=1:bigmem"),
        (asking(memory=2**31), "-l mem=2048mb"),
        (asking(memory=2**31, nodes=2, cores=2, tasks=2), "-l pmem=512mb"),
        (asking(walltime=timedelta(days=2)), "-l walltime=48:00:00"),
        (replace(PLAIN, account="pje-224-aa"), "-A pje-224-aa"),
        (replace(PLAIN, mail="a@b.org"), "-m bea -M a@b.org"),
        (replace(PLAIN, requeue=False), "-r n"),
    ],
)
def test_every_wish_has_its_line(spec, line):
    assert line in options(spec)


def test_the_account_stands_before_the_resources():
    lines = options(replace(PLAIN, account="pje-224-aa"))

    assert lines.index("-A pje-224-aa") < lines.index("-l nodes=1")


def test_each_job_waits_for_the_one_before():
    command = TORQUE.submit_command("/job.sh", PLAIN, after=JobId("7.tqhost"))

    assert command == ["qsub", "-W", "depend=afterany:7.tqhost", "/job.sh"]


def test_an_interactive_job_is_given_one_executable_file():
    command = TORQUE.interactive_command(PLAIN, "/store/shells/x/enter.sh", terminal=True)

    assert command[:2] == ["qsub", "-I"]
    assert command[-2:] == ["-x", "/store/shells/x/enter.sh"]


def test_exit_codes_are_told_as_a_shell_tells_them():
    found = TORQUE.read_status(printed("torque", "qstat.txt"))

    codes = [found[job].exit_code for job in ("1", "2", "5", "6", "15")]
    assert codes == [3, None, 137, 137, None]


def test_each_job_that_waits_has_a_reason_of_its_own():
    found = TORQUE.read_status(printed("torque", "qstat.txt"))

    assert {job: found[job].reason for job in ("4", "8", "10", "11", "13", "14")} == {
        "4": "waits: afterok:1.control",
        "8": "before it began",
        "10": "held by its user",
        "11": "held by its user",
        "13": "Not Running: Not enough of the right type of nodes are available",
        "14": "Not Running: Queue not started.",
    }


def test_jobs_that_are_over_are_gone_where_none_are_kept():
    told = recorded("torque", "qstat-no-history.txt")

    assert TORQUE.read_status(told).keys() == {"9"}
    assert "qstat: Unknown Job Id Error 7.control" in told
    assert "-- exit code 153" in told


def test_a_job_whose_node_is_gone_cannot_be_deleted():
    said = "qdel: Server could not connect to MOM 0.control"  # as a real one says

    able = TORQUE.capabilities

    assert able.is_on_lost_node(said)
    assert not able.is_gone(said)


def test_a_server_that_is_down_is_asked_once_and_answers_nothing():
    told = recorded("torque", "qstat-no-server.txt")

    assert TORQUE.read_status(told) == {}
    assert told.count("qstat: cannot connect to server") == 1
    assert "-- exit code 111" in told


@given(letter=st.from_regex(r"[A-Za-z]{1,3}", fullmatch=True))
def test_an_unheard_of_state_is_unknown_and_not_over(letter):
    text = f"<Data><Job><Job_Id>5.host</Job_Id><job_state>{letter}</job_state></Job></Data>"

    status = TORQUE.read_status(text)["5"]

    assert letter in "QWTHRSEC" or (status.state is JobState.UNKNOWN and status.spelled == letter)


@given(code=st.integers() | st.text("0123456789²-+. ", max_size=5))
def test_only_the_exit_status_zero_is_done(code):
    text = (
        "<Data><Job><Job_Id>5.host</Job_Id><job_state>C</job_state>"
        f"<exit_status>{code}</exit_status><start_count>1</start_count></Job></Data>"
    )

    done = TORQUE.read_status(text)["5"].state is JobState.DONE

    assert not done or int(code) == 0


def test_inside_a_job_its_number_and_its_end_are_known():
    inside = TORQUE.in_job()

    assert printed_by_bash(inside.job_id, PBS_JOBID="14.tqhost.example.org") == "14"
    assert printed_by_bash(inside.job_id, SLURM_JOB_ID="15") == "15"
    later = int(printed_by_bash(inside.ends, PBS_WALLTIME="100000"))
    assert later - int(printed_by_bash(inside.ends)) in range(99_990, 100_003)


def test_the_rest_of_the_chain_is_found_by_its_name():
    told = printed_by_bash(TORQUE.in_job().cancel_rest.replace("{name}", "cats-7f3a"))

    mine = f"qselect -u {pwd.getpwuid(os.getuid()).pw_name} -N cats-7f3a -s HQW"
    assert told.startswith(f"sh -c '{mine} | xargs -r -n 1 qdel")
