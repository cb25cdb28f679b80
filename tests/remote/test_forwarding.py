"""What ssh lends to the other side: nothing, whatever its configuration says."""

import shutil
import subprocess

import pytest

from rabaska.remote.ssh_connection import Connection

CONFIG = """
Host login
    HostName 127.0.0.1
    ForwardAgent yes
    ForwardX11 yes
    ForwardX11Trusted yes
    LocalForward 8888 localhost:8888
"""


def understood(words):
    """What ssh makes of its words and its configuration."""
    said = subprocess.run([*words, "-G", "login"], capture_output=True, text=True, check=True)
    return dict(line.split(" ", 1) for line in said.stdout.splitlines() if " " in line)


@pytest.fixture(params=[(), ("-A", "-X"), ("-o", "ForwardAgent=yes")], ids=str)
def connection(request, tmp_path):
    if not shutil.which("ssh"):
        pytest.skip("there is no ssh")
    config = tmp_path / "config"
    config.write_text(CONFIG)
    return Connection("login", ("-F", str(config), *request.param), str(tmp_path))


@pytest.mark.parametrize("words", [Connection.shell, Connection.plain_shell])
def test_neither_agent_nor_screen_is_lent(connection, words):
    asked = understood(words(connection))

    assert (asked["forwardagent"], asked["forwardx11"]) == ("no", "no")


def test_the_shared_connection_lends_nothing_either(connection, tmp_path, monkeypatch):
    noted = tmp_path / "bin" / "ssh"
    noted.parent.mkdir()
    noted.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/words\nexit 255\n')
    noted.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(noted.parent), prepend=":")
        with pytest.raises(Exception, match="login"):
            connection._connect()

    words = (tmp_path / "words").read_text().split("\n")
    asked = understood(["ssh", *words[: words.index("-N")]])
    assert (asked["forwardagent"], asked["forwardx11"]) == ("no", "no")
    assert asked["clearallforwardings"] == "yes"
