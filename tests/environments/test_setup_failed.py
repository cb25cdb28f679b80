"""What the agent does about the lines that ran before it."""

import os
from pathlib import Path

import pytest

from rabaska.node.job import job_folder, node_checks
from rabaska.node.record.run_folder import RunFolder


@pytest.fixture
def run(tmp_path):
    folder = RunFolder(str(tmp_path / "run"))
    (tmp_path / "run" / "logs").mkdir(parents=True)
    return folder


def test_an_environment_that_was_made_is_no_news(run, tmp_path):
    node_checks.check({}, run, 1, "12")

    assert list((tmp_path / "run" / "logs").iterdir()) == []


def test_the_scripts_last_words_are_the_reason_and_go_into_the_log(run, tmp_path):
    logs = tmp_path / "run" / "logs"
    (logs / "scheduler-12_1.out").write_text("Looking\nERROR: no wheel\nrabaska: job 1 begins\n")

    with pytest.raises(node_checks.SetupFailed, match="could not be made: ERROR: no wheel"):
        node_checks.check({node_checks.FAILED: "it could not be made"}, run, 1, "12_1")

    assert (logs / "job-001.log").read_text() == "Looking\nERROR: no wheel\n"


def test_a_job_whose_output_is_elsewhere_still_tells_the_step(run):
    with pytest.raises(node_checks.SetupFailed, match=r"^`module load x` failed$"):
        node_checks.check({node_checks.FAILED: "`module load x` failed"}, run, 1, "12")


def test_the_environment_is_removed_with_the_folder_made_for_it(tmp_path):
    made = job_folder.make(str(tmp_path))
    Path(made, "env", "bin").mkdir(parents=True)

    node_checks.clean({job_folder.FOLDER: made})

    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_another_job_is_left_alone(tmp_path):
    other = job_folder.make(str(tmp_path), owner=1)

    node_checks.clean({job_folder.FOLDER: other})
    node_checks.clean({job_folder.FOLDER: str(tmp_path)})

    assert os.listdir(tmp_path) == [os.path.basename(other)]
