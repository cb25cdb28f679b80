"""PBS keeps the contract, with what OpenPBS's commands print."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from contract import DEMANDING, PLAIN, Printed, SchedulerContract
from hypothesis import given
from hypothesis import strategies as st
from recorded import recorded

from rabaska.domain.jobs import JobId, JobSpec, JobState, Prospect
from rabaska.schedulers import named
from rabaska.schedulers.pbs import Pbs

PBS = Pbs()
STATES = {
    "0": JobState.DONE, "1": JobState.FAILED, "2": JobState.TIMEOUT, "3": JobState.CANCELLED,
    "4": JobState.CANCELLED, "5": JobState.FAILED, "6": JobState.NEVER_RAN,
    "7": JobState.RUNNING, "8": JobState.QUEUED, "9": JobState.QUEUED, "10": JobState.HELD,
    "11": JobState.STOPPING, "15[]": JobState.RUNNING, "15[1]": JobState.RUNNING,
    "15[2]": JobState.QUEUED, "16": JobState.UNKNOWN,
}  # fmt: skip


class TestPbs(SchedulerContract):
    scheduler = PBS
    printed = Printed(
        submitted=recorded("pbs", "qsub.txt"),
        job="67.pbshost",
        status=recorded("pbs", "qstat.json"),
        states=STATES,
        refusals=tuple(recorded("pbs", "qsub-refused.txt").splitlines()),
        gone=("qdel: Unknown Job Id 99.pbshost", "qdel: Job has finished 0.pbshost"),
        shown={
            "Queue: gpu\n    queue_type = Execution\n    enabled = True\n    started = True\n": (
                Prospect()
            ),
            "Queue: gpu\n    enabled = True\n    started = False\n": Prospect(
                refusal="the queue starts no jobs: started = False"
            ),
            "qstat: Unknown queue nosuch\n": Prospect(refusal="Unknown queue nosuch"),
        },
    )


def options(spec: JobSpec) -> list[str]:
    """What stands after #PBS, line by line."""
    return [line.removeprefix("#PBS ") for line in PBS.directives(spec)]


def asking(**resources: object) -> JobSpec:
    return replace(PLAIN, resources=replace(PLAIN.resources, **resources))


def test_a_plain_job_is_asked_for_in_lines_that_people_could_have_written():
    assert options(PLAIN) == [
        "-N digits-7f3a",
        "-l walltime=03:00:00",
        "-l select=1:ncpus=1",
        "-m n",
        "-r y",
        "-S /bin/bash",
        "-j oe",
        "-o /store/runs/digits-7f3a/logs/",
    ]


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (asking(gpus=2, cores=4), "-l select=1:ncpus=4:ngpus=2"),
        (asking(memory=2**30), "-l select=1:ncpus=1:mem=1024mb"),
        (asking(nodes=2, tasks=4), "-l select=2:ncpus=4:mpiprocs=4"),
        (asking(exclusive=True), "-l place=excl"),
        (asking(walltime=timedelta(days=3)), "-l walltime=72:00:00"),
        (replace(PLAIN, features=("k80",)), "-l select=1:ncpus=1:feature=k80"),
        (replace(PLAIN, features=("gpu_model=v100",)), "-l select=1:ncpus=1:gpu_model=v100"),
        (replace(PLAIN, account="abc-123-aa"), "-A abc-123-aa"),
        (replace(PLAIN, queue="gpu"), "-q gpu"),
        (replace(PLAIN, mail="a@b.org"), "-m bea -M a@b.org"),
        (replace(PLAIN, requeue=False), "-r n"),
        (replace(PLAIN, native=("-P proj",)), "-P proj"),
    ],
)
def test_every_wish_has_its_line(spec, line):
    assert line in options(spec)


def test_each_link_waits_for_the_one_before():
    command = PBS.submit_command("/job.sh", PLAIN, after=JobId("67.pbshost"))

    assert command == ["qsub", "-W", "depend=afterany:67.pbshost", "/job.sh"]


def test_a_model_of_gpu_without_the_sites_word_for_it_is_told():
    spec = asking(gpus=1, gpu_model="v100")

    assert "no common word for a v100" in PBS.unmet(spec)[0]
    assert PBS.unmet(replace(spec, features=("gpu_model=v100",))) == []


def test_a_strange_folder_does_not_reach_the_directives():
    assert "-o /dev/null" in options(DEMANDING)


def test_an_unknown_job_does_not_hide_the_others():
    partial = PBS.capabilities.partial_answers

    assert {35, 153} <= set(partial)
    assert PBS.read_status('{\n\t"timestamp":1,\n\t"pbs_server":"pbshost"\n}\n') == {}


def test_why_a_job_waits_and_how_it_ended_are_kept_in_the_clusters_words():
    found = PBS.read_status(recorded("pbs", "qstat.json"))

    assert found["8"].reason.startswith("Can Never Run: Insufficient amount of resource")
    assert "afterany:7" in found["9"].reason
    assert found["2"].spelled == "F, Exit_status -29"
    assert (found["1"].exit_code, found["3"].exit_code, found["5"].exit_code) == (3, 143, 137)
    assert found["6"].exit_code is None


def test_a_variable_that_is_no_json_hides_neither_its_job_nor_the_next():
    text = recorded("pbs", "qstat.json")
    broken = text.replace('"ZIP":123', '"ZIP":00123"quote"', 12)

    found = PBS.read_status(broken)

    assert found["7"].state is JobState.RUNNING
    assert found["15[2]"].state is JobState.QUEUED
    assert "0" not in found


@given(letter=st.text(min_size=1))
def test_an_unheard_of_state_is_unknown_and_not_over(letter):
    known = "QWTHBRSUEFX"

    text = json.dumps({"Jobs": {"5.host": {"job_state": letter}}})
    status = PBS.read_status(text)["5"]

    assert letter in known or (status.state is JobState.UNKNOWN and status.spelled == letter)


@given(code=st.integers())
def test_only_the_exit_status_zero_is_done(code):
    text = json.dumps({"Jobs": {"5.host": {"job_state": "F", "Exit_status": code}}})

    assert (PBS.read_status(text)["5"].state is JobState.DONE) == (code == 0)


def test_it_is_found_by_name():
    assert named("pbs", program=(), queue="") == PBS
