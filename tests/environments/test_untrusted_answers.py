"""Neither a login node in the wrong hands nor a stranger's project runs code on this computer."""

import json
import os
import sys
import tarfile
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.environments.small_wheels import make_wheel
from tests.environments.test_without_pip import Said

from rabaska.domain.clusters import Cluster
from rabaska.domain.projects import EnvironmentRecipe
from rabaska.environments.download import Target, lacking
from rabaska.errors import CommandFailed, EnvironmentFailed
from rabaska.node.environment.check_wheels import NOT_FOUND
from rabaska.packing.node_bundle import bundle
from rabaska.remote.this_computer import Here
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.environment import prepare

FACTS = {"digest": "d1", "python": "3.11.2", "machine": "x86_64", "libc": "glibc-2.36",
         "maker": "venv", "said": "no wheel", "offered": []}  # fmt: skip

# A source archive that writes a file when pip asks it for its metadata, without any download.
BACKEND = """
def prepare_metadata_for_build_wheel(folder, settings=None):
    open({mark!r}, "w").close()
    raise SystemExit(1)
build_wheel = prepare_metadata_for_build_wheel
"""
RECIPE = EnvironmentRecipe("virtualenv", requirements="paddle\n", build="job")
BUILT_BY_ITSELF = '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n'


@pytest.fixture
def answering(tmp_path, monkeypatch):
    """A cluster whose `python3` answers every question about wheels with one text."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    make_wheel(tmp_path / "wheelhouse", "paddle", "2.1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheelhouse"))

    def made(text, code=NOT_FOUND):
        liar, said = tmp_path / "python3", tmp_path / "answer"
        said.write_text(text if isinstance(text, str) else json.dumps(text))
        liar.write_text(
            f'#!/bin/bash\nfor word; do [ "$word" = wheels ] && {{ cat {said}; exit {code}; }}; '
            f'done\nexec {sys.executable} "$@"\n'
        )
        liar.chmod(0o755)
        cluster = Cluster("campus", "a campus", "slurm")
        return ConnectedCluster(
            cluster, Here(), str(tmp_path / "store"), str(liar), bundle(tmp_path / "p")
        )

    return made


def source_archive(tmp_path):
    folder, mark = tmp_path / "evil-1.0", tmp_path / "owned"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(BUILT_BY_ITSELF)
    (folder / "own.py").write_text(BACKEND.format(mark=str(mark)))
    archive = tmp_path / "evil-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(folder, folder.name)
    return archive, mark


def test_no_code_that_a_cluster_names_runs_on_this_computer(answering, tmp_path):
    archive, mark = source_archive(tmp_path)
    there = answering({**FACTS, "missing": [f"evil @ file://{archive}"]})

    with pytest.raises(EnvironmentFailed):
        prepare(RECIPE, there, Said())

    assert not mark.exists()


@given(st.lists(st.sampled_from(["a==1", "b", "c @ https://x/c.tar.gz", "--index-url=x", "-r /x"])))
def test_only_lines_of_the_users_own_requirements_are_fetched(named):
    own = "a==1  # why\n--extra-index-url https://own\nb ; python_version > '3'\n"

    asked = lacking(own, named).splitlines()

    some = ["--extra-index-url https://own", "a==1"]
    assert asked == (some if named and set(named) == {"a==1"} else own.splitlines())


def test_a_requirement_of_the_user_is_asked_for_as_it_is_written():
    assert lacking("a\nb>=2 \\\n  --global-option=x\n", ["b>=2"]) == "b>=2"
    assert lacking("a\n", []) == "a\n"


@pytest.mark.parametrize(
    "lie",
    [
        {"python": "3.11 --index-url=https://evil"}, {"machine": "x86_64 -r"}, {"python": 3},
        {"machine": "../x"}, {"libc": "glibc-2.99999999999"}, {"libc": None}, {"missing": [5]},
        {"missing": "paddle"}, {"said": {}},
    ],
    ids=str,
)  # fmt: skip
def test_facts_about_a_python_are_facts_about_a_python(answering, lie):
    there = answering({**FACTS, "missing": [], **lie})

    with pytest.raises(CommandFailed, match="campus gave an answer"):
        prepare(RECIPE, there, Said())


@pytest.mark.parametrize("text", ["", "{", "5", "[]", '{"digest": 5}', "[" * 9999, "welcome"])
@pytest.mark.parametrize("code", [0, NOT_FOUND])
def test_what_is_no_answer_is_said_to_be_none(answering, text, code):
    there = answering(text, code)

    with pytest.raises(CommandFailed, match="campus gave an answer"):
        prepare(RECIPE, there, Said())


def test_other_names_of_a_c_library_mean_the_oldest_tags():
    assert "manylinux_2_17_aarch64" in Target("3.11.2", "aarch64", "").platforms
    assert "manylinux_2_28_aarch64" in Target("3.11.2", "aarch64", "glibc-2.28").platforms


def test_no_package_that_a_project_names_is_built_on_this_computer(answering, tmp_path):
    """Who runs somebody's project on a cluster runs nothing of it here."""
    archive, mark = source_archive(tmp_path)
    make_wheel(tmp_path / "wheelhouse", "innocent", needs=[f"evil @ file://{archive}"])
    there = answering({**FACTS, "missing": []})

    for text in (
        f"evil @ file://{archive}\n",
        f"{tmp_path}/evil-1.0\n",
        f"--find-links {tmp_path}\n--no-binary evil\nevil\n",
        "innocent\n",
    ):
        with pytest.raises(EnvironmentFailed, match="none is built on this computer"):
            prepare(replace(RECIPE, requirements=text), there, Said())
        assert not mark.exists()


def test_a_folder_of_the_project_is_not_taken_for_pip(answering, tmp_path, monkeypatch):
    mark = tmp_path / "owned"
    (tmp_path / "project" / "pip").mkdir(parents=True)
    for name in ("pip/__init__.py", "pip/__main__.py", "runpy.py", "pathlib.py"):
        (tmp_path / "project" / name).write_text(f"open({str(mark)!r}, 'w').close()\n")
    monkeypatch.chdir(tmp_path / "project")

    # Paddle is fetched, and the cluster says again that it lacks it.
    with pytest.raises(EnvironmentFailed, match="pip on campus said"):
        prepare(RECIPE, answering({**FACTS, "missing": ["paddle"]}), Said())

    assert (tmp_path / "store" / "envs").exists()
    assert not mark.exists()
