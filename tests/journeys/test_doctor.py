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


def test_a_serious_finding_is_told_with_its_remedy_and_an_exit_code(project):
    told = types(project, "doctor", code=1)

    assert "error: it never saves its state" in told.stdout
    assert "fix: " in told.stdout
    assert "1 error, 0 warnings" in told.stderr


def test_findings_can_be_read_by_a_script(project):
    told = json.loads(types(project, "doctor", "--json", code=1).stdout)

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


def test_a_package_that_the_python_of_the_job_lacks_is_told_before_the_job(project):
    script = "import nowhere_to_be_found, own\nimport os.path\n"
    (project / "own.py").write_text("")
    (project / "train.py").write_text(f"{script}print('done')\n")
    (project / "rabaska.toml").write_text('command = "python train.py"\n')

    told = json.loads(types(project, "doctor", "--json", code=1).stdout)
    warned = types(project, "run", "--wait", code=1).stderr

    assert [each["id"] for each in told["findings"]] == ["environment.module"]
    assert "nowhere_to_be_found is imported" in told["findings"][0]["what"]
    assert "note: nowhere_to_be_found is imported" in warned


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
