"""Grid Engine keeps the contract, with what its real commands printed."""

import subprocess
from dataclasses import replace
from datetime import timedelta

import pytest
from contract import PLAIN, Printed, SchedulerContract
from hypothesis import given
from hypothesis import strategies as st
from recorded import recorded
from shells import printed_by_bash

from rabaska.domain.jobs import JobId, JobSpec, JobState, TrialAnswer
from rabaska.schedulers.sge import Sge

SGE = Sge()


class TestSge(SchedulerContract):
    scheduler = SGE
    printed = Printed(
        submitted=recorded("sge", "qsub-array.txt"),
        job="5",
        status=recorded("sge", "qstat.xml"),
        states={
            "5_1": JobState.RUNNING,
            "5_2": JobState.QUEUED,
            "5_3": JobState.QUEUED,
            "5_4": JobState.QUEUED,
            "6": JobState.HELD,
            "7": JobState.HELD,
            "9": JobState.RUNNING,
            "10": JobState.QUEUED,
        },
        refusals=tuple(recorded("sge", "qsub-refused.txt").splitlines()),
        history=recorded("sge", "qacct.txt"),
        ended={
            "1": JobState.DONE,
            "2": JobState.FAILED,
            "3": JobState.TIMEOUT,
            "4": JobState.CANCELLED,
            "7": JobState.NEVER_RAN,
            "8": JobState.CANCELLED,
        },
        gone=(recorded("sge", "qdel.txt").splitlines()[1],),
        shown={
            "verification: found suitable queue(s)\n": TrialAnswer(),
            'Unable to run job: Job 5 cannot run in PE "smp" because it only offers 0 slots\n'
            "verification: no suitable queues\nExiting.\n": TrialAnswer(
                refusal='Job 5 cannot run in PE "smp" because it only offers 0 slots'
            ),
        },
    )


def options(spec: JobSpec) -> list[str]:
    return [line.removeprefix("#$ ") for line in SGE.directives(spec)]


def asking(**resources: object) -> JobSpec:
    return replace(PLAIN, resources=replace(PLAIN.resources, **resources))


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (PLAIN, "-l h_rt=03:00:00"),
        (asking(walltime=timedelta(days=2)), "-l h_rt=48:00:00"),
        (asking(gpus=2), "-l gpu=2"),
        (asking(cores=4), "-pe smp 4"),
        (replace(PLAIN, features=("gpu_type=v100",)), "-l gpu_type=v100"),
        (replace(PLAIN, jobs=10), "-t 1-10 -tc 1"),
        (replace(PLAIN, account="abc"), "-A abc"),
        (replace(PLAIN, queue="gpu.q"), "-q gpu.q"),
        (replace(PLAIN, mail="a@b.org"), "-m bea -M a@b.org"),
        (replace(PLAIN, requeue=False), "-r n"),
        (PLAIN, "-o /store/runs/digits-7f3a/logs/scheduler-$JOB_ID.out"),
    ],
)
def test_every_wish_has_its_line(spec, line):
    assert line in options(spec)


@pytest.mark.parametrize("what", ["memory", "exclusive"])
def test_what_grid_engine_has_no_common_word_for_is_told(what):
    assert "no common word" in SGE.unmet(asking(**{what: 10**9}))[0]


def test_the_id_is_read_in_both_forms():
    assert SGE.read_job_id('Your job 1 ("t1") has been submitted\n') == JobId("1")
    assert SGE.read_job_id('Your job-array 14.1-3:1 ("arr") has been submitted') == JobId("14")
    assert SGE.read_job_id(recorded("sge", "qsub.txt")) == JobId("1")


def test_the_accounts_tell_exit_codes_and_reasons():
    found = SGE.read_history(recorded("sge", "qacct.txt"))

    assert (found["1"].exit_code, found["2"].exit_code, found["7"].exit_code) == (0, 3, None)
    assert found["3"].reason == "qmaster enforced h_rt, h_cpu, or h_vmem limit"


@given(letters=st.from_regex(r"[A-Za-z]{1,4}", fullmatch=True))
def test_no_letters_of_the_queue_end_a_job(letters):
    text = f"<job_list><JB_job_number>5</JB_job_number><state>{letters}</state></job_list>"

    status = SGE.read_status(text)["5"]

    assert status.spelled == letters
    assert not status.state.over


@given(failed=st.text("0123456789: abc²", max_size=6), code=st.text("0123456789 ()²", max_size=6))
def test_only_a_job_that_did_not_fail_and_exited_with_zero_is_done(failed, code):
    text = (
        f"{'=' * 62}\njobnumber    5\nfailed       {failed}\nexit_status  {code}\nru_wallclock 1\n"
    )

    found = SGE.read_history(text)

    if "5" in found and found["5"].state is JobState.DONE:
        assert int(failed.split()[0]) == 0
        assert int(code.split()[0]) == 0


def test_inside_a_job_an_element_of_an_array_knows_its_number_and_the_rest():
    inside = SGE.in_job()
    element = {"JOB_ID": "3", "SGE_TASK_ID": "2", "SGE_TASK_LAST": "5"}
    alone = {"JOB_ID": "3", "SGE_TASK_ID": "undefined", "SGE_TASK_LAST": "undefined"}

    assert printed_by_bash(inside.job_id, **element) == "3_2"
    assert printed_by_bash(inside.job_id, **alone) == "3"
    assert printed_by_bash(inside.cancel_rest, **element) == "qdel 3 -t 3-5"
    assert printed_by_bash(inside.cancel_rest, **alone) == ""
    assert printed_by_bash(inside.cancel_rest, **{**element, "SGE_TASK_ID": "5"}) == ""


# ssh before 7.6 refuses the word by which the key of an unknown node is taken.
OLD_SSH = '#!/bin/sh\n[ "$1" != -G ] || exit 255\necho "$@"\n'
NEW_SSH = '#!/bin/sh\n[ "$1" != -G ] || exit 0\necho "$@"\n'


@pytest.mark.parametrize(
    ("ssh", "option"),
    [(NEW_SSH, "StrictHostKeyChecking=accept-new"), (OLD_SSH, "BatchMode=yes")],
)
def test_the_node_of_a_running_job_is_found(tmp_path, ssh, option):
    answer = f"#!/bin/sh\ncat <<'END'\n{recorded('sge', 'qstat.xml')}END\n"
    for name, text in {"qstat": answer, "ssh": ssh}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    command = SGE.beside_command("5_1", ["ls", "a folder"], terminal=False)

    ran = subprocess.run(
        command,
        check=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )

    assert ran.stdout == f"-o BatchMode=yes -o LogLevel=ERROR -o {option} control ls 'a folder'\n"
