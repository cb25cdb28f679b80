"""Ctrl-C ends every command in the same way, whatever Python was at."""

import pytest

from rabaska import cli
from rabaska.steps.new_run import report_if_stopped
from rabaska.steps.progress import SilentReporter


def interrupted():
    raise KeyboardInterrupt


def interrupted_in_a_class():
    try:
        interrupted()
    except KeyboardInterrupt as problem:
        raise RuntimeError("Error calling __set_name__") from problem


@pytest.mark.parametrize("stop", [interrupted, interrupted_in_a_class])
def test_ctrl_c_is_no_traceback(stop, monkeypatch, capfd):
    monkeypatch.setattr(cli, "_any_command", lambda _: stop())

    with pytest.raises(SystemExit) as ended:
        cli.main(["pack"])

    assert ended.value.code == 130
    assert capfd.readouterr().err.startswith("stopped;")


def test_other_errors_of_ours_keep_their_traceback(monkeypatch):
    def fail(_):
        raise RuntimeError("a bug")

    monkeypatch.setattr(cli, "_any_command", fail)

    with pytest.raises(RuntimeError, match="a bug"):
        cli.main(["pack"])


def test_who_was_told_what_a_ctrl_c_interrupted_is_told_no_more(monkeypatch, capfd):
    def told(_words):
        with report_if_stopped("nothing was submitted", SilentReporter()):
            interrupted()

    monkeypatch.setattr(cli, "_any_command", told)

    with pytest.raises(SystemExit):
        cli.main(["run"])

    assert capfd.readouterr().err.splitlines()[-1] == "stopped"
