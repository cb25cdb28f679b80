"""A node that has `python3` and no `python`: every way to say it works, and that is said."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.bare import bare_path

from rabaska.node.job import program_environment
from rabaska.node.record.plan import Launch
from rabaska.node.record.run_folder import RunFolder

SAYS = "import sys; print('ran', sys.argv[1:])\n"
TORCHRUN = """
import runpy, sys
assert sys.argv[1].startswith("--nnodes")
script = next(n for n, word in enumerate(sys.argv) if n and not word.startswith("-"))
sys.argv = sys.argv[script:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
CODE = {
    "package/__init__.py": "",
    "package/train.py": SAYS,
    "run.sh": "#!/bin/sh\nexec python train.py from-a-script\n",
    # What `launch = "torchrun"` runs, without PyTorch.
    "torch/__init__.py": "", "torch/distributed/__init__.py": "",
    "torch/distributed/run.py": TORCHRUN,
}  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> str:
    return bare_path(tmp_path / "bin", python3=sys.executable)


@pytest.mark.parametrize(
    "command",
    [
        ["python", "train.py", "x"], ["python", "-m", "package.train"], ["./run.sh"],
        ["bash", "-c", "python -u train.py"], ["env", "python", "train.py"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_every_way_to_say_python_runs_the_one_that_is_there(agents_for, path, command):
    agents = agents_for(SAYS, code_files=CODE, command=command)

    code, said = agents.job(PATH=path)

    log = Path(agents.run.log(1)).read_text()
    assert (code, "ran [" in log) == (0, True), said + log
    assert ("there is no `python` here" in log) == ("python" in command)
    assert ("there is no `python` here" in said) == ("python" in command)


def test_torchrun_runs_it_too(agents_for, path):
    launch = Launch("torchrun", nodes=1, tasks=1)
    agents = agents_for(SAYS, code_files=CODE, command=["python", "train.py", "x"], launch=launch)

    code, said = agents.job(PATH=path)

    log = Path(agents.run.log(1)).read_text()
    assert (code, "ran ['x']" in log) == (0, True), said + log


def test_a_second_job_runs_it_too(agents_for, path):
    agents = agents_for(SAYS + "sys.exit(85)", command=["python", "train.py"])

    agents.job(PATH=path)
    agents.job(PATH=path)

    assert "ran []" in Path(agents.run.log(2)).read_text()


def test_the_python_of_an_environment_goes_first(agents_for, path, tmp_path):
    """As in a virtualenv, whose folder comes first on PATH."""
    own = tmp_path / "venv" / "bin"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", own.parent], check=True)
    agents = agents_for("import sys; print(sys.prefix)", command=["python", "train.py"])

    code, said = agents.job(PATH=f"{own}{os.pathsep}{path}")

    assert (code, Path(agents.run.log(1)).read_text()) == (0, f"{own.parent}\n"), said
    assert "there is no" not in said


def test_python3_runs_where_only_python_is(agents_for, tmp_path):
    path = bare_path(tmp_path / "bin", python=sys.executable)
    agents = agents_for(SAYS, code_files=CODE, command=["python3", "train.py"])

    assert agents.job(PATH=path)[0] == 0


def test_without_any_python_on_the_path_the_agents_own_is_run(agents_for, tmp_path):
    agents = agents_for(SAYS, code_files=CODE, command=["python", "train.py"])

    code, said = agents.job(PATH=bare_path(tmp_path / "bin"))

    assert code == 0
    assert f"`python` runs {agents.python}" in said


def test_where_both_are_there_nothing_is_made(tmp_path):
    path = bare_path(tmp_path / "bin", python=sys.executable, python3=sys.executable)
    run = RunFolder(str(tmp_path / "run"))

    assert program_environment.provide({"PATH": path}, run) == {"PATH": path}
    assert not os.path.exists(run.path)
