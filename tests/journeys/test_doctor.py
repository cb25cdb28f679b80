"""`rabaska doctor` as a user types it, and what `run` says of the same faults."""

import json
import os
import subprocess
import sys

import pytest


@pytest.fixture
def project(tmp_path):
    (tmp_path / "rabaska.toml").write_text('command = "python train.py"\n[chain]\njobs = 2\n')
    (tmp_path / "train.py").write_text("for step in range(3):\n    print('step', step)\n")
    return tmp_path


def types(project, *words, code=0):
    environment = {**os.environ, "RABASKA_HOME": str(project / "home"), "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "rabaska", *words], env=environment, cwd=project,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done


ASKS = "name = input('Name of the run? ')\nprint(name)\n"


def test_an_error_is_told_with_its_remedy_and_an_exit_code(project):
    (project / "train.py").write_text(ASKS)

    told = types(project, "doctor", code=1)

    assert "error: it waits for keyboard input" in told.stdout
    assert "warning: it never saves its state" in told.stdout
    assert "fix: " in told.stdout
    assert "1 error, 1 warning" in told.stderr


def test_findings_can_be_read_by_a_script(project):
    told = json.loads(types(project, "doctor", "--json").stdout)

    assert [each["id"] for each in told["findings"]] == ["code.never-saves"]


def test_what_is_repaired_is_no_longer_an_error(project):
    (project / "rabaska.toml").write_text('command = "python train.py"\n')
    (project / "run.sh").write_bytes(b"#!/bin/bash\r\npython train.py\r\n")

    repaired = types(project, "doctor", "--fix")

    assert "gave run.sh Unix line ends" in repaired.stdout
    assert "no problems found" in types(project, "doctor").stderr


def test_run_warns_and_goes_on_and_can_be_told_not_to(project):
    warned = types(project, "run", "--wait", "-q")
    silent = types(project, "run", "--wait", "-q", "--no-doctor")

    assert "it never saves its state" in warned.stderr
    assert "it never saves its state" not in silent.stderr


def test_an_error_stops_run_unless_it_is_told_to_go_on(project):
    (project / "train.py").write_text(ASKS)
    (project / "rabaska.toml").write_text('command = "python train.py"\n')

    refused = types(project, "run", code=19).stderr
    runs = project / "home" / "runs"
    nothing = not runs.exists() or not [*runs.iterdir()]
    gone_on = types(project, "run", "--anyway", "--wait", code=1).stderr
    unchecked = types(project, "run", "--no-doctor", "--wait", "-q", code=1).stderr

    assert "error: this run would fail: it waits for keyboard input" in refused
    assert "train.py, line 1" in refused
    assert "hint: make it an option of the program, with its value in `command`" in refused
    assert nothing
    assert "note: it waits for keyboard input" in gone_on
    assert "keyboard" not in unchecked


def test_run_shows_a_handful_of_lines_and_counts_the_rest(project):
    paths = "".join(f"open('/home/ana/{n}.csv')\n" for n in range(9))
    (project / "train.py").write_text(f"def later():\n    pass\n{paths}")
    (project / "rabaska.toml").write_text('command = "python train.py"\n')

    said = types(project, "run", "--wait", code=1).stderr

    assert said.count("note: the path") == 4
    assert "note: and 5 notes: `rabaska doctor --on here`" in said


def test_a_package_that_the_python_of_the_job_lacks_is_told_before_the_job(project):
    script = "import nowhere_to_be_found, own\nimport os.path\n"
    (project / "own.py").write_text("")
    (project / "train.py").write_text(f"{script}print('done')\n")
    (project / "rabaska.toml").write_text('command = "python train.py"\n')

    told = json.loads(types(project, "doctor", "--json", code=1).stdout)
    refused = types(project, "run", "--wait", code=19).stderr

    assert [each["id"] for each in told["findings"]] == ["environment.module"]
    assert "nowhere_to_be_found is imported" in told["findings"][0]["what"]
    assert "error: this run would fail: nowhere_to_be_found is imported" in refused


def test_what_was_not_filled_in_is_refused_before_anything_is_done(project):
    (project / "rabaska.toml").write_text('command = "python train.py --token FILL-IN"\n')

    for words in (("run",), ("run", "--dry-run")):
        said = types(project, *words, code=3).stderr
        assert "`FILL-IN` in `command`" in said
        assert "line 1" in said
    assert not (project / "home" / "runs").exists()


def test_a_secret_without_a_value_is_found_before_run_refuses_it(project):
    settings = 'command = "python train.py"\n[environment]\nsecrets = ["NOBODY_HAS_THIS_KEY"]\n'
    (project / "rabaska.toml").write_text(settings)

    told = types(project, "doctor", code=1)

    assert "error: there is no value for the secret NOBODY_HAS_THIS_KEY" in told.stdout
    assert "fix: `export NOBODY_HAS_THIS_KEY=…`" in told.stdout
