"""What the agent does about the lines that ran before it."""

import errno
import os
import shutil
import socket
from pathlib import Path

import pytest

from rabaska.node.job import failure_cause, finish, job_folder, node_checks
from rabaska.node.record import plan
from rabaska.node.record.out_of_memory import say_size
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


FULL = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n"


def a_plan(setup):
    return plan.Plan(
        run="digits-0", command=["python", "train.py"], resume=[], code="", datasets=[],
        patterns=[], keep=[], variables={}, walltime=60.0, grace=4.0, signal="TERM", jobs=3,
        progress="", origin=plan.Origin(cluster="lab", scheduler="slurm"),
        request=plan.JobRequest(setup=setup),
    )  # fmt: skip


def test_a_disk_too_small_for_the_environment_is_named_with_its_size_and_the_line(run, tmp_path):
    (tmp_path / "run" / "logs" / "scheduler-12.out").write_text(f"{FULL}\nWARNING: pip is old\n")
    told = {node_checks.FAILED: "it could not be made", job_folder.FOLDER: str(tmp_path)}

    with pytest.raises(node_checks.NoRoom) as problem:
        node_checks.check(told, run, 1, "12", a_plan(["pip install -r x"]))

    end = failure_cause.not_prepared(problem.value, a_plan([]), run)
    size = say_size(shutil.disk_usage(tmp_path).total)
    assert end.how == "disk full"
    assert "the environment does not fit on the node's own disk" in end.reason
    assert f"on {socket.gethostname()} has {size} in all" in end.reason
    assert end.remedy.startswith('write `build = "once"` under [cluster.lab.environment]')
    assert finish.exit_code(end) == 1


def test_a_job_without_room_for_its_code_names_the_disk(run, tmp_path):
    problem = OSError(errno.ENOSPC, "No space left on device on node1", str(tmp_path / "job"))

    end = failure_cause.not_prepared(problem, a_plan([]), run)

    assert end.how == "disk full"
    assert "has " in end.reason
    assert "in all (No space left on device on node1" in end.reason
    assert "`rabaska resume digits-0` tries again" in end.remedy


def test_full_storage_is_not_taken_for_the_nodes_disk(run, tmp_path):
    problem = OSError(errno.ENOSPC, "No space left on device", f"{run.path}/jobs/001/reserve")

    end = failure_cause.not_prepared(problem, a_plan([]), run)

    assert "the storage of lab is full" in end.reason
    assert "rabaska clean --on lab" in end.remedy


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
