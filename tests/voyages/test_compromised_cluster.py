"""A login node in the wrong hands: its answers reach neither our files nor our terminal.

Its `python3` answers a word of ours with the text that lies in `~/lies/WORD`, and is the real one
for all others.
"""

import json
import os
import shutil
import sys
import tempfile

import pytest
from tests.remote.login_node import login_node

LIAR = """#!/bin/bash
for word; do [ -e ~/lies/"$word" ] && {{ cat ~/lies/"$word"; exit 0; }}; done
exec {python} "$@"
"""
PROFILE = 'title = "Evil"\nscheduler = "local"\n[reach]\nhost = "login"\noptions = {options}\n'


@pytest.fixture(scope="module")
def login(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evil")
    (folder / "bin").mkdir()
    (folder / "bin" / "python3").write_text(LIAR.format(python=sys.executable))
    (folder / "bin" / "python3").chmod(0o755)
    with login_node(folder, f"{folder}/bin:{os.environ['PATH']}") as there:
        (there.home / "lies").mkdir()
        yield there


@pytest.fixture
def evil(login, user, monkeypatch):
    """What the cluster `evil` answers from now on, by word."""
    sockets = tempfile.mkdtemp(prefix="rabaska-", dir="/tmp")  # the path of a socket must be short
    monkeypatch.setenv("XDG_RUNTIME_DIR", sockets)
    (user.home / "clusters").mkdir(parents=True)
    profile = PROFILE.format(options=json.dumps(login.options))
    (user.home / "clusters" / "evil.toml").write_text(profile)

    def answers(**lies):
        for word, text in lies.items():
            lines = text if isinstance(text, list) else [text]
            said = (each if isinstance(each, str) else json.dumps(each) for each in lines)
            (login.home / "lies" / word).write_text("\n".join(said) + "\n")

    yield answers
    shutil.rmtree(login.home / "lies")
    (login.home / "lies").mkdir()
    shutil.rmtree(sockets, ignore_errors=True)


def run(name, store, **changes):
    return {"run": name, "path": f"{store}/runs/{name}", "id": "c" * 32, "project": "tiny",
            "folder": "", "time": 1.0, **changes}  # fmt: skip


@pytest.mark.parametrize("name", ["../settings", "../../project/x", ".ssh", "a/b", "", "Ü", "a\nb"])
def test_a_name_that_leads_elsewhere_is_no_run(evil, user, login, name):
    evil(runs=run(name, f"{login.home}/rabaska"))

    said = user.types("status", "--on", "evil", code=None)

    assert "is not of the form" in said.errors
    assert [path.name for path in (user.home / "runs").rglob("*.json")] == []
    assert not (user.home / "settings.json").exists()
    assert not (user.project / "x.json").exists()


@pytest.mark.parametrize(
    "lie",
    [{"path": "/elsewhere/runs/tiny-1"}, {"path": 5}, {"id": "../../x"}, {"id": None},
     {"time": "now"}, {"time": 1e300}, {"project": []}, {"folder": 5}],
    ids=str,
)  # fmt: skip
def test_a_run_is_what_the_store_would_hold(evil, user, login, lie):
    evil(runs=[run("tiny-1", f"{login.home}/rabaska", **lie), "{}", "welcome"])

    user.types("status", "--on", "evil", code=None)

    assert list((user.home / "runs").rglob("*.json")) == []


def test_results_are_not_brought_into_folders_that_the_cluster_chose(evil, user, login, tmp_path):
    """A folder without a project has no name, and so has a run that names none."""
    chosen = tmp_path / "chosen"
    chosen.mkdir()
    evil(runs=run("tiny-1", f"{login.home}/rabaska", project="", folder=str(chosen)))

    user.types("status", "tiny-1", "--on", "evil", code=None)

    record = json.loads((user.home / "runs" / "tiny-1.json").read_text())
    assert record["project"] == ""


QUEUE = {"exit_code": 0, "said": "", "complained": "\x1b]52;c;eA==\x07\x1b[2J", "asked": []}
LAST = {"now": 1.7e9, "queue": QUEUE, "history": None}


@pytest.mark.parametrize("told", ["{", {"queue": 5}, {**LAST, "now": None}, LAST], ids=str)
def test_answers_that_are_none_are_told_without_a_traceback(evil, user, login, told):
    evil(runs=run("tiny-1", f"{login.home}/rabaska"), status=told)

    said = user.types("status", "tiny-1", "--on", "evil", code=12)

    assert "error: evil gave an answer that rabaska's own program there never gives" in said.errors
    assert "hint: " in said.errors


def test_words_of_a_cluster_do_not_command_the_terminal(evil, user, login):
    """Of a run's host, problems and log, of a queue, and of a folder that is no run."""
    store, escape = f"{login.home}/rabaska", "\x1b]52;c;eA==\x07\x1b[2J"
    listed = [run("tiny-1", store), {"path": f"/x{escape}", "problem": escape}]
    report = {
        "run": "tiny-1", "id": "c" * 32, "path": f"{store}/runs/tiny-1", "about": {}, "mark": None,
        "problems": [escape], "tail": escape, "metrics": {escape: 1},
        "jobs": [{"job": 1, "host": escape, "how": escape, "reason": escape, "ended": 1.0}],
        "verdict": {"decision": "stop", "reason": escape, "hint": escape}, "submissions": [],
    }  # fmt: skip
    evil(runs=listed, status=[report, LAST])

    everything = user.types("status", "--on", "evil")
    one = user.types("status", "tiny-1")

    shown = everything.output + everything.errors + one.output + one.errors
    assert "\ufffd]52;c;eA==\ufffd\ufffd[2J" in one.output
    assert "\x1b" not in shown
    assert "\x07" not in shown
