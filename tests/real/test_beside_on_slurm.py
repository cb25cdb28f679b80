"""A notebook and an editor on a node of a real Slurm, and a second user who is shut out."""

import json
import os
import subprocess

import pytest
from tests.lab.login import UID
from tests.second_user import pried
from tests.voyages.beside import PYTHON, executes, needs_programs, opened

pytestmark = [pytest.mark.real, pytest.mark.slow, needs_programs]

PACKAGES = next(PYTHON.parents[1].glob("lib/python3*/site-packages"), None)

# As that user: connects to each socket and each port.
KNOCK = """
import json, socket, sys
for place in json.load(sys.stdin):
    line = socket.socket(socket.AF_UNIX if isinstance(place, str) else socket.AF_INET)
    try:
        line.connect(place if isinstance(place, str) else tuple(place))
        print("connected to", place)
    except OSError:
        pass
"""


def ports(lab, node):
    """The ports on which something of alice listens there."""
    lines = lab.nodes.run(node, ["cat", "/proc/net/tcp", "/proc/net/tcp6"]).splitlines()
    found = [line.split() for line in lines if ":" in line.split()[0]]
    return [fields[1] for fields in found if fields[3] == "0A" and fields[7] == str(UID)]


def test_a_notebook_and_an_editor_reach_the_node_and_a_second_user_does_not(make_lab, make_voyager):
    lab = make_lab(others=("bob",))
    alice = make_voyager(lab)
    alice.add_settings(f'[environment]\nvariables = {{ PYTHONPATH = "{PACKAGES}" }}\n')

    with opened(alice, "jupyter", "--on", "lab", "--memory", "1GB") as browser:
        told = alice.status()
        run, node = told["name"], told["jobs"][0]["host"]
        assert ports(lab, node) == []
        assert executes(browser, "import socket; print(socket.gethostname())") == node
        assert ports(lab, node) == [], "nor does a kernel listen"
        record = f"{alice.store}/runs/{run}/servers/jupyter.json"
        socket = json.loads(lab.path(record).read_text())["socket"]
        folder = os.path.dirname(socket)
        inside = lab.nodes.run(node, ["find", folder]).split()
        assert len(inside) > 3, "the kernel has sockets, too"

        def bob(words, stdin, where=node):
            done = lab.run_as("bob", words, node=where, stdin=stdin)
            assert done.returncode == 0, done.stderr
            return done.stdout

        assert pried(bob, [record, os.path.dirname(record), *inside]) == []
        knock = ["/usr/bin/python3", "-c", KNOCK]
        assert bob(knock, json.dumps(inside)) == ""
        assert bob(knock, json.dumps(inside), where="") == ""

        host = alice.types("code", run).output.strip()
        words = ["ssh", "-F", alice.home / "ssh" / "config", host, "hostname; echo $RABASKA_RUN"]
        said = subprocess.run(
            words, env=alice.environment, capture_output=True, text=True, check=False
        )
        assert said.stdout.split() == [node, run], said.stderr

    left = lab.world.run(["pgrep", "-u", "alice", "-fa", "srun|relay|sshd -i"], check=False).stdout
    assert "relay" not in left, "nothing stays on the login node"
    assert "srun" not in left
    with opened(alice, "jupyter", "--on", "lab", "--memory", "1GB") as browser:
        assert browser.json("/api/status")["kernels"] == 1
    alice.types("cancel", run)
    lab.wait_until(lambda: not lab.shell("squeue --me --noheader").strip())
    lab.wait_until(lambda: lab.nodes.run(node, ["find", "/tmp", "-user", "alice"]) == "")
