"""Flux keeps the contract, with what its commands print."""

from dataclasses import replace
from datetime import timedelta

import pytest
from contract import PLAIN, Printed, SchedulerContract
from recorded import printed, recorded
from shells import printed_by_bash

from rabaska.domain.clusters import Partition
from rabaska.domain.jobs import JobId, JobSpec, JobState
from rabaska.schedulers import flux_queues, recognition
from rabaska.schedulers.flux import Flux
from rabaska.sites import questions

FLUX = Flux()
JOBS = {
    "done": "209362878464", "exit3": "218422575104", "killed": "237800259584",
    "limit": "281001590784", "cancelled": "293618057216", "running": "336014082048",
    "after": "395673862144", "never": "455031652352", "impossible": "498132320256",
    "held": "529556045824", "begin": "546870132736", "waiting": "568093310976",
    "dropped": "597805760512",
}  # fmt: skip
STATES = {
    "done": JobState.DONE, "exit3": JobState.FAILED, "killed": JobState.FAILED,
    "limit": JobState.TIMEOUT, "cancelled": JobState.CANCELLED, "running": JobState.RUNNING,
    "after": JobState.QUEUED, "never": JobState.NEVER_RAN, "impossible": JobState.NEVER_RAN,
    "held": JobState.HELD, "begin": JobState.QUEUED,
    "waiting": JobState.DONE,  # it had begun when the list was made
    "dropped": JobState.CANCELLED,
}  # fmt: skip
REFUSALS = recorded("flux", "batch-refused.txt")


class TestFlux(SchedulerContract):
    scheduler = FLUX
    printed = Printed(
        submitted=recorded("flux", "batch.txt"),
        job=JOBS["done"],
        status=printed("flux", "jobs.txt"),
        states={JOBS[name]: state for name, state in STATES.items()},
        refusals=tuple(REFUSALS.split("-- on standard error\n")),
        gone=tuple(line for line in recorded("flux", "cancel.txt").splitlines() if "ERROR" in line),
    )


def options(spec: JobSpec) -> list[str]:
    return [line.removeprefix("#flux: ") for line in FLUX.directives(spec)]


def asking(**resources: object) -> JobSpec:
    return replace(PLAIN, resources=replace(PLAIN.resources, **resources))


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (PLAIN, "--time-limit=10800s"),
        (PLAIN, "--nslots=1"),
        (asking(nodes=2, cores=3, tasks=4), "--cores-per-slot=12"),
        (asking(nodes=2), "--nodes=2"),
        (asking(nodes=2), "--nslots=2"),
        (asking(gpus=4), "--gpus-per-slot=4"),
        (asking(exclusive=True), "--exclusive"),
        (replace(PLAIN, features=("bigmem",)), "--requires=bigmem"),
        (replace(PLAIN, account="physics"), "--bank=physics"),
        (replace(PLAIN, queue="debug"), "--queue=debug"),
        (replace(PLAIN, warn_before=timedelta(minutes=5)), "--signal=USR1@300s"),
        (replace(PLAIN, native=("--urgency=8",)), "--urgency=8"),
    ],
)
def test_every_wish_has_its_line(spec, line):
    assert line in options(spec)


def test_each_job_waits_for_the_one_before():
    command = FLUX.submit_command("/job.sh", PLAIN, after=JobId("7"))

    assert command[3:] == ["flux", "--dependency=afterany:7", "/job.sh"]


def test_a_chain_is_cancelled_from_its_end():
    assert FLUX.cancel_command([JobId("7"), JobId("8")]) == ["flux", "cancel", "8", "7"]


def test_only_a_job_that_is_forgotten_is_no_longer_waited_for():
    lines = [line for line in REFUSALS.splitlines() if "ERROR" in line]

    over = [line for line in lines if FLUX.capabilities.is_dependency_over(line)]

    assert over == ["flux-batch: ERROR: dependency: afterany: id 99999: job not found"]


def test_exit_codes_are_those_of_jobs_that_ran():
    found = FLUX.read_status(printed("flux", "jobs.txt"))

    codes = {name: found[JOBS[name]].exit_code for name in JOBS}
    assert (codes["exit3"], codes["killed"], codes["done"]) == (3, 137, 0)
    assert codes["dropped"] is codes["never"] is codes["running"] is None


def test_each_job_that_waits_or_never_ran_has_a_reason():
    found = FLUX.read_status(printed("flux", "jobs.txt"))

    assert {name: found[JOBS[name]].reason for name in ("after", "begin", "held", "never")} == {
        "after": f"waits: after-finish={JOBS['running']}",
        "begin": "waits: begin@04:11:46",
        "held": f"held: `flux job urgency {JOBS['held']} default` lets it go",
        "never": f"dependency after-success={JOBS['exit3']} can never be satisfied",
    }


def test_an_empty_queue_is_told_from_one_that_is_not_there():
    able = FLUX.capabilities

    assert able.is_answer(recorded("flux", "jobs-none.txt"))
    assert not able.is_answer(recorded("flux", "no-broker.txt"))


def site(name):
    answers = questions.answers(recorded("flux", name))
    return recognition.recognised(lambda each: answers[each].text if each in answers else "")


def test_a_real_flux_is_recognised_with_its_queues():
    found = site("site.txt")

    assert (found.name, found.version) == ("flux", "flux-core 0.88.0")
    assert found.partitions == (
        Partition("batch", timedelta(hours=2), nodes=4, cores=2, default=True),
        Partition("debug", timedelta(minutes=10), nodes=4, cores=2, most_nodes=2),
    )
    assert [each.closed for each in found.partitions] == ["", ""]


def test_queues_that_are_stopped_say_so():
    closed = [each.closed for each in site("site-stopped.txt").partitions]

    assert closed == ["it starts no jobs: it is stopped"] * 2


def test_without_queues_jobs_name_none():
    (only,) = flux_queues.partitions("flux|||✔|✔|inf|0-inf|.", "flux||4|8|4|.")

    assert (only.called, only.default, only.nodes, only.cores, only.gpus) == ("", True, 4, 2, 1)


def test_a_job_of_ours_submits_to_the_instance_that_it_runs_in(tmp_path):
    fake = tmp_path / "flux"
    fake.write_text('#!/bin/sh\necho "$*" >>"$0.said"\n')
    fake.chmod(0o755)
    command = FLUX.submit_command("/job.sh", PLAIN)

    for inside in ("", "12"):
        printed_by_bash(
            '$(sh -c "$TOLD" flux /job.sh)', PATH=f"{tmp_path}:/usr/bin:/bin", TOLD=command[2],
            **({"RABASKA_JOB_ID": inside} if inside else {}),
        )  # fmt: skip

    said = (tmp_path / "flux.said").read_text().splitlines()
    assert [line for line in said if "batch" in line] == ["batch /job.sh", "--parent batch /job.sh"]
