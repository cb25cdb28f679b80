"""Slurm keeps the contract, with what its real commands printed."""

import subprocess
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from contract import DEMANDING, PLAIN, Printed, SchedulerContract
from hypothesis import given
from hypothesis import strategies as st

from rabaska.domain.jobs import JobId, JobSpec, JobState, Resources, TrialAnswer
from rabaska.schedulers import named
from rabaska.schedulers.slurm import Slurm

RECORDINGS = Path(__file__).parents[1] / "recordings" / "slurm"
SLURM = Slurm()

HELD = JobState.HELD
STATES = {
    "1": JobState.DONE, "2": JobState.FAILED, "3": JobState.FAILED, "4": JobState.CANCELLED,
    "5": JobState.FAILED, "6_1": JobState.RUNNING, "6_2": JobState.QUEUED, "6_3": JobState.QUEUED,
    "6_4": JobState.QUEUED, "7_1": HELD, "7_3": HELD, "7_5": HELD, "7_6": HELD, "7_7": HELD,
    "8": HELD, "9": JobState.QUEUED,
}  # fmt: skip


def recorded(name: str) -> str:
    return (RECORDINGS / name).read_text()


class TestSlurm(SchedulerContract):
    scheduler = SLURM
    printed = Printed(
        submitted=recorded("sbatch.txt"),
        job="1",
        status=recorded("squeue.txt"),
        states=STATES,
        refusals=tuple(recorded("sbatch-refused.txt").splitlines()),
        gone=("scancel: error: Kill job error on job id 99: Invalid job id specified",),
        shown={
            "sbatch: Job 1 to start at 2026-11-15T23:47:00 using 1 processors on nodes "
            "sdumont3170 in partition nvidia_dev\n": TrialAnswer(start="2026-11-15T23:47:00"),
            "sbatch: error: invalid partition specified: nope\n"
            "allocation failure: Invalid partition name specified\n": TrialAnswer(
                refusal="Invalid partition name specified"
            ),
        },
    )


def options(spec: JobSpec, scheduler: Slurm = SLURM) -> list[str]:
    """What stands after #SBATCH, line by line."""
    return [line.removeprefix("#SBATCH ") for line in scheduler.directives(spec)]


def asking(**resources: object) -> JobSpec:
    return replace(PLAIN, resources=replace(PLAIN.resources, **resources))


def test_a_plain_job_is_asked_for_in_three_lines_and_how_it_is_kept():
    assert options(PLAIN) == [
        "--job-name=digits-7f3a",
        "--time=0-03:00:00",
        "--output=/store/runs/digits-7f3a/logs/scheduler-%j.out",
        "--requeue",
        "--open-mode=append",
    ]


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (asking(gpus=2, gpu_model="v100"), "--gpus-per-node=v100:2"),
        (asking(gpus=1), "--gpus-per-node=1"),
        (asking(cores=4), "--cpus-per-task=4"),
        (asking(memory=22_000 * 10**6), "--mem=22000M"),
        (asking(nodes=2), "--nodes=2"),
        (asking(nodes=2, tasks=4), "--ntasks-per-node=4"),
        (asking(tasks=2), "--nodes=1"),
        (asking(exclusive=True), "--exclusive"),
        (asking(walltime=timedelta(days=31, seconds=1)), "--time=31-00:01:00"),
        (replace(PLAIN, account="def-prof"), "--account=def-prof"),
        (replace(PLAIN, queue="gdl"), "--partition=gdl"),
        (replace(PLAIN, features=("v100", "nvlink")), "--constraint=v100&nvlink"),
        (replace(PLAIN, jobs=10), "--array=1-10%1"),
        (replace(PLAIN, warn_before=timedelta(minutes=5)), "--signal=B:USR1@300"),
        (replace(PLAIN, mail="a@b.org"), "--mail-user=a@b.org"),
        (replace(PLAIN, mail="a@b.org"), "--mail-type=BEGIN,END,FAIL"),
        (replace(PLAIN, requeue=False), "--no-requeue"),
        (replace(PLAIN, native=("--licenses=matlab:1 # two",)), "--licenses=matlab:1 # two"),
    ],
)
def test_every_wish_has_its_line(spec, line):
    assert line in options(spec)


def test_a_site_may_want_gpus_as_generic_resources():
    old = named("slurm", program=(), queue="", gpus_as_gres=True)

    assert "--gres=gpu:v100:2" in options(asking(gpus=2, gpu_model="v100"), old)
    assert "--gres=gpu:1" in options(asking(gpus=1), old)
    assert not any("gres" in line for line in options(PLAIN, old))


def test_native_options_come_last_so_that_they_win():
    spec = replace(PLAIN, native=("--time=5", "--no-requeue"))

    assert options(spec)[-2:] == ["--time=5", "--no-requeue"]


def test_elements_that_wait_in_one_line_are_told_apart():
    together = SLURM.read_status(recorded("squeue-unexpanded.txt"))

    assert {job: status.state for job, status in together.items()} == STATES


def test_some_jobs_can_be_asked_about_alone():
    found = SLURM.read_status(recorded("squeue-of-jobs.txt"))

    assert {job: status.state for job, status in found.items()} == {
        job: state for job, state in STATES.items() if job != "2"
    }


def test_why_a_job_waits_is_kept_in_the_clusters_words():
    found = SLURM.read_status(recorded("squeue.txt"))

    assert found["9"].reason == "Resources"
    assert found["8"].reason == "DependencyNeverSatisfied"
    assert found["6_1"].reason == ""


def test_the_history_tells_exit_codes_of_what_is_over_only():
    found = SLURM.read_history(recorded("sacct.txt"))

    assert {job: status.state for job, status in found.items()} == {
        job: state for job, state in STATES.items() if job != "2"
    }
    assert (found["1"].exit_code, found["3"].exit_code, found["5"].exit_code) == (0, 3, 137)
    assert found["6_1"].exit_code is None
    assert found["4"].spelled == "CANCELLED by 23170"


@given(text=st.text())
def test_no_text_makes_the_reader_of_history_fail(text):
    assert isinstance(SLURM.read_history(text), dict)


@given(
    st.from_regex(r"[0-9]{1,5}_\[[0-9²٣,%-]{0,20}\]", fullmatch=True),
)
def test_strange_ranges_of_elements_make_nothing_fail(job):
    assert isinstance(SLURM.read_status(f"slurm|{job}|PENDING|None|."), dict)


def test_the_id_is_read_with_and_without_a_cluster_name():
    assert SLURM.read_job_id("1234;beluga\n") == JobId("1234")
    assert SLURM.read_job_id("Submitted batch job 77\n") == JobId("77")


def test_one_program_on_many_nodes_is_told_before_it_is_submitted():
    spec = JobSpec("x", Resources(timedelta(hours=1), nodes=2), "/logs")

    assert "started once, on the first of 2 nodes" in SLURM.unmet(spec)[0]
    assert SLURM.unmet(replace(spec, launch="torchrun")) == []


def printed_by_bash(expression: str, **variables: str) -> str:
    script = f'printf "%s" "{expression}"'
    environment = {"PATH": "/usr/bin:/bin", **variables}
    ran = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    return ran.stdout


def test_inside_a_job_an_element_of_an_array_knows_its_number():
    expression = SLURM.in_job().job_id

    assert printed_by_bash(expression, SLURM_JOB_ID="15") == "15"
    element = {"SLURM_JOB_ID": "17", "SLURM_ARRAY_JOB_ID": "15", "SLURM_ARRAY_TASK_ID": "2"}
    assert printed_by_bash(expression, **element) == "15_2"


def test_only_an_array_has_a_rest_to_cancel():
    expression = SLURM.in_job().cancel_rest

    assert printed_by_bash(expression, SLURM_JOB_ID="15") == ""
    assert printed_by_bash(expression, SLURM_ARRAY_JOB_ID="15") == "scancel --state=PENDING 15"


def test_the_end_of_the_job_is_asked_for_where_no_variable_tells_it(tmp_path):
    squeue = tmp_path / "squeue"
    squeue.write_text('#!/bin/sh\necho "2026-11-15T21:05:27 $*"\n')
    squeue.chmod(0o755)
    path = f"{tmp_path}:/usr/bin:/bin"
    expression = SLURM.in_job().ends

    told = printed_by_bash(expression, PATH=path, SLURM_JOB_ID="15", SLURM_JOB_END_TIME="17")
    asked = printed_by_bash(expression, PATH=path, SLURM_JOB_ID="15")

    assert told == "17"
    assert asked == "2026-11-15T21:05:27 --noheader --jobs=15 --format=%e"


def test_what_is_demanding_is_quoted_as_sbatch_reads_it():
    lines = options(DEMANDING)

    assert r'''--job-name="Zoë's \"first\" run; rm -rf $HOME `id` second line"''' in lines
    assert "--output=\"/store/a folder/with 50%% 'quotes'/scheduler-%A_%a.out\"" in lines


def test_a_job_carries_its_name_and_the_mark_of_its_submission():
    found = SLURM.read_status(recorded("squeue.txt") + "slurm|11|RUNNING|None|(null)|a|b|.\n")

    assert found["1"].carries == ("job.sh", "rabaska-7f3a")
    assert found["6_2"].carries == ("sbatch",)
    assert found["11"].carries == ("a|b",)
