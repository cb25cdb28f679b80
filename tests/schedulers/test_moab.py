"""Moab keeps the contract, with what its commands print by all that is known.

Moab is sold and cannot be had for a test: its answers are replayed from public ones, and no
real Moab was asked.
"""

from dataclasses import replace

import pytest
from contract import PLAIN, Printed, SchedulerContract
from hypothesis import given
from hypothesis import strategies as st
from recorded import recorded
from shells import printed_by_bash

from rabaska.domain.jobs import JobId, JobSpec, JobState, TrialAnswer
from rabaska.schedulers import named
from rabaska.schedulers.moab import Moab

MOAB = Moab()
STATES = {
    "881196": JobState.RUNNING, "881197": JobState.RUNNING, "881201": JobState.QUEUED,
    "881202": JobState.HELD, "881203": JobState.HELD, "Moab.123": JobState.HELD,
    "881190": JobState.DONE, "881191": JobState.FAILED, "881192": JobState.CANCELLED,
    "881193": JobState.TIMEOUT,
}  # fmt: skip


class TestMoab(SchedulerContract):
    scheduler = MOAB
    printed = Printed(
        submitted=recorded("moab", "msub.txt"),
        job="4761849",
        status=recorded("moab", "showq.xml"),
        states=STATES,
        refusals=tuple(recorded("moab", "msub-refused.txt").splitlines()),
        history=recorded("moab", "checkjob.txt"),
        ended={
            "4761849": JobState.RUNNING,
            "4761850": JobState.DONE,
            "4761851": JobState.CANCELLED,
            "4761852": JobState.QUEUED,
        },
        gone=("ERROR:  invalid job specified (4761849)",),
        shown={
            "job 2165961 requires 8 procs for 1:12:00:00\n\n"
            "Estimated Rsv based start in                 3:31:22 on Fri Aug 15 12:40:10\n"
            "Estimated Rsv based completion in 1:15:31:22 on Sun Aug 17 00:40:10\n": TrialAnswer(
                start="in 3:31:22, on Fri Aug 15 12:40:10"
            ),
            "INFO:  cannot determine start time for job 2165961\n": TrialAnswer(),
        },
    )


def options(spec: JobSpec) -> list[str]:
    return [line.removeprefix("#PBS ") for line in MOAB.directives(spec)]


def test_the_script_of_the_tutorial_can_be_asked_for():
    resources = replace(PLAIN.resources, gpus=8)
    spec = replace(
        PLAIN, resources=resources, account="pje-224-aa", features=("k80",), mail="a@b.org",
        requeue=False,
    )  # fmt: skip

    lines = options(spec)

    wanted = ["-A pje-224-aa", "-l walltime=03:00:00", "-l nodes=1:gpus=8", "-l feature=k80"]
    assert [line for line in lines if line in wanted] == wanted
    assert "-m bea -M a@b.org" in lines
    assert "-r n" in lines


def test_cores_that_come_with_gpus_are_not_asked_for():
    spec = replace(PLAIN, resources=replace(PLAIN.resources, gpus=2, cores=3, tasks=2))

    helios = named("moab", program=(), queue="", names_cores=False)

    assert "#PBS -l nodes=1:gpus=2" in helios.directives(spec)
    assert "-l nodes=1:ppn=6:gpus=2" in options(spec)


@pytest.mark.parametrize(
    ("printed", "job"),
    [
        ("\n4761849\n", "4761849"),
        ("\nMoab.123\r\n", "Moab.123"),
        ("4364.orion\n", "4364.orion"),
        ("yuby.3\n", "yuby.3"),
    ],
)
def test_ids_of_every_form_are_read(printed, job):
    assert MOAB.read_job_id(printed) == JobId(job)


def test_each_job_waits_for_the_one_before():
    command = MOAB.submit_command("/job.sh", PLAIN, after=JobId("4761849"))

    assert command == ["msub", "-W", "depend=afterany:4761849", "/job.sh"]


def test_why_a_job_is_blocked_is_kept_in_moabs_words():
    found = MOAB.read_history(recorded("moab", "checkjob.txt"))

    assert "HARD MAXPROC limit of 160" in found["4761852"].reason


@given(state=st.from_regex(r"[A-Za-z]{1,12}", fullmatch=True))
def test_an_unheard_of_state_is_unknown_and_not_over(state):
    status = MOAB.read_status(f'<job JobID="5" State="{state}"/>')["5"]

    assert status.spelled == state
    assert not status.state.over or state in ("Vacated", "Removed", "Completed")


@given(code=st.text("0123456789CNLD-+ .²", max_size=6))
def test_only_the_completion_code_zero_is_done(code):
    status = MOAB.read_status(f'<job JobID="5" State="Completed" CompletionCode="{code}"/>')["5"]

    assert (status.state is JobState.DONE) == (
        code.lstrip("-") != ""
        and set(code) <= {"0", "-"}
        and code.count("-") <= code.startswith("-")
    )


def test_a_completed_job_without_a_code_is_not_done():
    assert MOAB.read_status('<job JobID="5" State="Completed"/>')["5"].state is JobState.FAILED


def test_inside_a_job_moabs_own_number_is_the_first_choice():
    expression = MOAB.in_job().job_id

    assert printed_by_bash(expression, MOAB_JOBID="Moab.12", PBS_JOBID="77.mgr") == "Moab.12"
    assert printed_by_bash(expression, PBS_JOBID="77.mgr") == "77"
