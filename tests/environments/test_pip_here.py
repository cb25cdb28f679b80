"""What pip on this computer would choose is known before anything is said of it."""

import os
from types import SimpleNamespace

import pytest
from tests.environments.small_wheels import make_wheel

from rabaska.checkup.subject import read_subject
from rabaska.errors import EnvironmentFailed
from rabaska.settings.profiles import load_cluster
from rabaska.settings.project_file import load
from rabaska.sites.questions import SiteAnswer
from rabaska.steps.chosen_packages import with_chosen
from rabaska.steps.findings import examine
from rabaska.steps.pip_here import chosen_here, nowhere, usual_target
from rabaska.steps.wheels import _nowhere, amount_of


@pytest.fixture
def own_wheels(tmp_path, monkeypatch):
    """A folder that is all that pip on this computer knows."""
    folder = tmp_path / "mine"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    return folder


def without_gpu(tmp_path):
    (tmp_path / "train.py").write_text("import torch\n")
    (tmp_path / "requirements.txt").write_text("torch\n")
    (tmp_path / "rabaska.toml").write_text(
        'command = "python train.py"\n[environment]\nrequirements = "requirements.txt"\n'
    )
    cluster = load_cluster("mila")
    return read_subject(load(tmp_path, cluster="mila"), cluster)


def told(subject):
    return [each.id for each in examine(with_chosen(subject, {})) if "cuda" in each.id]


def test_a_build_for_processors_that_pip_would_take_brings_no_cuda(tmp_path, own_wheels):
    make_wheel(own_wheels, "torch", "2.9.1+cpu")

    assert told(without_gpu(tmp_path)) == []
    assert amount_of("torch\n") == ""


def test_a_pinned_version_may_be_a_build_for_processors_too(tmp_path, own_wheels):
    make_wheel(own_wheels, "torch", "2.9.1+cpu")
    subject = without_gpu(tmp_path)
    (tmp_path / "requirements.txt").write_text("torch==2.9.1\n")

    assert told(subject) == []


def test_the_usual_build_brings_cuda_as_before(tmp_path, own_wheels):
    make_wheel(own_wheels, "torch", "2.9.1")

    assert told(without_gpu(tmp_path)) == ["environment.cuda"]
    assert amount_of("torch\n").endswith("GB")


def test_where_pip_cannot_tell_the_table_of_packages_speaks(tmp_path, own_wheels):
    assert told(without_gpu(tmp_path)) == ["environment.cuda"]


def test_what_is_installed_on_this_computer_is_not_asked_for_again(tmp_path, own_wheels):
    listed = SiteAnswer(0, "numpy\ntorch\ntorch-2.9.1+cpu.dist-info\n")

    subject = with_chosen(without_gpu(tmp_path), {"installed": listed})

    assert subject.chosen == ("torch==2.9.1+cpu",)


def test_nothing_is_fetched_to_find_out(own_wheels, tmp_path):
    make_wheel(own_wheels, "paddle", "2.0", needs=["canoe-of-nobody"])

    assert chosen_here("", ["paddle"], usual_target()) == ("paddle==2.0",)


def test_only_packages_without_a_wheel_anywhere_are_blamed(own_wheels):
    make_wheel(own_wheels, "paddle", "2.0")
    make_wheel(own_wheels, "canoe", "1.0")
    lines = ["paddle", "sextant-of-nobody", "canoe>=2"]

    assert nowhere("", lines, usual_target()) == ("sextant-of-nobody", "canoe>=2")


def blamed(missing, here):
    answer = {"python": "3.11.2", "missing": missing, "said": f"no {missing[0]}"}
    lines = "\n".join(missing)
    problem = _nowhere(answer, lines, usual_target(), SimpleNamespace(name="campus"), here)
    assert isinstance(problem, EnvironmentFailed)
    return problem


def test_a_cluster_without_internet_blames_nothing_that_this_computer_has(own_wheels):
    make_wheel(own_wheels, "paddle", "2.0")
    said = "ERROR: No matching distribution found for sextant-of-nobody"

    problem = blamed(["paddle", "sextant-of-nobody"], said)

    assert problem.what.endswith("on campus: sextant-of-nobody")
    assert "no paddle" not in problem.why


def test_a_dependency_without_a_wheel_is_the_one_that_is_named(own_wheels):
    make_wheel(own_wheels, "paddle", "2.0", needs=["tiller"])

    problem = blamed(["paddle"], "ERROR: No matching distribution found for tiller")

    assert problem.what.endswith("on campus: tiller, which another package needs")
