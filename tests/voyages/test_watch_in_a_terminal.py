"""`rabaska watch` as somebody sees it in a terminal, with a real run on this computer."""

import shutil
import sys

import pytest
from tests.screen.terminal import Tmux

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed"),
]


@pytest.fixture
def window(user):
    opened = []

    def open_window(*words, **more):
        own = {"RABASKA_HOME": str(user.home), "PATH": user.environment["PATH"]}
        own |= {"LC_ALL": "C.UTF-8"} | more.pop("variables", {})
        command = f"{sys.executable} -m rabaska {' '.join(words)}"
        opened.append(Tmux(user.project, command, environment=own, **more))
        return opened[-1]

    yield open_window
    for each in opened:
        each.end()


def test_a_run_is_watched_opened_cancelled_and_left(user, window):
    evil = "print('[bold]x[/] [@click=app.quit]y[/] \\x1b[2J\\x1b]0;title\\x07z', flush=True)\n"
    user.settings(walltime='"10m"')
    user.write("train.py", evil + (user.project / "train.py").read_text())
    run = user.types("run", "--quiet", "--", "--steps", "3000", "--pause", "0.1").output.strip()

    # As programs that use readline set them, and Textual would believe them for ever.
    screen = window("watch", variables={"COLUMNS": "80", "LINES": "24"})
    screen.shows(run, "running", "step ")
    screen.types("Enter")
    shown = screen.shows(f"{run} on here  running", "─ loss", "job 1", "─ log")
    assert any(0x2800 < ord(letter) < 0x2900 for letter in shown)

    screen.types("l")
    screen.shows("the end of its log", "loss")
    screen.types("Home")
    screen.shows("[bold]x[/] [@click=app.quit]y[/] z")
    screen.types("q")
    screen.types("?")
    screen.shows("cancel the run; asks first")
    screen.types("q")

    screen.resizes(20, 5)
    screen.shows("running")
    screen.resizes(80, 24)
    screen.types("c")
    screen.shows(f"Cancel {run}?")
    screen.types("y")
    screen.shows(f"{run} on here  cancelled")
    screen.types("q")
    screen.shows("state")
    screen.types("q")
    screen.shows("ended 0")


def test_without_colours_and_braille_a_run_can_be_read_too(user, window):
    user.types("run", "--quiet", "--wait", "--", "--steps", "12")

    screen = window("watch", "tiny", variables={"NO_COLOR": "1", "TERM": "linux"})

    shown = screen.shows("finished", "─ loss", "newest valid checkpoint")
    assert not any(0x2800 < ord(letter) < 0x2900 for letter in shown)
    screen.types("C-c")
    screen.shows("ended 0")


def test_lines_are_printed_where_there_is_no_terminal(user):
    run = user.types("run", "--quiet", "--", "--steps", "5").output.strip()

    lines = user.types("watch", run).output.splitlines()

    assert all(run in line for line in lines)
    assert "finished" in lines[-1]
    assert "\x1b" not in "".join(lines)
