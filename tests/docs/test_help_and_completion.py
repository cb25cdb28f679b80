"""What the program prints about itself: its overview, and completion scripts for shells."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = str(Path(sys.executable).with_name("rabaska"))


def completed(typed: str) -> list[str]:
    """What bash would offer after `typed`, asked in the way bash asks."""
    words = typed.split(" ")
    asked = {
        "_RABASKA_COMPLETE": "bash_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(words) - 1),
    }
    asked = {**os.environ, **asked}
    told = subprocess.run([PROGRAM], env=asked, capture_output=True, text=True, check=False)
    return [line.partition(",")[2] for line in told.stdout.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_accepted_by_its_shell(shell, tmp_path):
    printed = subprocess.run([PROGRAM, "completion", shell], capture_output=True, check=True)
    script = tmp_path / "script"
    script.write_bytes(printed.stdout)

    assert b"_RABASKA_COMPLETE" in printed.stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n", script], check=True)


def test_the_beginning_of_a_command_is_completed():
    assert completed("rabaska sta") == ["status"]


def test_options_and_clusters_are_completed(tmp_path, monkeypatch):
    monkeypatch.setenv("RABASKA_HOME", str(tmp_path))

    assert "--walltime" in completed("rabaska run --wall")
    assert completed("rabaska run --on her") == ["here"]


def test_another_shell_is_refused():
    told = subprocess.run(
        [PROGRAM, "completion", "tcsh"], capture_output=True, text=True, check=False
    )

    assert told.returncode == 2
    assert "tcsh" in told.stderr


def test_help_whose_reader_left_ends_quietly():
    told = subprocess.run(
        ["bash", "-c", f"set -o pipefail; '{PROGRAM}' --help | true"],
        capture_output=True,
        check=False,
    )

    assert (told.returncode, told.stderr) == (0, b"")


@pytest.mark.parametrize("command", ["run", "resume"])
def test_the_older_name_of_jobs_is_understood_and_not_shown(command):
    shown = subprocess.run([PROGRAM, command, "--help"], capture_output=True, text=True, check=True)
    wrong = subprocess.run(
        [PROGRAM, command, "--links", "0"], capture_output=True, text=True, check=False
    )

    assert "--jobs" in shown.stdout
    assert "--links" not in shown.stdout
    assert "'--jobs': 0 is not in the range x>=1" in " ".join(wrong.stderr.split())
    assert "--links" not in completed(f"rabaska {command} --li")
