"""Programs of this computer that are missing: each is named, with the package that brings it."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.bare import bare_path

import rabaska
from rabaska.errors import MissingProgram
from rabaska.node import environment_variables
from rabaska.remote import programs
from rabaska.remote.programs import own_files
from rabaska.remote.ssh_calls import Call
from rabaska.remote.ssh_connection import Connection
from rabaska.remote.ssh_shell import Shell
from rabaska.remote.this_computer import Here

LAPTOP = Path(rabaska.__file__).parent
PROFILE = """
title = "a cluster that nobody will reach"
scheduler = "slurm"

[reach]
host = "ada@login.campus.invalid"
"""


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A computer without ssh, git and rsync, and a project on it."""
    monkeypatch.setenv("PATH", bare_path(tmp_path / "bin"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("RABASKA_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "clusters").mkdir(parents=True)
    (tmp_path / "home" / "clusters" / "campus.toml").write_text(PROFILE)
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text("print('done')\n")
    (project / "rabaska.toml").write_text('name = "tiny"\ncommand = "python3 train.py"\n')
    return project


def types(project, *words):
    done = subprocess.run(
        [sys.executable, "-m", "rabaska", *words],
        cwd=project, env={**os.environ, "NO_COLOR": "1"}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--on", "campus", "--walltime", "1h"],
        ["clusters", "add", "other", "--host", "ada@login.other.invalid"],
        ["clusters", "check", "campus"],
        ["storage", "--on", "campus"],
        ["doctor", "--on", "campus"],
        ["plan", "--on", "campus"],
    ],
    ids=" ".join,
)
def test_without_ssh_each_command_names_it_and_its_package(bare, words):
    done = types(bare, *words)

    assert done.returncode == 16, done.stderr
    assert "no program `ssh`" in done.stderr
    for package in ("apt install openssh-client", "dnf install openssh-clients", "brew install"):
        assert package in " ".join(done.stderr.split())


def test_without_git_a_project_of_git_is_not_carried_with_what_it_ignores(bare):
    (bare / ".git").mkdir()

    done = types(bare, "run", "--walltime", "1m")

    assert done.returncode == 16, done.stderr
    assert "no program `git`" in done.stderr
    assert "apt install git" in done.stderr


def test_without_git_any_other_project_is_carried(bare):
    assert own_files(bare) is None


def test_without_rsync_another_way_is_taken(bare):
    assert not programs.is_there("rsync")


def test_every_way_to_start_ssh_names_it(bare):
    there = Connection("login.campus.invalid")

    for attempt in (
        there.open, there.is_open, there.close,
        lambda: Shell(there).run("true"), lambda: Shell(there).attach("true", terminal=False),
        lambda: Call(["ssh", "login"]),
    ):  # fmt: skip
        with pytest.raises(MissingProgram, match="no program `ssh`"):
            attempt()


def test_without_bash_this_computer_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    for attempt in (
        lambda: Here().run("true"), lambda: list(Here().stream("true")),
        lambda: Here().attach("true", terminal=False),
    ):  # fmt: skip
        with pytest.raises(MissingProgram, match="no program `bash`"):
            attempt()


def test_a_program_that_may_not_be_started_is_named(tmp_path, monkeypatch):
    (tmp_path / "git").write_bytes(b"no program\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(MissingProgram, match="`git` could not be started"):
        own_files(tmp_path)


def test_a_variable_too_long_for_the_system_is_named(monkeypatch):
    monkeypatch.setenv("MUCH", "x" * environment_variables.LONGEST)

    for attempt in (lambda: Here().run("true"), lambda: Call(["true"])):
        with pytest.raises(MissingProgram, match="the variable MUCH is too long"):
            attempt()


def test_the_longest_variable_that_we_allow_is_one_the_system_allows(monkeypatch):
    monkeypatch.setenv("MUCH", "x" * (environment_variables.LONGEST - len("MUCH=")))

    assert Here().run("true").exit_code == 0


def test_processes_are_started_in_one_place():
    """`node` runs elsewhere, and starts the program itself."""
    allowed = {"PIPE", "DEVNULL", "Popen", "CompletedProcess", "TimeoutExpired"}
    for path in LAPTOP.rglob("*.py"):
        inside = path.relative_to(LAPTOP).as_posix()
        if inside.startswith(("node/", "training/")) or inside == "remote/programs.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert "subprocess" not in {each.name for each in node.names}, inside
            if isinstance(node, ast.ImportFrom) and node.module == "subprocess":
                assert {each.name for each in node.names} <= allowed, inside
            if isinstance(node, ast.Attribute) and node.attr.startswith(("exec", "spawn", "popen")):
                assert getattr(node.value, "id", "") != "os", inside
