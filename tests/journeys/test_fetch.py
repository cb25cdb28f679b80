"""Results on their way home, from a run folder on this computer."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rabaska.errors import CommandFailed, NoSuchRun, WrongUse
from rabaska.journeys.fetch import Fetched, fetch, refuse_incomplete
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord


def record_of(folder) -> RunRecord:
    return RunRecord(
        name=folder.name, project=str(folder.parent), cluster="here", path=str(folder), job_id="1",
        created=0.0,
    )  # fmt: skip


def test_the_newest_job_is_the_one_with_the_highest_number(tmp_path):
    """After job 999 comes 1000, which as text comes first."""
    run = tmp_path / "long-7f3a"
    for job in ("999", "1000"):
        (run / "carried" / job / "output").mkdir(parents=True)
        (run / "carried" / job / "output" / "made.txt").write_text(job)

    fetched = fetch(record_of(run), Home(tmp_path / "home"), to=tmp_path / "results")

    assert (tmp_path / "results/output/made.txt").read_text() == "1000"
    assert fetched.files == 1


def test_what_does_not_come_is_said(tmp_path):
    run = tmp_path / "one-7f3a"
    output = run / "carried/001/output"
    output.mkdir(parents=True)
    (output / "notes.txt").write_text("theirs")
    (output / "key").symlink_to("/etc/passwd")
    mine = tmp_path / "results/output/notes.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine, and newer")

    fetched = fetch(record_of(run), Home(tmp_path / "home"), to=tmp_path / "results")

    assert fetched.kept == ("output/notes.txt",)
    assert fetched.refused == ("output/key -> /etc/passwd",)
    assert mine.read_text() == "mine, and newer"


def test_what_opens_a_server_in_the_job_is_no_result(tmp_path):
    run = tmp_path / "one-7f3a"
    for name in ("carried/001/output/a", "logs/job-001.log", "servers/ssh/host_key", "servers/j"):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text("x")

    fetch(record_of(run), Home(tmp_path / "home"), to=tmp_path / "results")

    came = {path.name for path in (tmp_path / "results").rglob("*") if path.is_file()}
    assert {"a", "job-001.log"} <= came
    assert not came & {"host_key", "j"}


@pytest.mark.parametrize("place", ["", ".git", "clone/.GIT"])
def test_no_repository_comes_whose_settings_name_programs_that_git_would_run(tmp_path, place):
    run, ran = tmp_path / "one-7f3a", tmp_path / "ran"
    repository = run / "carried/001/output" / place
    settings = f'[core]\n bare = false\n worktree = .\n fsmonitor = "touch {ran}; false"\n'
    parts = {"HEAD": "ref: refs/heads/x\n", "refs/x": "", "objects/x": "", "config": settings}
    for name, text in parts.items():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(text)
    (run / "carried/001/output/head").write_text("a result")

    fetched = fetch(record_of(run), Home(tmp_path / "home"), to=tmp_path / "results")
    here = (tmp_path / "results/output" / place.lower()).parent if place else tmp_path / "results"
    for folder in (here, tmp_path / "results/output"):
        folder.mkdir(exist_ok=True)
        subprocess.run(["git", "status"], cwd=folder, capture_output=True, check=False)

    assert not ran.exists()
    assert len(fetched.refused) == 1
    assert (tmp_path / "results/output/head").read_text() == "a result"


def run_with_model(folder, text):
    output = folder / "carried/001/output"
    output.mkdir(parents=True)
    (output / "model.pt").write_text(text)
    (folder / "run.json").write_text(json.dumps({"id": folder.name.encode().hex()}, indent=1))
    return replace(record_of(folder), id=folder.name.encode().hex())


def test_a_folder_with_another_runs_results_is_refused(tmp_path):
    first = run_with_model(tmp_path / "first-7f3a", "first")
    second = run_with_model(tmp_path / "second-1111", "second")
    home, folder = Home(tmp_path / "home"), tmp_path / "results"
    fetch(first, home, to=folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    with pytest.raises(WrongUse, match="holds the results of run first-7f3a") as refused:
        fetch(second, home, to=folder)

    assert str(folder / "second-1111") in refused.value.hint
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert fetch(first, home, to=folder).files == 0
    assert fetch(second, home, to=folder / "second-1111").files == 2


@pytest.mark.parametrize("has_plan", [True, False])
def test_a_folder_that_an_older_version_fetched_into_is_refused_to_others(tmp_path, has_plan):
    """Its note does not say whose results it has; the plan that came with them does."""
    first = run_with_model(tmp_path / "first-7f3a", "first")
    second = run_with_model(tmp_path / "second-1111", "second")
    home, folder = Home(tmp_path / "home"), tmp_path / "results" / "first-7f3a"
    fetch(first, home)
    note = folder / ".fetched.json"
    note.write_text(json.dumps(json.loads(note.read_text())["files"]))
    if not has_plan:
        (folder / "run/run.json").unlink()

    with pytest.raises(WrongUse, match="holds the results of"):
        fetch(second, home, to=folder)
    fetch(first, home)

    assert (folder / "output/model.pt").read_text() == "first"
    assert json.loads(note.read_text())["run"]["id"] == first.id


def test_two_runs_of_one_name_do_not_share_their_folder(tmp_path):
    record = run_with_model(tmp_path / "first-7f3a", "first")
    home = Home(tmp_path / "home")
    fetch(record, home)

    with pytest.raises(WrongUse, match="another run named first-7f3a"):
        fetch(replace(record, id="another"), home)


def test_a_run_with_nothing_to_fetch_leaves_no_folder(tmp_path):
    (tmp_path / "empty-1111").mkdir()

    with pytest.raises(NoSuchRun):
        fetch(record_of(tmp_path / "empty-1111"), Home(tmp_path / "home"), to=tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_what_could_not_be_read_ends_the_command_with_an_error():
    fetched = Fetched("first-7f3a", Path("results"), 1, unread=("secret.pt (Permission denied)",))

    with pytest.raises(CommandFailed, match="not everything of first-7f3a") as failed:
        refuse_incomplete(fetched)

    assert "secret.pt (Permission denied)" in failed.value.why
    refuse_incomplete(replace(fetched, unread=()))
