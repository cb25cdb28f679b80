"""A server behind a real sshd that forbids every forwarding, reached through one stream."""

import json
import os
import socket
import sys
import tempfile
import threading

import pytest
from login_node import login_node

from rabaska.errors import CommandFailed
from rabaska.node.job.relay import Mux
from rabaska.remote.login_node import Connection, Ssh
from rabaska.remote.place import quoted
from rabaska.remote.relayed import Relayed
from rabaska.remote.ssh_entries import SshHost, tried
from rabaska.remote.this_computer import Here

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(sys.modules[Mux.__module__].__file__)))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run folder with a server that says everything again, in capitals."""
    monkeypatch.setenv("RABASKA_RELAY_SECONDS", "1")
    folder = tmp_path / "run"
    (folder / "servers").mkdir(parents=True)
    path = str(tmp_path / "s")
    told = {"socket": path, "token": "secret", "deadline": 0}
    (folder / "servers" / "jupyter.json").write_text(json.dumps(told))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        yield folder
        listening.shutdown(socket.SHUT_RDWR)


def serve(listening):
    while True:
        try:
            line, _ = listening.accept()
        except OSError:
            return
        with line:
            while data := line.recv(65536):
                line.sendall(data.upper())


def script(run, kind="jupyter"):
    call = "import sys; sys.path.insert(0, sys.argv[1]); from rabaska.node.__main__ import main; "
    words = [sys.executable, "-c", f"{call}sys.exit(main(sys.argv[2:]))", os.path.dirname(SOURCE)]
    return quoted([*words, "relay", str(run), kind])


def says(way, text):
    with way.connect() as line:
        line.settimeout(60)
        line.sendall(text)
        return line.recv(100)


def test_a_server_is_reached_where_forwarding_is_forbidden(run, tmp_path):
    forbidden = "DisableForwarding yes\n"
    # The path of a socket may have about a hundred characters; tmp_path has them already.
    with (
        login_node(tmp_path / "login", settings=forbidden) as node,
        tempfile.TemporaryDirectory() as sockets,
    ):
        node.starts_with("echo a banner\n")
        connection = Connection("login", node.options, sockets)
        way = Relayed(Ssh(connection), script(run), "the server")
        try:
            assert way.hello().token == "secret"
            assert says(way, b"hello") == b"HELLO"
            assert says(way, b"again") == b"AGAIN"
            connection.close()  # the lid is closed; a browser tries again
            answers = (says(way, b"and again") for _ in range(5))
            assert b"AND AGAIN" in answers
        finally:
            way.close()
            connection.close()


def test_the_same_on_this_computer_and_no_server_is_told(run):
    way = Relayed(Here(), script(run), "the server")
    assert says(way, b"hello") == b"HELLO"
    way.close()

    missing = Relayed(Here(), script(run, "tensorboard"), "TensorBoard of run")
    with pytest.raises(CommandFailed, match="TensorBoard of run cannot be reached") as told:
        missing.connect()
    missing.close()
    assert "no tensorboard listens in run" in told.value.why


@pytest.mark.parametrize(
    "said",
    ["alice@node1: Permission denied (publickey).", "Host key verification failed.",
     "ssh: connect to host node1 port 22: Connection refused"],
)  # fmt: skip
def test_a_node_that_refuses_ssh_is_the_site_s_affair(said):
    way = Relayed(Here(), f"echo {quoted([said])} >&2; exit 255", "jupyter of run")

    with pytest.raises(CommandFailed) as told:
        way.connect()

    assert told.value.why == said
    assert "ask the site whether `ssh NODE` is allowed" in told.value.hint


def test_why_a_host_of_ssh_cannot_be_reached_is_what_the_way_to_it_said(tmp_path):
    said = "error: ssh of run cannot be reached\\n  because no way there\\n  hint: ask the site\\n"
    config = tmp_path / "config"
    config.write_text(f"Host rabaska-run\n  ProxyCommand sh -c \"printf '{said}' >&2; exit 1\"\n")

    with pytest.raises(CommandFailed) as told:
        tried(SshHost("rabaska-run", config))

    assert told.value.why == "no way there"
    assert told.value.hint == "ask the site"


def test_a_node_that_refuses_ssh_is_said_to_and_what_works_without():
    refused = "echo 'ssh: connect to host n1 port 22: Connection refused' >&2; exit 255"
    way = Relayed(Here(), refused, "jupyter of run")

    with pytest.raises(CommandFailed) as told:
        way.connect()
    way.close()

    assert told.value.why == "ssh: connect to host n1 port 22: Connection refused"
    assert "`rabaska shell`" in told.value.hint
