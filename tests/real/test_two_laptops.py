"""Two laptops, one account: what one submits to Slurm, the other sees, follows and cancels."""

import shutil
from dataclasses import replace

import pytest

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.fixture
def second(voyager, tmp_path):
    """The same person at another computer, with a profile and a copy of the project."""
    project, home = tmp_path / "copy", tmp_path / "elsewhere" / "home"
    shutil.copytree(voyager.project, project)
    shutil.copytree(voyager.home / "clusters", home / "clusters")
    return replace(voyager, project=project, home=home)


def test_a_run_of_another_laptop_is_seen_followed_fetched_and_cancelled(voyager, second):
    run = voyager.run("--jobs", "1", "--", "--every", "1", "--hold", "1")
    voyager.until(lambda told: told["checkpoint"] is not None, run)
    shutil.rmtree(voyager.project)  # the second laptop has none of its files

    listed = second.types("status", "--all", "--on", "lab")
    printed = second.types("logs", run, "--on", "lab")
    fetched = second.types("fetch", run, "--on", "lab")
    second.types("cancel", run)
    told = second.until(lambda told: told["state"] == "cancelled", run)

    assert f"added to the list: {run}" in listed.errors
    assert run in listed.output
    assert "step 1 " in printed.output
    assert fetched.output.strip() == str(second.project / "results" / run)
    assert (second.project / "results" / run / "output" / "checkpoint-0001.json").exists()
    assert told["job_id"]
    second.types("resume", run)
    assert second.status(run)["state"] in ("queued", "running")
