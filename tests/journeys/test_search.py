"""`rabaska search` on this computer: run, table, best, stop, more, and what it refuses."""

import json
import os
import signal
import time

import pytest

from rabaska.errors import EnvironmentFailed, NoSuchRun, RabaskaError, SettingsError, WrongUse

TRAIN = """\
import argparse, math, os, time
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--depth", type=int, default=3)
parser.add_argument("--kind", choices=["a", "b"], default="a")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--pause", type=float, default=0.0)
parser.add_argument("--until", default="")
options = parser.parse_args()
while options.until and not os.path.exists(options.until):
    time.sleep(0.05)
for epoch in range(1, options.epochs + 1):
    time.sleep(options.pause)
    value = 0.9 - abs(math.log10(options.lr) + 2) / 10 - abs(options.depth - 4) / 50 - 0.1 / epoch
    print("epoch", epoch, "val_accuracy", round(value, 6), flush=True)
"""
SETTINGS = """\
name = "tiny"
command = "python train.py --lr 5"
[resources]
walltime = "60s"
[search]
metric = "val_accuracy"
method = "grid"
at_once = 2
[search.space]
lr = [0.1, 0.01]
depth = {int = [3, 4]}
"""


@pytest.fixture
def project(laptop):
    (laptop.project / "train.py").write_text(TRAIN)
    (laptop.project / "rabaska.toml").write_text(SETTINGS)
    return laptop


def _changed(laptop, **lines):
    """The settings with other lines under [search]; None removes one."""
    text = SETTINGS
    for key, value in lines.items():
        old = next((line for line in text.splitlines() if line.startswith(f"{key} = ")), None)
        new = "" if value is None else f"{key} = {value}\n"
        if old:
            text = text.replace(old + "\n", new)
        else:
            text = text.replace("[search]\n", f"[search]\n{new}")
    (laptop.project / "rabaska.toml").write_text(text)


def _status(laptop):
    return json.loads(laptop.types("search", "status", "--json"))


def _wait(laptop, until, seconds=40.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = _status(laptop)
        if until(found):
            return found
        time.sleep(0.1)
    raise AssertionError(found)


@pytest.mark.slow
def test_a_grid_is_tried_and_its_best_is_known(project):
    table = project.types("search", "run", "--wait", "--no-doctor", draws=["7f3a"])

    lines = [line.split() for line in table.splitlines() if line.strip()[0].isdigit()]
    assert [line[2:4] for line in lines] == [
        ["0.01", "4"], ["0.01", "3"], ["0.1", "4"], ["0.1", "3"],
    ]  # fmt: skip
    assert lines[0][1] == "0.85"
    best = project.types("search", "best")
    assert "val_accuracy 0.85, lr=0.01 depth=4" in best
    assert "rabaska run -- --lr 0.01 --depth 4" in best
    assert _status(project)["state"] == "finished"
    # A trial is a run: its log, and its command without the option that the search gives.
    run = json.loads(project.types("search", "best", "--json"))["run"]
    plan = json.loads((project.user.home / "store/runs" / run / "run.json").read_text())
    assert plan["command"] == ["python", "train.py", "--lr", "0.01", "--depth", "4"]


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(project):
    _changed(project, method='"random"', trials="3")
    gate = project.project / "gate"
    project.types("search", "run", "--no-doctor", "--", "--until", str(gate))
    found = _wait(project, lambda found: found["trials"])
    owner = _owner(found)

    os.kill(owner["pid"], signal.SIGKILL)
    gate.touch()

    found = _wait(project, lambda found: found["state"] == "finished")
    assert len(found["trials"]) == 3
    assert {trial["state"] for trial in found["trials"]} == {"finished"}
    assert all(trial["reports"] == 2 for trial in found["trials"])


def _owner(found):
    with open(os.path.join(found["path"], "trials/0000/000001.json")) as stream:
        return json.load(stream)["owner"]


@pytest.mark.slow
def test_a_stopped_search_is_continued_and_gets_more_trials(project):
    _changed(project, method='"random"', trials="1")
    gate = project.project / "gate"
    project.types("search", "run", "--no-doctor", "--", "--until", str(gate))
    _wait(project, lambda found: found["trials"])
    with pytest.raises(WrongUse, match=r"search .* of this project is running on here"):
        project.types("search", "run", "--no-doctor")

    project.types("search", "stop")
    _wait(project, lambda found: found["state"] == "stopped")
    with pytest.raises(NoSuchRun, match=r"no trial of search .* has finished yet"):
        project.types("search", "best")
    gate.touch()
    project.types("search", "more", "1")

    found = _wait(project, lambda found: found["state"] == "finished")
    assert len(found["trials"]) == found["total"] == 2
    _changed(project, method='"random"', trials="1", lr="[0.1, 0.5]")
    with pytest.raises(WrongUse, match=r"the space of search .* is not that of rabaska.toml"):
        project.types("search", "more", "1")


@pytest.mark.slow
def test_trials_that_fall_behind_are_stopped_early(project):
    _changed(project, stopping='"asha"', lr="[0.01, 10.0]", depth="[4]", at_once="1")

    project.types("search", "run", "--wait", "--no-doctor", "--", "--epochs", "4", "--pause", "0.5")

    found = _status(project)
    assert [trial["state"] for trial in found["trials"]] == [
        "finished", "stopped early",
    ]  # fmt: skip
    assert "may go on" in found["trials"][1]["why"]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ({"lr": "[]"}, "it has no values"),
        ({"lr": "{log = [0.1, 0.01]}"}, "is not below the highest"),
        ({"lr": None, "depth": None}, "[search.space] is empty"),
        ({"metric": '"quality"'}, "is a large `quality` good or bad?"),
        ({"metric": None, "method": '"random"'}, "[search] has no `metric`"),
        ({"method": '"tpi"'}, "did you mean `tpe`?"),
        ({"depth": "{int = [1, 4]}\nwidht = [1, 2]"}, "no option for `widht`"),
        ({"depth": '{int = [1, 4]}\nkind = ["a", "c"]'}, "--kind cannot be 'c'"),
        ({"lr": "{log = [0.001, 0.1]}"}, "a grid needs a list of values, or `points = 5`"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_sent(project, lines, words):
    _changed(project, **lines)

    with pytest.raises(SettingsError) as refusal:
        project.types("search", "run")

    assert words in str(refusal.value)
    assert not (project.user.home / "store/searches").exists()


def test_a_project_without_a_search_is_told_of_init(project):
    (project.project / "rabaska.toml").write_text('command = "python train.py"\n')

    with pytest.raises(SettingsError, match=r"rabaska.toml has no \[search\]"):
        project.types("search", "run")


def test_the_plan_of_a_search_is_shown_and_nothing_is_made(project):
    shown = project.types("search", "run", "--dry-run")

    assert "4 trials by grid" in shown
    assert "at once: 2" in shown
    assert "search work" in shown
    assert not (project.user.home / "store/searches").exists()


def test_without_a_search_there_is_none_to_show(project):
    with pytest.raises(RabaskaError, match="no searches yet"):
        project.types("search", "status")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "words"),
    [
        (
            TRAIN.replace("val_accuracy", "val_loss"),
            "it never reported val_accuracy; it reported val_loss",
        ),
        (TRAIN + "raise ValueError('no such layer')\n", "its last line: ValueError: no such layer"),
        (TRAIN.replace("round(value, 6)", "float('nan')"), "its metric is nan"),
    ],
)  # fmt: skip
def test_a_search_whose_trials_all_fail_alike_stops_after_three_and_says_why(
    project, program, words
):
    (project.project / "train.py").write_text(program)
    _changed(project, at_once="1", lr="[0.1, 0.01, 0.001]", depth="{int = [1, 9]}")

    project.types("search", "run", "--wait", "--no-doctor", "--", "--epochs", "1")

    found = _status(project)
    assert (found["state"], len(found["trials"])) == ("failed", 3)
    assert found["halted"].startswith("3 trials failed in the same way and none succeeded: ")
    assert words in found["halted"]
    assert words in project.types("search", "status")


def test_optuna_that_cannot_be_had_is_told_before_anything_is_submitted(project, monkeypatch):
    for name, value in {"PIP_CONFIG_FILE": "/dev/null", "PIP_NO_INDEX": "1"}.items():
        monkeypatch.setenv(name, value)
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    _changed(project, method='"tpe"', trials="3")

    with pytest.raises(EnvironmentFailed) as refusal:
        project.types("search", "run", "--no-doctor")

    assert "`tpe` needs Optuna, which cannot be had on here" in str(refusal.value)
    assert '`method = "random"` or "sobol"' in refusal.value.hint
    assert not (project.user.home / "store/searches").exists()
