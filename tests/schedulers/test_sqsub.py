"""The sq tools keep the contract, with what they printed by all that is known.

The sq tools are retired with their clusters: their answers are replayed from public ones, and no
real one was asked.
"""

from dataclasses import replace
from datetime import timedelta

import pytest
from contract import PLAIN, Printed, SchedulerContract
from hypothesis import given
from hypothesis import strategies as st
from recorded import recorded

from rabaska.domain.jobs import JobId, JobSpec, JobState
from rabaska.schedulers.sqsub import Sqsub

SQSUB = Sqsub()


class TestSqsub(SchedulerContract):
    scheduler = SQSUB
    printed = Printed(
        submitted=recorded("sqsub", "sqsub.txt"),
        job="222166",
        status=recorded("sqsub", "sqjobs.txt"),
        states={
            "169799": JobState.RUNNING,
            "169800": JobState.QUEUED,
            "169801": JobState.QUEUED,
            "169802": JobState.DONE,
            "169803": JobState.CANCELLED,
            "169804": JobState.SUSPENDED,
        },
        gone=("ERROR: no such job 222166",),
    )


def words(spec: JobSpec) -> str:
    return " ".join(SQSUB.submit_command("/job.sh", spec))


def asking(**resources: object) -> JobSpec:
    return replace(PLAIN, resources=replace(PLAIN.resources, **resources))


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        (PLAIN, "-r 180m -o /store/runs/digits-7f3a/logs/scheduler-%J.out -q serial"),
        (asking(walltime=timedelta(seconds=20)), "-r 1m"),
        (asking(gpus=2, cores=4, memory=2**33), "-q gpu -j digits-7f3a -n 4 -f threaded --gpp=2"),
        (asking(gpus=2, cores=4, memory=2**33), "--mpp=8192M"),
        (asking(gpus=4, tasks=4, memory=2**33), "-n 4 -f mpi --gpp=1 --mpp=2048M --nompirun"),
        (asking(gpus=4, tasks=4), "--mpp=4096M"),
        (asking(cores=8), "-q threaded"),
        (asking(nodes=2, tasks=2), "-n 4 -N 2"),
        (replace(PLAIN, queue="NRAP_12345"), "-q NRAP_12345"),
        (replace(PLAIN, mail="a@b.org"), "--mail-start --mail-end"),
        (replace(PLAIN, native=("--pack -f xeon",)), "--pack -f xeon /bin/bash /job.sh"),
    ],
)
def test_every_wish_has_its_words(spec, part):
    assert part in words(spec)


def test_the_script_shows_how_it_was_submitted_for_it_has_no_directives():
    assert SQSUB.directives(PLAIN)[0].startswith("# sqsub -r 180m -o ")


def test_each_job_waits_for_the_one_before():
    command = SQSUB.submit_command("/job.sh", PLAIN, after=JobId("222166"))

    assert command[-4:] == ["-w", "222166", "/bin/bash", "/job.sh"]


def test_an_id_is_read_from_hosts_that_ran_lsf_too():
    assert SQSUB.read_job_id(recorded("sqsub", "sqsub-lsf.txt")) == JobId("852684")


def test_columns_are_found_by_their_names():
    found = SQSUB.read_status(recorded("sqsub", "sqjobs-user.txt"))

    assert found["169799"].state is JobState.RUNNING
    assert (found["169800"].state, found["169800"].spelled) == (JobState.UNKNOWN, "X")


@given(state=st.from_regex(r"\*?[A-Z]{1,3}", fullmatch=True))
def test_an_unheard_of_state_is_unknown_and_not_over(state):
    text = f"jobid queue state ncpus nodes time command\n12 gpu {state} 1 mon54 12s x\n"

    status = SQSUB.read_status(text)["12"]

    assert status.spelled == state
    assert status.state is JobState.UNKNOWN or state.strip("*") in set("QRZSTDCK")


def test_rows_without_a_header_are_not_jobs():
    assert SQSUB.read_status("169799 nrap1 D 1 wha309 615s ~prioux/x.sh\n") == {}
