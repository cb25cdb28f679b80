"""Notebooks, editors and TensorBoard in the jobs of a real Torque or OpenPBS."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.real.test_beside_on_slurm import PACKAGES, ports
from tests.voyages.beside import PYTHON, WRITES, executes, needs_programs, opened, until

pytestmark = needs_programs


@pytest.fixture
def reader(passenger):
    """Somebody whose environment has a notebook server."""
    passenger.add_settings(f'[environment]\nvariables = {{ PYTHONPATH = "{PACKAGES}" }}\n')
    return passenger


def ssh(passenger, host, *words):
    command = ["ssh", "-F", passenger.home / "ssh" / "config", host, *words]
    return subprocess.run(
        command, env=passenger.environment, capture_output=True, text=True, check=False
    )


def left_on_login(cluster):
    """What goes on at the login node after the commands that asked for it."""
    words = ["pgrep", "-u", cluster.user, "-fa", "relay|sshd -i"]
    found = cluster.world.run(words, check=False).stdout
    return [line for line in found.splitlines() if "pgrep" not in line]


def test_a_notebook_in_a_job_is_opened_again_and_leaves_nothing(cluster, reader):
    with opened(reader, "jupyter", "--on", "lab", "--walltime", "10m") as browser:
        told = reader.status()
        run, node = told["name"], told["jobs"][0]["host"]
        assert ports(cluster, node) == []
        assert executes(browser, "import socket; print(socket.gethostname())") == node
        name = "/api/contents/notes.txt"
        browser.json(name, "PUT", {"type": "file", "format": "text", "content": "hello"})

    record = cluster.path(f"{reader.store}/runs/{run}/servers/jupyter.json")
    folder = os.path.dirname(json.loads(record.read_text())["socket"])
    until(lambda: left_on_login(cluster) == [])
    with opened(reader, "jupyter", "--on", "lab") as browser:
        assert browser.json("/api/status")["kernels"] == 1, "the same, with what was computed"
    reader.types("cancel", run)

    reader.until(lambda now: now["state"] == "cancelled", run)
    cluster.wait_until(lambda: cluster.nodes.run(node, ["find", "/tmp", "-user", "alice"]) == "")
    assert cluster.nodes.run(node, ["sh", "-c", f"ls -d {folder} 2>&1 || true"]).count("No such")
    reader.types("fetch", run)
    notes = Path(reader.project, "results", run, "output", "notes.txt")
    assert notes.read_text() == "hello"


def test_a_notebook_and_tensorboard_run_next_to_a_program(reader):
    run = reader.run("--jobs", "1", "--", "--every", "1", "--hold", "1")
    told = reader.until(lambda now: now["checkpoint"], run)

    with opened(reader, "jupyter", "--beside", run) as browser:
        names = [entry["name"] for entry in browser.json("/api/contents")["content"]]
        where = executes(browser, "import socket; print(socket.gethostname())")
    with opened(reader, "tensorboard", run, "--there") as browser:
        assert browser.json("/data/runs") == []

    assert "train.py" in names
    assert where == told["jobs"][0]["host"]
    assert reader.status(run)["state"] == "running"


def test_event_files_come_to_this_computer_while_the_run_goes_on(cluster, reader):
    reader.write("train.py", WRITES)
    reader.settings(command=f'"python3 train.py {{output}} {reader.gate}"', jobs="1")
    reader.add_settings(f'[environment]\nvariables = {{ PYTHONPATH = "{PACKAGES}" }}\n')
    (reader.project / ".venv").symlink_to(PYTHON.parents[1])
    run = reader.run("--no-doctor")
    reader.until(lambda now: now["state"] == "running", run)

    def points(browser):
        path = f"/data/plugin/scalars/scalars?run={run}/output/logs&tag=loss"
        status, _, said = browser.asks(path)
        return said.count(b"], [") + 1 if status == 200 else 0

    with opened(reader, "tensorboard", run) as browser:
        until(lambda: points(browser) == 10, 60)
        reader.let_go()
        until(lambda: points(browser) == 20, 60)
    cluster.path(f"{reader.gate}.end").touch()
    reader.types("wait", run)


def test_the_node_of_a_run_is_a_host_for_ssh(cluster, passenger):
    run = passenger.run("--jobs", "1", "--", "--every", "1", "--hold", "1")
    told = passenger.until(lambda now: now["checkpoint"], run)

    host = passenger.types("code", run).output.strip()
    said = ssh(passenger, host, "hostname; echo $RABASKA_RUN; ls; exit 3")

    assert said.returncode == 3, said.stderr
    assert said.stdout.split()[:2] == [told["jobs"][0]["host"], run]
    assert "train.py" in said.stdout
    until(lambda: left_on_login(cluster) == [])
    passenger.types("cancel", run)
    passenger.until(lambda now: now["state"] == "cancelled", run)
    assert "is cancelled" in ssh(passenger, host, "true").stderr


def test_an_editor_gets_a_job_of_its_own(cluster, passenger):
    host = passenger.types("code", "--on", "lab").output.strip()
    run = passenger.status()["name"]

    said = ssh(passenger, host, "hostname; cat", "</dev/null")

    assert said.stdout.split() == [passenger.status(run)["jobs"][0]["host"]], said.stderr
    passenger.types("cancel", run)
    cluster.wait_until(lambda: not cluster.jobs())
