"""Ctrl-C ends every command in the same way, whatever Python was at."""

import pytest

from rabaska import cli


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
