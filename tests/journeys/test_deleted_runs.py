"""What somebody deleted: results on this computer, output on the cluster, the run's folder."""

import shutil

import pytest

from rabaska.errors import NoSuchRun

WRITES = """
import os, sys
if len(sys.argv) > 1:
    open(os.path.join(sys.argv[1], "result.txt"), "w").write("42")
    if "saves" in sys.argv:
        open(os.path.join(sys.argv[1], "model.pkl"), "wb").write(b"\\x80\\x04K\\x01.")
"""
COMMANDS = {"saves": "python train.py {output} saves", "writes": "python train.py {output}"}


def finished(laptop, kind):
    (laptop.project / "train.py").write_text(WRITES)
    laptop.says("", COMMANDS[kind])
    run = laptop.types("run", "-q")
    laptop.types("wait", run, "-q")
    return run, laptop.user.home / "store" / "runs" / run


def test_results_that_were_deleted_here_come_again(laptop):
    run, _ = finished(laptop, "writes")
    laptop.types("fetch", run)
    shutil.rmtree(laptop.project / "results")

    assert f"1 new file of {run} in" in laptop.types("fetch", run, both=True)
    assert (laptop.project / "results" / run / "output" / "result.txt").read_text() == "42"


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("saves", "and all else that the program of {run} wrote was deleted"),
        ("writes", "the output folder of {run} is empty: its program wrote nothing there, or"),
    ],
)
def test_a_program_whose_output_was_deleted_is_not_said_to_write_nothing(laptop, kind, told):
    run, folder = finished(laptop, kind)
    for file in [*folder.glob("kept/*/output/*")]:
        file.unlink()

    said = laptop.types("fetch", run, both=True)

    assert told.format(run=run) in said
    assert "give it the folder" not in said


def test_every_command_says_the_same_of_a_run_whose_folder_was_deleted(laptop):
    run, folder = finished(laptop, "writes")
    laptop.types("fetch", run)
    shutil.rmtree(folder)

    hint = laptop.status(run)["hint"]

    for command in ("fetch", "logs", "show", "rerun", "resume"):
        with pytest.raises(NoSuchRun, match=f"run {run} is not on here") as refused:
            laptop.types(command, run)
        assert refused.value.hint == hint

    assert f"what was fetched of it stays in {laptop.project}/results/{run}" in hint
    laptop.types("forget", run)
    with pytest.raises(NoSuchRun):
        laptop.types("status", run)
