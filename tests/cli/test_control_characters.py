"""What a cluster or a program prints is shown, and never obeyed by the terminal."""

import re

from hypothesis import given
from hypothesis import strategies as st

from rabaska.cli import terminal
from rabaska.cli.text import HarmlessLog, harmless, painted
from rabaska.domain.runs import Job, RunState, RunStatus
from rabaska.errors import CommandFailed

EVIL = "\x1b]52;c;cm0gLXJmIH4K\x07\x1b[2J\x9b2J\x08\x7f\ud800\u202e"
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


def test_nothing_that_is_printed_commands_the_terminal(capsys):
    run = RunStatus(
        f"tiny{EVIL}", "campus", RunState.FAILED, reason=EVIL, tail=EVIL, problems=(EVIL,),
        jobs=(Job(1, host=EVIL, how=EVIL),), metrics={EVIL: 1.0},
    )  # fmt: skip

    terminal.run_status(run)
    terminal.runs_table([run])
    terminal.note(f"a {EVIL}")
    terminal.error(CommandFailed(f"what {EVIL}", why=EVIL, hint=EVIL))
    terminal.Following()(run)
    with terminal.steps() as told:
        told.step(EVIL)
        told.warn(EVIL)
    terminal.table([(EVIL, "[bold]plain[/bold]")])
    shown = capsys.readouterr()

    assert not HARMFUL.search(shown.out + shown.err)
    assert "what \ufffd]52" in shown.err
    assert "[bold]plain[/bold]" in shown.out


def test_data_is_changed_for_a_terminal_and_not_for_a_program(capfdbinary, monkeypatch):
    terminal.data("one\x1b[2J")
    terminal.log([b"two\x1b[", b"2J\n"])
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    terminal.data("one\x1b[2J")
    terminal.log([b"two\x1b[", b"2J\n"])

    assert capfdbinary.readouterr().out == (
        b"one\x1b[2J\ntwo\x1b[2J\n" + "one\ufffd[2J\ntwo\n".encode()
    )


def test_our_own_colours_stay():
    coloured = painted("failed", "red", colours=True)

    assert harmless(f"{coloured}\n\tétape 1") == f"{coloured}\n\tétape 1"
    assert harmless("\x1b[8mhidden") == "\ufffd[8mhidden"


def test_a_log_keeps_colours_and_bars_that_are_drawn_again():
    bar = "\x1b[38;5;214m 50%|█████     |\x1b[0m\r100%|██████████|\r\n"

    assert HarmlessLog()(bar.encode()) == bar.encode()
    assert (
        HarmlessLog()(b"a\x1b[A\x1b[2Kb\x1b]0;title\x07\xffc")
        == "ab\ufffd]0;title\ufffd\ufffdc".encode()
    )


@given(
    st.lists(st.sampled_from(["\x1b", "[", "3", "1", ";", "m", "J", "\r", "é", "\x9b", "\n", "a"]))
)
def test_a_log_is_the_same_however_its_bytes_come(parts):
    whole = "".join(parts).encode() + b"\n"
    once, bytewise = HarmlessLog(), HarmlessLog()

    shown = once(whole)

    assert b"".join(bytewise(bytes([each])) for each in whole) == shown
    left = re.sub(r"\x1b\[[0-9;:]*m|\r", "", shown.decode())
    assert not HARMFUL.search(left)
