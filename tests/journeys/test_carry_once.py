"""Carry once, plan many times: what runs of one project share is done once."""

import collections
from dataclasses import replace

import pytest

from rabaska.records.home import Home
from rabaska.scouting import scripts
from rabaska.settings.project_file import load
from rabaska.steps import carry as carrying
from rabaska.steps.connect import connect
from rabaska.steps.plan_run import job_spec, plan_run
from rabaska.steps.progress import SilentReporter

ONCE = ("ready_dataset", "take_snapshot", "push", "prepare", "read_resumption")


@pytest.fixture
def calls(monkeypatch):
    """How often each of the functions that carry was called; they do what they do."""
    counted = collections.Counter()

    def counting(name, function):
        def call(*words, **more):
            counted[name] += 1
            return function(*words, **more)

        return call

    for name in ONCE:
        monkeypatch.setattr(carrying, name, counting(name, getattr(carrying, name)))
    monkeypatch.setattr(scripts, "find", counting("source", scripts.find))
    return counted


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path / "home")
    home.store.mkdir(parents=True)
    return home


@pytest.fixture
def carry(tmp_path, home):
    """Carries the project as its folder is now."""
    folder = tmp_path / "project"
    (folder / "pictures").mkdir(parents=True)
    (folder / "pictures" / "cat.txt").write_text("a cat")
    (folder / "train.py").write_text("print('step 1 loss 0.5')\n")
    (folder / "rabaska.toml").write_text(
        'name = "tiny"\ncommand = "python train.py {data}"\n[resources]\nwalltime = "30s"\n'
        '[data.pictures]\npath = "pictures"\n'
    )

    def carried(**changes):
        project, cluster = load(folder, cluster="here"), connect("here", home)
        project = replace(project, **changes)
        job = job_spec(project, cluster.cluster, cluster.store)
        return carrying.carry(project, job, cluster, home, SilentReporter())

    return carried


def test_twenty_runs_are_planned_of_what_was_carried_once(carry, calls):
    carried = carry()
    planned = [plan_run(carried, f"tiny-{number}") for number in range(20)]

    assert calls == dict.fromkeys([*ONCE, "source"], 1)
    assert len({run.plan.id for run in planned}) == 20
    assert {(run.plan.code, run.plan.datasets[0].pack) for run in planned} == {
        (carried.code, carried.packs[0].identity)
    }
    assert planned[7].spec.folder == f"{carried.cluster.store}/runs/tiny-7/logs"


def test_the_source_is_read_again_when_it_or_its_command_changes(carry, calls, tmp_path):
    first = carry()
    assert (carry().resumes, calls["source"]) == (first.resumes, 1)

    carry(command=("python", "train.py", "--fast"))
    assert calls["source"] == 2

    (tmp_path / "project" / "train.py").write_text("import os\nos.environ['RABASKA_CHECKPOINT']\n")
    assert carry().resumes != first.resumes
    assert calls["source"] == 3


def test_a_damaged_note_of_how_a_program_resumes_is_read_as_none(carry, calls, home):
    first = carry()
    [note] = home.checked.glob("program-*")
    note.write_text("{")

    assert carry().resumes == first.resumes
    assert calls["source"] == 2
