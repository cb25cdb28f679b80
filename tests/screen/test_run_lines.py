"""One run in lines: everything at 80 x 24, and no crash in the smallest terminal."""

import math

import pytest
from tests.screen.watched_runs import NOW, curve, losses, seen

from rabaska.domain.runs import RunState
from rabaska.screen.actions import explanation_lines
from rabaska.screen.run_lines import Choice, run_lines
from rabaska.views.advice import ExplanationsView
from rabaska.views.bottlenecks import BottleneckView
from rabaska.views.plot import Look


def lines_of(run, width=80, height=23, choice=None):
    return [
        line.plain
        for line in run_lines(run, choice or Choice(), width=width, height=height, now=NOW)
    ]


def test_a_run_shows_state_forecast_chain_curve_vitals_checkpoint_and_log():
    text = "\n".join(lines_of(seen()))

    assert "cats-7f3a on campus  running" in text
    assert "epoch 4 of 40, 60 s each; 8 jobs" in text
    assert "job 2 on n2" in text
    assert "time limit (signal 15)" in text
    assert "─ loss" in text
    assert any(0x2800 < ord(letter) < 0x2900 for letter in text)
    assert "n2 gpu0 use 90%" in text
    assert "newest valid checkpoint: output/checkpoint-0190.pt (4.3 MB, 20 s old)" in text
    assert "step 199 loss 0.0187" in text


def test_gpus_come_first_and_two_measurements_share_a_line():
    values = {
        "cores used": "cores",
        "gpu0 use": "fraction",
        "processes": "",
        "gpu0 memory": "bytes",
    }
    vitals = {name: curve(name, [0.5] * 9, unit) for name, unit in values.items()}

    lines = [line for line in lines_of(seen(vitals={"n2": vitals})) if line.startswith("n2 ")]

    assert lines[0].startswith("n2 gpu0 use 50%")
    assert "n2 gpu0 memory" in lines[0]
    assert lines[1].startswith("n2 cores used")


def test_an_explanation_says_what_is_slow_and_what_to_change():
    slow = BottleneckView("data", "It waits for data.", "60% of a step", "num_workers", "2 times")
    view = ExplanationsView("run x", (), "It is running.", (), (), slow=(slow,))

    assert explanation_lines(view)[-4:] == [
        "slow: data. It waits for data.",
        "because 60% of a step",
        "fix: num_workers",
        "gain: 2 times",
    ]


@pytest.mark.parametrize("width", [1, 2, 5, 20, 40, 80, 200])
@pytest.mark.parametrize("height", [0, 1, 2, 4, 10, 24, 60])
def test_lines_fit_whatever_the_size_of_the_terminal(width, height):
    for choice in (Choice(), Choice(by_time=True, smooth=True, look=Look(log=True, ascii=True))):
        lines = run_lines(seen(), choice, width=width, height=height, now=NOW)

        assert len(lines) <= height
        assert all(line.cell_len <= width for line in lines)


def test_what_is_old_says_how_old_and_why():
    old = seen(at=NOW - 600, trouble="campus does not answer")

    assert "10 min old: campus does not answer" in lines_of(old)[0]


def test_a_run_that_was_never_seen_is_named():
    assert "cats-7f3a" in lines_of(seen(run=None))[0]


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1.0],
        [math.nan] * 5,
        [math.inf, 1.0, -math.inf],
        [1e308, -1e308],
        [0.0] * 3,
        losses(5000),
    ],
)
def test_any_numbers_make_a_curve(values):
    for choice in (Choice(), Choice(look=Look(log=True)), Choice(smooth=True, by_time=True)):
        lines_of(seen(curves={"x": curve("x", values)}), choice=choice)


@pytest.mark.parametrize("state", list(RunState))
def test_every_state_can_be_shown(state):
    assert state.value in lines_of(seen(state=state))[0]


def test_what_a_program_prints_is_shown_and_not_interpreted():
    codes = "\x1b[2J\x1b]0;title\x07\x1b[31mred\x1b[0m \x9b2J \u202edrow"
    evil = f"[bold red]x[/] [@click=app.quit]y[/] {codes}"
    text = "\n".join(
        lines_of(seen(tail=f"{evil}\nend", reason=evil, curves={evil: curve(evil, [1, 2])}))
    )

    assert "[bold red]x[/] [@click=app.quit]y[/]" in text
    assert not any(letter in text for letter in "\x1b\x07\x9b\u202e")
    assert "title" not in text
