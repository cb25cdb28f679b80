"""The table of all runs: its columns, and how it is sorted and filtered."""

from dataclasses import replace

import pytest

from rabaska.cli.quick_status import Choice
from rabaska.cli.render_status import many_runs
from rabaska.domain.runs import Job, RunState, RunStatus
from rabaska.errors import WrongUse
from rabaska.views.run_table import fields_of
from rabaska.views.runs import run_row

ABOUT = {"project": "cats", "queue": "gpu"}


def run(name, lr, loss, created, state=RunState.FINISHED, **more):
    command = ("python", "train.py", "--lr", lr, "--epochs", "3")
    metrics = {} if loss is None else {"loss": loss}
    return RunStatus(
        name, "campus", state, jobs_requested=2, jobs=(Job(1, first_step=1, last_step=9),),
        metrics=metrics, command=command, created=created, about=ABOUT, **more,
    )  # fmt: skip


SMALL = run("cats-1", "0.01", 0.5, 100.0, note="the first", tags=("paper",))
LARGE = run("cats-2", "0.1", 0.25, 200.0, state=RunState.FAILED, reason="out of memory")
NONE = run("cats-3", "1e-3", None, 300.0)
RUNS = [SMALL, LARGE, NONE]


def names(choice):
    return [one.name for one in choice(RUNS)]


def test_a_row_says_what_differs_and_what_the_run_reached():
    lines = many_runs(RUNS, 400.0, colours=False)

    assert lines[0].split() == [
        "run", "cluster", "state", "jobs", "progress", "last", "metric", "age", "arguments",
        "note", "reason",
    ]  # fmt: skip
    assert "--lr 0.01" in lines[1]
    assert "--epochs" not in lines[1]
    assert "loss 0.5" in lines[1]
    assert "5 min" in lines[1]
    assert "the first #paper" in lines[1]
    assert "out of memory" in lines[2]


@pytest.mark.parametrize(
    ("jobs", "progress", "number"),
    [
        ((Job(1, first_step=20, last_step=260), Job(2, first_step=260, last_step=1000)),
         "20-1000", 1000),
        ((Job(1, first_step=20, last_step=260), Job(2)), "20-260", 260),
        ((Job(1, epoch=3.0), Job(2)), "epoch 3", 3.0),
        ((Job(1),), "", None),
    ],
)  # fmt: skip
def test_progress_is_that_of_the_whole_chain(jobs, progress, number):
    chain = replace(SMALL, jobs=jobs)

    assert run_row(chain).progress == progress
    assert fields_of(chain)["progress"] == number


def test_a_column_that_says_nothing_of_any_run_is_left_out():
    heading = many_runs([NONE], 400.0, colours=False)[0]

    assert "note" not in heading
    assert "arguments" not in heading
    assert "metric" not in heading


@pytest.mark.parametrize(
    ("key", "order"),
    [
        ("lr", "312"),
        ("--lr", "312"),
        ("loss", "213"),
        ("age", "321"),
        ("created", "123"),
        ("state", "213"),
        ("name", "123"),
    ],
)
def test_runs_are_sorted_by_columns_metrics_and_arguments(key, order):
    assert names(Choice(sort=key)) == [f"cats-{number}" for number in order]


def test_what_is_not_known_is_last_in_either_order():
    assert names(Choice(sort="loss", reverse=True)) == ["cats-1", "cats-2", "cats-3"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["state=failed"], "2"),
        (["lr=0.10"], "2"),
        (["--lr=0.001"], "3"),
        (["tag=paper"], "1"),
        (["tag=#paper"], "1"),
        (["loss=0.5"], "1"),
        (["MEMORY"], "2"),
        (["first"], "1"),
        (["queue=gpu", "state=finished"], "13"),
        (["state=running"], ""),
        (["nothing=like"], ""),
    ],
)
def test_runs_are_filtered_by_values_or_by_text(filters, expected):
    assert names(Choice(filters=tuple(filters))) == [f"cats-{number}" for number in expected]


def test_a_key_that_no_run_has_is_refused_with_those_there_are():
    with pytest.raises(WrongUse) as refused:
        Choice(sort="los")(RUNS)

    assert "loss" in refused.value.hint
