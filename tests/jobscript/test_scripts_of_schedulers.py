"""The job script of every scheduler: accepted by shellcheck, and run by bash as it would be."""

import shutil
import subprocess
from dataclasses import replace
from datetime import timedelta

import pytest

from rabaska.domain.jobs import JobSpec, Resources
from rabaska.jobscript.script import Agent, render
from rabaska.schedulers import SCHEDULERS, named

SPEC = JobSpec(
    name="cats-7f3a",
    resources=Resources(timedelta(hours=12), gpus=8),
    folder="/store/runs/cats-7f3a/logs",
    jobs=4,
    account="pje-224-aa",
    mail="someone@example.org",
)


def script(name, spec=SPEC, program="/store/node/ab12.pyz"):
    scheduler = named(name, program=("python3", program), queue="/store/queue")
    agent = Agent(python="/bin/echo", program=program, run="/store/runs/cats-7f3a")
    return render(spec, scheduler.directives(spec), scheduler.in_job(), [], agent)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_shellcheck_finds_nothing_to_say(name):
    program = shutil.which("shellcheck", path=".venv/bin") or "shellcheck"
    # SC2155: that a job has no number in an array is an answer, not a failure to be masked.
    checked = subprocess.run(
        [program, "--severity=warning", "--exclude=SC2155", "-"],
        input=script(name), capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert checked.stdout == ""


@pytest.mark.parametrize("name", ["pbs", "torque", "moab"])
def test_a_job_whose_output_is_spooled_writes_its_own_log(name, tmp_path):
    folder = tmp_path / "a folder's logs"
    folder.mkdir()
    text = script(name, replace(SPEC, folder=str(folder)))
    variables = {"PBS_JOBID": "67.host", "PBS_JOBNAME": "cats-7f3a", "PATH": "/usr/bin:/bin"}

    ran = subprocess.run(
        ["bash"], input=text, env=variables, capture_output=True, text=True, check=False
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    log = folder / "scheduler-67.out"
    assert log.read_text() == "/store/node/ab12.pyz run /store/runs/cats-7f3a\n"


@pytest.mark.parametrize("name", ["slurm", "sge", "sqsub", "local"])
def test_a_job_whose_output_is_seen_at_once_leaves_it_to_the_scheduler(name):
    assert "exec >>" not in script(name)
