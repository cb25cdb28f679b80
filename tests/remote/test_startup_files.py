"""Start-up files of a login node, as people have them: each trouble is named as what it is."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from login_node import login_node
from tests.bare import bare_path

from rabaska.errors import Unreachable
from rabaska.remote.ssh_connection import Connection
from rabaska.remote.ssh_shell import Shell
from rabaska.remote.this_computer import Here

LEAVES = "sleep 987 &\n"
SOON = 20  # seconds; what is left behind sleeps much longer


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    folder = tmp_path_factory.mktemp("node")
    path = bare_path(folder / "bin", "python3", "timeout", "readlink", "df", "stat", "cut")
    with login_node(folder, path) as there:
        yield there


@pytest.fixture
def shell(node, monkeypatch):
    sockets = tempfile.mkdtemp(prefix="rabaska-", dir="/tmp")  # the path of a socket must be short
    monkeypatch.setenv("XDG_RUNTIME_DIR", sockets)
    connection = Connection("login", options=node.options)
    yield Shell(connection)
    connection.close()
    shutil.rmtree(sockets)
    node.starts_with("")
    end_leftovers(node)


def end_leftovers(node):
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"HOME={node.home}\0".encode() in environ.read_bytes():
                os.kill(int(environ.parent.name), 9)
        except OSError:
            continue


@pytest.mark.parametrize("name", [".bashrc", ".bash_profile"])
@pytest.mark.parametrize("code", [0, 1, 255])
def test_a_start_up_file_that_exits_is_named(node, shell, name, code):
    node.starts_with(f"echo Welcome\nexit {code}\n", name)

    with pytest.raises(Unreachable) as refused:
        shell.run("echo hello")

    assert "start-up file" in refused.value.what
    assert f"exit code {code}" in refused.value.why
    assert ".bashrc" in refused.value.hint
    assert "return" in refused.value.hint


def test_a_start_up_file_that_never_ends_is_named(node, shell):
    node.starts_with("sleep 987\n")

    with pytest.raises(Unreachable, match="start-up file") as refused:
        Shell(shell.connection, patience=1.5).run("echo hello")

    assert "1.5 s" in refused.value.why


@pytest.mark.parametrize("name", [".bashrc", ".bash_profile"])
def test_a_variable_that_lets_nothing_start_is_named(node, shell, name):
    node.starts_with("export MODEST=1 MUCH=$(printf '%0200000d' 0)\n", name)

    with pytest.raises(Unreachable) as refused:
        shell.run("ls /")

    assert "MUCH" in refused.value.what
    assert "200,0" in refused.value.why
    assert "MODEST" not in str(refused.value)


@pytest.mark.parametrize("name", [".bashrc", ".bash_profile"])
def test_what_a_start_up_file_leaves_behind_is_not_waited_for(node, shell, name):
    node.starts_with(LEAVES, name)
    began = time.monotonic()

    outcome = shell.run("cat; echo oops >&2; exit 3", feed=b"hello")
    streamed = b"".join(shell.stream("echo one; echo two"))
    with shell.started("cat; exit 4") as far:
        far.write(b"hello")
        far.call.hang_up()
        assert (far.output.read(), far.ended(), far.complaint()) == (b"hello", 4, "")

    assert (outcome.exit_code, outcome.output, outcome.errors) == (3, "hello", "oops")
    assert streamed == b"one\ntwo\n"
    assert time.monotonic() - began < SOON


def test_a_script_that_is_silent_for_long_is_heard_to_its_end(node, shell):
    node.starts_with(LEAVES)

    outcome = shell.run("echo one; sleep 3; echo two")

    assert outcome.output == "one\ntwo\n"


def test_bytes_that_look_like_the_end_are_bytes(shell):
    with shell.started("printf 'a\\n--rabaska-ends-- 0\\n'; sleep 1; printf b") as far:
        assert far.output.read() == b"a\n--rabaska-ends-- 0\nb"
        assert far.ended() == 0


PROFILE = """
title = "a login node of our own"
scheduler = "slurm"

[reach]
host = "login"
options = ["-F", "{config}"]
"""


@pytest.fixture
def campus(node, shell, tmp_path):
    """Somebody with a project, for whom the login node is a cluster."""
    home, project = tmp_path / "home", tmp_path / "project"
    (home / "clusters").mkdir(parents=True)
    profile = PROFILE.format(config=node.options[1])
    (home / "clusters" / "campus.toml").write_text(profile)
    project.mkdir()
    (project / "train.py").write_text("print('done')\n")
    settings = 'name = "tiny"\ncommand = "python3 train.py"\n[resources]\nwalltime = "1h"\n'
    (project / "rabaska.toml").write_text(settings)

    def types(*words):
        own = {"RABASKA_HOME": str(home), "NO_COLOR": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "rabaska", *words], cwd=project, env={**os.environ, **own},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return types


def test_run_names_a_start_up_file_that_exits(node, campus):
    node.starts_with("exit 0\n")

    done = campus("run", "--on", "campus")

    assert done.returncode == 8, done.stderr
    assert "start-up file" in done.stderr


def test_run_names_a_scheduler_that_is_not_there(campus):
    done = campus("run", "--on", "campus")

    assert done.returncode == 7, done.stderr
    assert "does not find the scheduler's commands" in done.stderr
    assert "sbatch" in done.stderr


def test_run_names_a_python_that_is_not_there(node, campus):
    node.starts_with("PATH=/nowhere\n", ".bash_profile")

    done = campus("run", "--on", "campus", "--no-doctor")

    assert done.returncode == 12, done.stderr
    assert "campus has no `python3` on its login node" in done.stderr


def test_an_account_that_is_closed_is_quoted(node, shell):
    node.starts_with("echo This account is currently not available.; exit 1\n")

    with pytest.raises(Unreachable, match="start-up file") as refused:
        shell.run("echo hello")

    assert "This account is currently not available" in refused.value.why


def test_doctor_names_what_is_left_behind(node, campus):
    node.starts_with(LEAVES)

    done = campus("doctor", "--on", "campus")

    assert "sleep 987" in done.stdout + done.stderr
    assert "cluster.leftover" in campus("doctor", "--on", "campus", "--json").stdout


def test_doctor_finds_nothing_left_behind_where_nothing_is(campus):
    assert "cluster.leftover" not in campus("doctor", "--on", "campus", "--json").stdout


@pytest.mark.parametrize("text", ["exit 0\n", "echo noise; sleep 987 &\n"])
def test_this_computers_own_start_up_file_does_no_harm(tmp_path, monkeypatch, text):
    """Bash reads the file that BASH_ENV names before a script."""
    (tmp_path / "start").write_text(text)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BASH_ENV", "$HOME/start")
    began = time.monotonic()

    if "exit" in text:
        with pytest.raises(Unreachable, match="BASH_ENV"):
            Here().run("echo hello")
        with pytest.raises(Unreachable, match="BASH_ENV"):
            list(Here().stream("echo hello"))
    else:
        assert Here().run("cat; exit 3", feed=b"hello").output == "hello"
        assert list(Here().stream("echo hello")) == [b"hello\n"]
    assert time.monotonic() - began < SOON
    for stat in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"HOME={tmp_path}\0".encode() in stat.read_bytes():
                os.kill(int(stat.parent.name), 9)
        except OSError:
            continue
