"""`rabaska storage` and `rabaska clean`, with real runs on this computer."""

import json
import os
import subprocess
import sys
import time

import pytest

SETTINGS = """
name = "tiny"
command = "python train.py {data}"
[data.numbers]
path = "numbers"
[resources]
walltime = "60s"
"""


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / "numbers").mkdir(parents=True)
    (folder / "numbers" / "one.txt").write_text("1" * 5000)
    (folder / "rabaska.toml").write_text(SETTINGS)
    (folder / "train.py").write_text("print('step 1')\n")
    return folder


def types(project, *words, code=0, **variables):
    home = project.parent / "home"
    environment = {**os.environ, "RABASKA_HOME": str(home), "NO_COLOR": "1", **variables}
    done = subprocess.run(
        [sys.executable, "-m", "rabaska", *words], env=environment, cwd=project,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done


def age(project, days=3):
    """Let everything in the store look as if it were some days old."""
    then = time.time() - days * 86400
    for kind in ("packs", "code", "node", "envs"):
        for path in (project.parent / "home" / "store" / kind).glob("*"):
            os.utime(path, (then, then))


def packs(project):
    return list((project.parent / "home" / "store" / "packs").glob("numbers-*"))


def test_storage_tells_what_is_kept(project):
    types(project, "run", "--wait", "-q")

    told = json.loads(types(project, "storage", "--json").stdout)

    kinds = {each["kind"] for each in told["kept"]}
    assert {"packs", "code", "node", "runs"} <= kinds
    assert told["free"] > 0
    assert "packs" in types(project, "storage").stdout


def test_a_preview_deletes_nothing_and_yes_deletes_what_it_showed(project):
    types(project, "run", "--wait", "-q")
    age(project)

    shown = types(project, "clean").stdout
    kept = packs(project)
    deleted = types(project, "clean", "--yes").stdout

    assert kept
    assert kept[0].name in shown
    assert kept[0].name in deleted
    assert packs(project) == []
    assert not list((project.parent / "home" / "store").glob("trash-*"))


def test_the_results_of_a_finished_run_stay(project):
    run = types(project, "run", "--wait", "-q", "--json").stdout
    age(project)
    types(project, "clean", "--yes")

    assert "step 1" in types(project, "logs", json.loads(run)["name"]).stdout


def test_the_next_run_packs_and_sends_again(project):
    types(project, "run", "--wait", "-q")
    age(project)
    types(project, "clean", "--yes")

    types(project, "run", "--wait", "-q")

    assert packs(project)


def test_an_unfinished_run_keeps_all_that_it_needs(project):
    (project / "train.py").write_text("raise SystemExit(3)\n")
    types(project, "run", "--wait", "-q", code=3)
    age(project)

    told = json.loads(types(project, "clean", "--yes", "--json").stdout)

    assert packs(project)
    assert [each for each in told["removed"] if each["kind"] in ("packs", "code")] == []


def test_what_was_made_today_is_left_in_peace(project):
    types(project, "run", "--wait", "-q")

    assert "nothing to clean" in types(project, "clean").stderr


def test_what_a_push_finds_there_is_not_cleaned_away_before_its_run_is_made(project):
    types(project, "run", "--wait", "-q")
    age(project)

    types(project, "pack")  # what `run` does first, long before there is a run to speak of it
    told = json.loads(types(project, "clean", "--yes", "--json").stdout)

    assert packs(project)
    assert "packs" not in {each["kind"] for each in told["removed"]}


def test_what_is_used_while_it_is_cleaned_comes_back(project):
    types(project, "run", "--wait", "-q")
    age(project)
    # A `mv` that somebody's push overtakes: the pack is used after it was listed.
    slow = project.parent / "slow"
    slow.mkdir()
    (slow / "mv").write_text('#!/bin/sh\ncase "$*" in *numbers-*) touch -c "$1";; esac\n'
                             'PATH=/usr/bin:/bin exec mv "$@"\n')  # fmt: skip
    (slow / "mv").chmod(0o755)

    told = json.loads(
        types(project, "clean", "--yes", "--json", PATH=f"{slow}:{os.environ['PATH']}").stdout
    )

    assert packs(project)
    assert "packs" not in {each["kind"] for each in told["removed"]}
    assert "packs" in {each["kind"] for each in told["unneeded"]}


def test_what_a_killed_clean_left_is_returned_or_removed(project):
    types(project, "pack")
    store, (pack,) = project.parent / "home" / "store", packs(project)
    for aside in ("trash-1", "trash-2.deleting"):
        (store / aside / "packs").mkdir(parents=True)
    (store / "trash-2.deleting" / "packs" / "numbers-half").mkdir()
    pack.rename(store / "trash-1" / "packs" / pack.name)

    types(project, "clean", "--yes")

    assert packs(project) == [pack]
    assert list(store.glob("trash-*")) == []
    assert "unchanged since it was packed" in types(project, "pack").stderr


def test_runs_that_cannot_be_reached_are_not_taken_for_none(project):
    types(project, "pack")
    age(project)
    store = project.parent / "home" / "store"
    (store / "runs").symlink_to(project / "not mounted")

    said = types(project, "clean", "--yes", code=12).stderr

    assert "the runs could not be inspected" in said
    assert packs(project)


@pytest.mark.parametrize("plan", [True, False], ids=["a plan", "a plan that cannot be read"])
def test_a_search_that_waits_keeps_all_that_it_needs_before_its_first_trial(project, plan):
    types(project, "pack")
    age(project)
    store = project.parent / "home" / "store"
    search = store / "searches" / "numbers-7f3a"
    search.mkdir(parents=True)
    if plan:
        (search / "study.json").write_text(json.dumps({"plan": packs(project)[0].name}))
    assert not (store / "runs").exists()

    types(project, "clean", "--yes")

    assert packs(project)
