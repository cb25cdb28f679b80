"""conda environments on this computer: built once, packed, moved to where each job unpacks them.

No real conda can be had for the tests: tests/stand_ins/micromamba makes what conda would make.
"""

import json
import os
import shutil
from pathlib import Path

import pytest

STAND_IN = Path(__file__).parent.parent / "stand_ins" / "micromamba"

ENVIRONMENT = """
name: vision
channels: [conda-forge]
dependencies:
  - python=3.11
  - paddle
"""

TRAIN = """
import json, os, paddle

root = os.environ["CONDA_PREFIX"]
with open(root + "/lib/libp.so", "rb") as stream:
    program = stream.read()
told = {
    "moved": paddle.HOME == root, "activated": os.environ["PADDLE_HOME"] == root + "/share",
    "program": (root + "/share/paddle").encode() + b"\\0" in program,
    "local": root.startswith(os.path.dirname(os.environ["RABASKA_LOCAL"])),
}
json.dump(told, open(os.path.join(os.environ["RABASKA_OUTPUT"], "told.json"), "w"))
"""

SETTINGS = """
name = "condor"
command = "python train.py"

[environment]
kind = "conda"
variables = {CONDA_OVERRIDE_CUDA = "12.4"}
"""


@pytest.fixture
def condor(user, tmp_path, monkeypatch):
    tools = tmp_path / "tools"
    tools.mkdir()
    shutil.copy(STAND_IN, tools / "micromamba")
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    user.write("train.py", TRAIN)
    user.write("environment.yml", ENVIRONMENT)
    user.write("rabaska.toml", SETTINGS)
    return user


@pytest.mark.slow
def test_an_environment_is_built_once_and_moved_to_where_the_job_unpacks_it(condor, tmp_path):
    first = condor.types("run", "--jobs", "1")
    run = first.output.strip()
    condor.types("wait", run)
    second = condor.types("run", "--jobs", "1", "--wait")

    for name in (run, second.output.split()[0]):
        output = condor.home / "store" / "runs" / name / "output"
        told = json.loads((output / "told.json").read_text())
        assert told == {"moved": True, "activated": True, "program": True, "local": True}
    assert "conda builds environment.yml once on here" in first.errors
    assert "6 per node" in first.errors
    assert "conda builds" not in second.errors
    assert (tmp_path / "tools" / "asked.log").read_text() == "python paddle cuda=12.4\n"
    left = sorted(path.suffix for path in (condor.home / "store" / "envs").iterdir())
    assert left == [".json", ".tar"]


def test_what_conda_cannot_solve_is_told_in_its_words_before_the_queue(condor):
    condor.write("environment.yml", ENVIRONMENT.replace("paddle", "of-nobody"))

    said = condor.types("run", code=11).errors

    assert "conda could not build environment.yml on here" in said
    assert "of-nobody =* * does not exist" in said
    assert "nothing was submitted" in said


def test_where_there_is_no_conda_that_is_told_with_what_to_do(condor, tmp_path, monkeypatch):
    (tmp_path / "tools" / "micromamba").unlink()
    for name in ("MAMBA_EXE", "CONDA_EXE"):
        monkeypatch.delenv(name, raising=False)

    said = condor.types("run", code=11).errors

    assert "there is no micromamba, mamba or conda on here" in said
    assert '`modules = ["miniforge"]`' in said


def test_a_conda_file_that_is_not_there_is_a_mistake_in_the_settings(condor):
    (condor.project / "environment.yml").unlink()

    said = condor.types("run", code=3).errors

    assert "no readable conda environment file `environment.yml`" in said


# What `conda shell.bash hook` and `conda env list` print, as far as a name needs it.
CONDA = """#!/bin/bash
case "$1 $2" in
  "shell.bash hook") cat <<'END'
conda() { [ "$2" = vision ] && return; echo "EnvironmentNameNotFound: no $2" >&2; return 1; }
END
  ;;
  "env list") printf '# conda\\nbase  *  /opt/c\\nvision    /opt/c/envs/vision\\n';;
esac
"""


def named(user, name):
    user.write("train.py", "print('trained')\n")
    user.write("rabaska.toml", f'command = "python3 train.py"\n[environment]\npath = "{name}"\n')
    return user


def test_a_conda_name_that_is_absent_is_answered_with_those_that_are_there(
    user, tmp_path, monkeypatch
):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "conda").write_text(CONDA)
    (tools / "conda").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")

    said = named(user, "visoin").types("run", code=11).errors
    named(user, "vision").types("run", "--wait")

    assert "EnvironmentNameNotFound: no visoin" in said
    assert 'write `path = "vision"` under [environment]; conda on here has base, vision' in said


def test_a_conda_name_without_conda_is_answered_with_where_conda_comes_from(user):
    said = named(user, "vision").types("run", code=11).errors

    assert "there is no conda" in said
    assert '`modules = ["miniforge"]` under [environment]' in said
