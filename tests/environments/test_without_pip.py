"""A Python without pip, venv or ensurepip: it gets a virtual environment all the same."""

import os
import subprocess
import sys
import zipfile

import pytest
from tests.environments.bare_pythons import EVERYTHING, bare_python, lacks
from tests.environments.small_wheels import make_wheel
from tests.needs.pythons import interpreters

from rabaska.domain.clusters import Cluster
from rabaska.domain.projects import EnvironmentRecipe
from rabaska.environments.download import find_pip, fits, pip_words
from rabaska.packing.node_bundle import bundle
from rabaska.remote.this_computer import Here
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.environment import prepare

PYTHONS = list(interpreters().items())
OLDEST_AND_NEWEST = dict([PYTHONS[0], PYTHONS[-1]])
LACKING = [("job", EVERYTHING), ("once", ("pip", "venv")), ("job", ("ensurepip",))]


class Said:
    def __init__(self):
        self.steps = []

    def step(self, text):
        self.steps.append(text)

    def warn(self, text):
        self.steps.append(text)

    def progress(self, *_):
        pass


@pytest.fixture
def station(tmp_path, monkeypatch):
    """This computer as if it were a cluster, whose jobs build their own environments."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    make_wheel(tmp_path / "wheelhouse", "paddle", "2.1", needs=["canoe"], program="row")
    make_wheel(tmp_path / "wheelhouse", "canoe", "1.5")
    cluster = Cluster("campus", "a campus", "slurm", wheelhouse=(str(tmp_path / "wheelhouse"),))
    program = bundle(tmp_path / "program")
    return ConnectedCluster(cluster, Here(), str(tmp_path / "store"), sys.executable, program)


def in_job(setup, tmp_path, command):
    script = "\n".join([*setup, command])
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path), "PIP_CONFIG_FILE": os.devnull},
    )  # fmt: skip


@pytest.mark.parametrize(("build", "without"), LACKING, ids=str)
def test_it_gets_an_environment_that_works(station, tmp_path, without, build):
    python = bare_python(tmp_path / "bare", without)
    assert all(lacks(python, module) for module in without)
    recipe = EnvironmentRecipe(
        "virtualenv", python=str(python), requirements="paddle\n", build=build
    )

    ready = prepare(recipe, station, Said())
    done = in_job(ready.setup, tmp_path, "row && python -c 'import canoe; print(canoe.VERSION)' &&"
                  " python -m pip --version && command -v python")  # fmt: skip

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["paddle 2.1", "1.5"]
    assert str(tmp_path) in lines[3]


@pytest.mark.parametrize("numbers", OLDEST_AND_NEWEST, ids="{0[0]}.{0[1]}".format)
def test_every_python_makes_one_by_hand(tmp_path, numbers):
    like, version = OLDEST_AND_NEWEST[numbers], "{}.{}".format(*numbers)
    python = bare_python(tmp_path / "bare", like=str(like))
    wheel = find_pip(version, tmp_path)
    if wheel is None:
        wheel = next(like.parent.parent.glob(f"lib/python{version}/ensurepip/_bundled/pip-*.whl"))
    program = bundle(tmp_path / "program")

    words = [python, program, "venv", "--pip", wheel, tmp_path / "made"]
    subprocess.run(words, check=True, env={"PATH": os.environ["PATH"]})
    asked = "import pip, sys; print(pip.__file__, sys.prefix)"
    words = [tmp_path / "made/bin/python", "-c", asked]
    said = subprocess.run(words, capture_output=True, check=False)

    assert said.stdout.decode().startswith(str(tmp_path / "made" / "lib")), said.stderr
    assert said.stdout.decode().split()[1] == str(tmp_path / "made")


def test_a_pip_that_is_installed_here_becomes_a_wheel_again(tmp_path):
    asking = (
        "import sys; sys.modules['ensurepip'] = None\n"
        "from pathlib import Path\n"
        "from rabaska.environments import download\n"
        "download._SYSTEM = ()\n"
        "print(download.find_pip('3.11', Path(sys.argv[1])))\n"
    )
    words = [sys.executable, "-c", asking, tmp_path]
    made = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    bare = bare_python(tmp_path / "other")
    words = [bare, f"{made}/pip", "--version"]
    said = subprocess.run(words, capture_output=True, text=True, check=False)

    assert said.stdout.startswith("pip "), said.stderr


def test_a_pip_is_sent_only_to_a_python_that_it_runs_under(tmp_path):
    wheel = find_pip("3.11", tmp_path)

    assert wheel is not None
    assert fits(wheel, "3.11")
    assert not fits(wheel, "2.7")


def test_a_pip_that_uses_what_python_3_12_dropped_is_not_sent_there(tmp_path):
    wheel = tmp_path / "pip-23.0.1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("pip-23.0.1.dist-info/METADATA", "Name: pip\nRequires-Python: >=3.7\n")

    assert fits(wheel, "3.11")
    assert not fits(wheel, "3.13")


def test_this_computers_pip_is_found(tmp_path):
    done = subprocess.run([*pip_words(), "--version"], capture_output=True, check=True)

    assert done.stdout.startswith(b"pip ")
