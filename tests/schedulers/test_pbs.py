"""PBS keeps the contract, with what OpenPBS's commands print."""

import string
from dataclasses import replace
from datetime import timedelta

import pytest
from contract import DEMANDING, PLAIN, Printed, SchedulerContract
from hypothesis import given
from hypothesis import strategies as st
from recorded import recorded

from rabaska.domain.jobs import JobId, JobSpec, JobState, TrialAnswer
from rabaska.schedulers import named
from rabaska.schedulers.pbs import Pbs

PBS = Pbs()
QUEUE = recorded("pbs", "qstat.txt")
HISTORY = recorded("pbs", "qstat-x.txt")
STATES = {
    "7": JobState.RUNNING, "10": JobState.QUEUED, "11": JobState.HELD, "12": JobState.SUSPENDED,
    "13": JobState.QUEUED, "15": JobState.QUEUED,
}  # fmt: skip
ENDED = {
    "0": JobState.DONE, "1": JobState.FAILED, "2": JobState.TIMEOUT, "3": JobState.CANCELLED,
    "4": JobState.CANCELLED, "5": JobState.FAILED, "6": JobState.FAILED,
    "8": JobState.NEVER_RAN, "9": JobState.NEVER_RAN, "14": JobState.NEVER_RAN,
}  # fmt: skip
ASKED = "    asked.walltime = {}\n"


class TestPbs(SchedulerContract):
    scheduler = PBS
    printed = Printed(
        submitted=recorded("pbs", "qsub.txt"),
        job="7.control",
        status=QUEUE,
        states=STATES,
        history=HISTORY,
        ended={**STATES, **ENDED},
        refusals=tuple(recorded("pbs", "qsub-refused.txt").splitlines()),
        gone=("qdel: Unknown Job Id 99.pbshost", "qdel: Job has finished 0.control"),
        shown={
            ASKED.format("100:00:00") + recorded("pbs", "queue-workq.txt"): TrialAnswer(),
            ASKED.format("100:00:01") + recorded("pbs", "queue-workq.txt"): TrialAnswer(
                refusal="the queue allows 100:00:00 and the job asks for 100:00:01"
            ),
            recorded("pbs", "queue-still.txt"): TrialAnswer(
                refusal="the queue starts no jobs: started = False"
            ),
            recorded("pbs", "queue-nosuch.txt"): TrialAnswer(refusal="Unknown queue nosuch"),
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


def test_each_job_waits_for_the_one_before():
    command = PBS.submit_command("/job.sh", PLAIN, after=JobId("67.pbshost"))

    assert command == ["qsub", "-W", "depend=afterany:67.pbshost", "/job.sh"]


def test_a_model_of_gpu_without_the_sites_word_for_it_is_told():
    spec = asking(gpus=1, gpu_model="v100")

    assert "no common word for a v100" in PBS.unmet(spec)[0]
    assert PBS.unmet(replace(spec, features=("gpu_model=v100",))) == []


def test_a_strange_folder_does_not_reach_the_directives():
    assert "-o /dev/null" in options(DEMANDING)


def test_an_unknown_job_does_not_hide_the_others():
    assert {35, 153} <= set(PBS.capabilities.partial_answers)


def test_what_a_server_without_history_says_of_jobs_that_are_over_is_no_state():
    assert PBS.read_history(recorded("pbs", "qstat-x-no-history.txt")) == {}
    assert PBS.read_status(recorded("pbs", "qstat-no-history.txt")).keys() == STATES.keys()


def test_why_a_job_waits_and_how_it_ended_are_kept_in_the_clusters_words():
    queue, history = PBS.read_status(QUEUE), PBS.read_history(HISTORY)

    never = "Can Never Run: Insufficient amount of resource: ncpus (R: 9 A: 8 T: 8)"
    assert queue["13"].reason == never
    assert queue["10"].reason == "waits: afterany:7.control@control"
    assert queue["11"].reason == "held by its user (`qrls` lets it go)"
    assert queue["15"].reason == "Not Running: Queue not started."
    assert history["2"].spelled == "F, Exit_status -29"
    assert [history[job].exit_code for job in ("1", "3", "5", "6")] == [3, 143, 137, 137]
    assert history["9"].exit_code is None


def test_a_job_whose_shell_was_killed_was_not_cancelled():
    history = PBS.read_history(HISTORY)

    assert "Exit_status 265" in history["4"].spelled
    assert "Exit_status 265" in history["6"].spelled
    assert history["4"].state is JobState.CANCELLED
    assert history["6"].state is JobState.FAILED


def test_lines_of_others_amid_a_value_do_not_change_it():
    noisy = HISTORY.replace("\n\t", "\nWelcome to the cluster!\n\n\t")

    assert noisy != HISTORY
    assert PBS.read_history(noisy) == PBS.read_history(HISTORY)


@given(letter=st.text(string.ascii_letters, min_size=1))
def test_an_unheard_of_state_is_unknown_and_not_over(letter):
    known = "QWTHBRSUEFX"

    status = PBS.read_status(f"Job Id: 5.host\n    job_state = {letter}\n\n").get("5")

    assert letter in known or (status.state is JobState.UNKNOWN and status.spelled == letter)


@given(code=st.integers(-(10**8), 10**8))
def test_only_the_exit_status_zero_is_done(code):
    text = f"Job Id: 5.host\n    job_state = F\n    Exit_status = {code}\n\n"

    assert (PBS.read_status(text)["5"].state is JobState.DONE) == (code == 0)


@pytest.mark.parametrize(
    ("resources", "place"),
    [
        ({"nodes": 2}, ["-l place=scatter"]),
        ({"nodes": 2, "exclusive": True}, ["-l place=scatter:excl"]),
        ({}, []),
    ],
)
def test_several_nodes_are_several(resources, place):
    assert [line for line in options(asking(**resources)) if "place" in line] == place


def test_it_is_found_by_name():
    assert named("pbs", program=(), queue="") == PBS
