"""What pip chose is compared with what the program imports, before anything else is sent."""

import pytest
from tests.environments.small_wheels import make_wheel

from rabaska.checkup.check_resolved import Resolved, checks
from rabaska.checkup.subject import read_subject
from rabaska.node.environment.pip_queries import PipPackage
from rabaska.node.environment.wheel_contents import modules_inside
from rabaska.settings.profiles import load_cluster
from rabaska.settings.project_file import load

PROGRAM = "import torch, tqdm, strange\nprint('training')\n"


@pytest.fixture
def subject(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "requirements.txt").write_text("torch\nour-tools\n")
    (tmp_path / "rabaska.toml").write_text(
        'command = "python train.py"\n[resources]\ngpus = 1\ngpu_model = "v100"\n'
        '[environment]\nrequirements = "requirements.txt"\n'
    )
    return read_subject(load(tmp_path, cluster="mila"), load_cluster("mila"))


def told(subject, *packages, modules=(), unread=()):
    found = checks(subject, Resolved(packages, modules, unread))
    return {(each.what.split()[0], each.serious) for each in found}


def test_a_module_that_no_chosen_package_has_is_certain(subject):
    chosen = ("torch==2.5.1", "our-tools==1.0")

    assert told(subject, *chosen, modules=["torch", "our_tools"]) == {
        ("tqdm", True),
        ("strange", True),
    }


def test_a_package_that_nobody_read_may_have_any_module_but_one_of_another(subject):
    chosen = ("torch==2.5.1", "our-tools==1.0")

    assert told(subject, *chosen, modules=["torch"], unread=["our-tools"]) == {
        ("tqdm", True),
        ("strange", False),
    }


def test_what_comes_along_is_no_omission(subject):
    chosen = ("torch==2.5.1", "our-tools==1.0", "tqdm==4.1")

    assert told(subject, *chosen, modules=["torch", "our_tools", "strange"]) == set()


def test_the_build_that_pip_chose_is_compared_with_the_gpu(subject):
    chosen = ("torch==2.15.0", "our-tools==1.0", "tqdm==4.1")

    assert told(subject, *chosen, modules=["torch", "strange"]) == {("torch", True)}


def test_nothing_is_said_of_an_environment_that_nobody_resolved(subject):
    assert told(subject) == set()


def test_the_modules_of_wheels_are_read_from_the_wheels(tmp_path):
    wheel = make_wheel(tmp_path, "strange_tools", "1.0")
    packages = [PipPackage("strange-tools", "1.0", str(wheel)), PipPackage("Else.where", "2", "")]

    modules, unread = modules_inside(packages)

    assert "strange_tools" in modules
    assert unread == ["else-where"]
