"""A run whose records somebody damaged: each command does without them, or says which one it is."""

import shutil

import pytest
from click.testing import CliRunner
from tests.records.damages import DAMAGES, RECORDS

from rabaska.cli.commands import rabaska
from rabaska.errors import CommandFailed
from rabaska.node.record import jobs
from rabaska.node.record.run_folder import RunFolder

PROGRAM = "sh -c 'echo step 1 loss 2; echo $RABASKA_JOB > notes.csv; exit 3'"


@pytest.fixture
def run(laptop):
    """A run whose only job failed after it left a file beside its code."""
    laptop.says("", PROGRAM)
    name = laptop.types("run", "-q", "--jobs", "1")
    CliRunner().invoke(rabaska, ["wait", name, "-q"], standalone_mode=False)
    return name


@pytest.fixture
def folder(laptop, run):
    return laptop.user.home / "store" / "runs" / run


def damage(laptop, folder, records, how):
    for record in records:
        file = folder / record
        if file.exists():
            file.write_text(DAMAGES[how](file.read_text()), errors="surrogateescape")
    # What this computer remembers of the run.
    shutil.rmtree(laptop.user.home / "reports", ignore_errors=True)


@pytest.mark.parametrize("how", ["wrong types", "binary"])
def test_a_run_is_shown_fetched_and_resumed_without_its_other_records(laptop, run, folder, how):
    # Without begun.json, a job waits a minute for a sign of life from the one before it.
    others = [record for record in RECORDS if record not in ("run.json", "jobs/001/begun.json")]
    damage(laptop, folder, others, how)

    shown = laptop.types("status", run)
    fetched = laptop.types("fetch", run)
    printed = laptop.types("logs", run)
    laptop.types("cancel", run)
    laptop.types("resume", run)
    CliRunner().invoke(rabaska, ["wait", run, "-q"], standalone_mode=False)

    assert "jobs/001/ended.json is damaged and ignored" in shown
    assert "step 1 loss 2" in printed
    assert fetched
    said = "".join(path.read_text() for path in sorted((folder / "logs").glob("job-*")))
    assert "Traceback" not in said
    assert jobs.read_ended(RunFolder(str(folder)), 2).how == "crashed"
    assert list((folder / "output" / "beside-code").glob("notes.csv"))


@pytest.mark.parametrize("how", ["wrong types", "binary", "null"])
def test_a_run_without_a_readable_plan_is_shown_and_fetched_and_not_resumed(
    laptop, run, folder, how
):
    damage(laptop, folder, ["run.json"], how)

    shown = laptop.types("status", run)
    laptop.types("fetch", run)
    printed = laptop.types("logs", run)
    with pytest.raises(CommandFailed, match=f"the plan of {run} is damaged") as refused:
        laptop.types("resume", run)

    assert "run.json is damaged" in shown or "run.json has format" in shown
    assert "step 1 loss 2" in printed
    assert "run.json" in refused.value.why
    laptop.types("cancel", run)
