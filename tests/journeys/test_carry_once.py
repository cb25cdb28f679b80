"""Carry once, plan many times: what runs of one project share is done once."""

import collections

import pytest

from rabaska.records.home import Home
from rabaska.settings.project_file import load
from rabaska.steps import carry as carrying
from rabaska.steps.connect import connect
from rabaska.steps.plan_run import job_spec, plan_run
from rabaska.steps.progress import SilentReporter

ONCE = ("pack_datasets", "take_snapshot", "push", "prepare", "resumption_of")


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
    find = carrying.scripts.find
    monkeypatch.setattr(carrying.scripts, "find", counting("source", find))
    return counted


def test_twenty_runs_are_planned_of_what_was_carried_once(tmp_path, calls):
    folder, home = tmp_path / "project", Home(tmp_path / "home")
    (folder / "pictures").mkdir(parents=True)
    (folder / "pictures" / "cat.txt").write_text("a cat")
    (folder / "train.py").write_text("print('step 1 loss 0.5')\n")
    (folder / "rabaska.toml").write_text(
        'name = "tiny"\ncommand = "python train.py {data}"\n[resources]\nwalltime = "30s"\n'
        '[data.pictures]\npath = "pictures"\n'
    )
    home.store.mkdir(parents=True)
    project, cluster = load(folder, cluster="here"), connect("here", home)
    job = job_spec(project, cluster.cluster, cluster.store)

    carried = carrying.carry(project, job, cluster, home, SilentReporter())
    planned = [plan_run(carried, f"tiny-{number}") for number in range(20)]

    assert calls == dict.fromkeys([*ONCE, "source"], 1)
    assert len({run.plan.id for run in planned}) == 20
    assert {(run.plan.code, run.plan.datasets[0].pack) for run in planned} == {
        (carried.code, carried.packs[0].identity)
    }
    assert planned[7].spec.folder == f"{cluster.store}/runs/tiny-7/logs"
