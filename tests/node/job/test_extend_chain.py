"""A chain that is too short: its last job submits another, once, or says how to add one."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from tests.node.job.test_agent import wait_until

from rabaska.node.record import submissions
from rabaska.node.record.plan import Growth

# Saves, and asks to be started again.
GOES_ON = """
import os, time
with open(os.path.join(os.environ["RABASKA_CHECKPOINTS"], "state.txt"), "w") as stream:
    stream.write(str(time.time()))
raise SystemExit(85)
"""
SCHEDULER = """#!/bin/sh
env > {folder}/variables
echo "$@" >> {folder}/submitted
{answer}
"""


@pytest.fixture
def scheduler(tmp_path):
    """`scheduler("echo 43")`: words that submit a job, to a scheduler that answers so."""

    def words(answer="echo 43"):
        path = tmp_path / "sbatch"
        path.write_text(SCHEDULER.format(folder=tmp_path, answer=answer))
        path.chmod(0o755)
        return [str(path), "--after={after}", "--mark={submission}", "job-more.sh"]

    return words


def submitted(folder: Path) -> list[str]:
    path = folder / "submitted"
    return path.read_text().splitlines() if path.exists() else []


COMMAND = [sys.executable, "train.py", "{checkpoint}"]


def test_the_last_job_submits_another_that_begins_after_it(agents_for, scheduler, tmp_path):
    agents = agents_for(GOES_ON, command=COMMAND, jobs=1, growth=Growth(None, scheduler()))

    code, said = agents.job(SLURM_ARRAY_JOB_ID="12", SLURM_CONF="/etc/slurm.conf")

    [words] = submitted(tmp_path)
    assert code == 0
    assert words.startswith("--after=12 --mark=")
    assert "submitted one more job: job 1 ended and the run is not finished" in said
    assert agents.events("extended")[0]["jobs"] == 1
    assert submissions.jobs_there(agents.run) == 1
    variables = (tmp_path / "variables").read_text()
    assert "SLURM_ARRAY_JOB_ID" not in variables
    assert "SLURM_CONF" in variables


def test_a_job_that_is_started_again_does_not_submit_again(agents_for, scheduler, tmp_path):
    agents = agents_for(GOES_ON, command=COMMAND, jobs=1, growth=Growth(None, scheduler()))

    for _ in range(2):
        agents.job(RABASKA_JOB_ID="12_1")
    agents.job(RABASKA_JOB_ID="12_2")

    assert len(submitted(tmp_path)) == 2


def test_nothing_is_submitted_by_a_job_that_others_follow(agents_for, scheduler, tmp_path):
    agents = agents_for(GOES_ON, command=COMMAND, jobs=2, growth=Growth(9, scheduler()))
    line = {"submission": "a", "jobs": 2, "after_job": 0, "exit_code": 0}
    Path(agents.run.submissions).write_text(json.dumps(line) + "\n")

    agents.job()
    first = submitted(tmp_path)
    agents.job()

    assert first == []
    assert len(submitted(tmp_path)) == 1


def test_a_signal_to_all_processes_of_a_job_does_not_end_its_submission(
    agents_for, scheduler, tmp_path
):
    """Grid Engine and Flux send their warning to the whole group, at any moment."""
    warned = "while :; do sleep 0.05; test -e {0}/warned && break; done; echo 43"
    growth = Growth(None, scheduler(warned.format(tmp_path)))
    agents = agents_for(GOES_ON, command=COMMAND, jobs=1, growth=growth)

    agent = agents.start()
    wait_until(lambda: bool(submitted(tmp_path)))
    os.killpg(agent.pid, signal.SIGUSR1)
    (tmp_path / "warned").touch()
    said, _ = agent.communicate(timeout=60)

    assert "submitted one more job" in said
    assert not agents.events("not extended")


@pytest.mark.parametrize(
    ("queue", "grown"), [("echo 13.control", 0), ("true", 1), ("false", 0), ("no-such-qselect", 0)]
)
def test_jobs_that_still_wait_are_counted_and_not_those_that_were_submitted(
    agents_for, scheduler, tmp_path, queue, grown
):
    agents = agents_for(GOES_ON, command=COMMAND, jobs=4, growth=Growth(4, scheduler()))
    line = {"submission": "a", "jobs": 4, "after_job": 0, "exit_code": 0}
    Path(agents.run.submissions).write_text(json.dumps(line) + "\n")

    agents.job(RABASKA_WAITING=queue)

    assert len(submitted(tmp_path)) == grown


@pytest.mark.parametrize("find", [(), ("false",)], ids=["", "nor answers who looks for jobs"])
def test_a_server_that_is_down_is_asked_again(agents_for, scheduler, tmp_path, find):
    down = 'echo "qsub: cannot connect to server control (errno=15010)" >&2; exit 255'
    once = f"[ $(wc -l <{tmp_path}/submitted) -gt 1 ] || {{ {down}; }}; echo 43"
    agents = agents_for(
        GOES_ON, command=COMMAND, jobs=1, growth=Growth(None, scheduler(once), find)
    )

    _, said = agents.job()

    assert len(submitted(tmp_path)) == 2
    assert "submitted one more job" in said
    assert not agents.events("not extended")


@pytest.mark.parametrize(
    ("growth", "command", "why"),
    [
        (Growth(1), COMMAND, "the limit is 1 job"),
        (Growth(5, why_not="no job may submit another on trillium"), COMMAND, "on trillium"),
        (Growth(None), COMMAND[:2], "nothing shows that the program resumes from a checkpoint"),
        (Growth(5, ["no-such-sbatch"]), COMMAND, "no-such-sbatch is not available on this node"),
    ],
)
def test_where_it_may_not_the_command_is_said(agents_for, growth, command, why):
    agents = agents_for(GOES_ON, command=command, jobs=1, growth=growth)

    _, said = agents.job()

    told = f"; `rabaska resume {agents.run.name} --jobs 1` "
    told += "continues" if command == COMMAND else "may start over: "
    for text in (said, agents.log(1)):
        assert told in text
        assert why in text
    assert agents.events("not extended")[0]["why"].endswith(why)


def test_a_refusal_is_quoted(agents_for, scheduler):
    refusing = scheduler('echo "sbatch: error: QOSMaxSubmitJobPerUserLimit" >&2; exit 1')
    agents = agents_for(GOES_ON, command=COMMAND, jobs=1, growth=Growth(None, refusing))

    _, said = agents.job()

    assert "sbatch said: sbatch: error: QOSMaxSubmitJobPerUserLimit" in said.replace("/", " ")


def test_a_job_that_somebody_ended_adds_nothing(agents_for, scheduler, tmp_path):
    waits = GOES_ON.replace("raise SystemExit(85)", "print('saved', flush=True); time.sleep(60)")
    agents = agents_for(waits, command=COMMAND, jobs=1, growth=Growth(None, scheduler()))

    agent = agents.start()
    log = Path(agents.run.log(1))
    while not (log.exists() and "saved" in log.read_text()):
        assert agent.poll() is None
    agent.terminate()
    agent.communicate(timeout=60)

    assert agents.ended(1).how == "killed"
    assert submitted(tmp_path) == []


def test_a_job_whose_program_alone_was_killed_is_followed_by_another(
    agents_for, scheduler, tmp_path
):
    killed = GOES_ON.replace("raise SystemExit(85)", "os.kill(os.getpid(), 9)")
    agents = agents_for(killed, command=COMMAND, jobs=1, growth=Growth(None, scheduler()))

    agents.job()

    assert agents.ended(1).how == "killed"
    assert len(submitted(tmp_path)) == 1


def test_where_no_answer_was_recorded_the_jobs_that_were_asked_for_are_awaited(
    agents_for, scheduler, tmp_path
):
    agents = agents_for(GOES_ON, command=COMMAND, jobs=2, growth=Growth(None, scheduler()))

    agents.job()
    before = submitted(tmp_path)
    agents.job()

    assert before == []
    assert len(submitted(tmp_path)) == 1
