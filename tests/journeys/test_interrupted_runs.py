"""A run whose making was interrupted, and two commands that resume one at once."""

import json
import shutil
import subprocess

import pytest
from click.testing import CliRunner

from rabaska.cli.commands import rabaska
from rabaska.errors import NoSuchRun
from rabaska.journeys import run as run_journey
from rabaska.journeys.resume import _NAMING
from rabaska.steps import new_run


def test_a_run_that_was_never_created_can_be_forgotten(laptop):
    """As Ctrl-C leaves it between the record here and the folder there."""
    run = laptop.types("run", "-q")
    laptop.types("wait", run, "-q")
    shutil.rmtree(laptop.user.home / "store" / "runs" / run)
    file = laptop.user.home / "runs" / f"{run}.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "job_id": ""}))

    with pytest.raises(NoSuchRun, match=f"run {run} was never created on here") as refused:
        laptop.types("resume", run)

    assert f"`rabaska forget {run}`" in refused.value.hint
    assert "its folder, if there is one, stays" in laptop.types("forget", run, both=True)
    assert not file.exists()


def test_ctrl_c_during_the_submission_names_the_run(laptop, monkeypatch):
    def interrupted(*_words, **_more):
        raise KeyboardInterrupt

    monkeypatch.setattr(new_run, "submit", interrupted)
    laptop.goes_there()

    done = CliRunner().invoke(rabaska, ["run"], obj=lambda _: "7f3a", standalone_mode=False)

    assert "run tiny-7f3a was being submitted" in done.output


@pytest.mark.parametrize(
    ("where", "step", "told"),
    [
        (run_journey, "connect", "nothing was submitted, and no run was made"),
        (new_run, "carry", "nothing was submitted; what arrived of code"),
        (new_run, "enter", "run tiny-7f3a was being made and is not submitted"),
        (new_run, "create", "run tiny-7f3a was being made and is not submitted"),
    ],
)
def test_ctrl_c_says_at_each_step_that_nothing_was_submitted(
    laptop, monkeypatch, where, step, told
):
    def interrupted(*_words, **_more):
        raise KeyboardInterrupt

    monkeypatch.setattr(where, step, interrupted)
    laptop.goes_there()

    done = CliRunner().invoke(rabaska, ["run"], obj=lambda _: "7f3a", standalone_mode=False)

    assert told in done.output
    assert done.output.count("submitted") == 1


def test_who_submits_from_within_a_job_here_is_told_that_both_end_together(laptop, monkeypatch):
    from_outside = laptop.types("run", both=True)
    monkeypatch.setenv("RABASKA_JOB_TAG", "of a job that runs")

    from_inside = laptop.types("run", both=True)

    assert "ends with the job" not in from_outside
    assert "ends with the job" in from_inside


def test_resumes_at_one_moment_write_scripts_of_their_own(tmp_path):
    (tmp_path / "job.sh").touch()
    words = ["bash", "-c", f'{_NAMING} && echo "$name"']
    crowd = [subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE) for _ in range(12)]
    names = {process.communicate()[0].decode().strip() for process in crowd}

    assert names == {f"job-{number}.sh" for number in range(2, 14)}


@pytest.mark.parametrize("command", ["fetch", "logs", "show", "rerun", "resume"])
def test_what_was_deleted_on_the_cluster_is_said_to_be_gone(laptop, command):
    run = laptop.types("run", "-q")
    laptop.types("wait", run, "-q")
    shutil.rmtree(laptop.user.home / "store" / "runs" / run)

    with pytest.raises(NoSuchRun, match=f"run {run} is not on here") as refused:
        laptop.types(command, run)

    assert f"`rabaska forget {run}` drops it" in refused.value.hint
    assert "never created" not in str(refused.value)
