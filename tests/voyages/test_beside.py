"""TensorBoard and notebooks beside a run, on this computer."""

import json
import os
import stat
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest
from beside import (
    PYTHON,
    WRITES,
    executes,
    needs_programs,
    open_ports,
    opened,
    shut_out,
    until,
)

from rabaska.node import processes

pytestmark = pytest.mark.slow


@pytest.fixture
def writer(user):
    """A run that writes ten points, and ten more when it is let."""
    user.write("train.py", WRITES)
    user.settings(command=f'"{PYTHON} train.py {{output}} {user.gate}"', jobs="1")
    (user.project / ".venv").symlink_to(PYTHON.parents[1])
    run = user.types("run", "--no-doctor").output.strip()
    yield run
    user.gate.touch()
    Path(f"{user.gate}.end").touch()


def points(browser, run):
    path = f"/data/plugin/scalars/scalars?run={run}/output/logs&tag=loss"
    status, _, said = browser.asks(path)
    return said.count(b"], [") + 1 if status == 200 else 0


@needs_programs
def test_tensorboard_shows_points_that_come_while_the_run_goes_on(user, writer):
    until(lambda: list(user.home.glob("store/runs/*/kept/*/output/logs/*")))
    with opened(user, "tensorboard") as browser:
        assert until(lambda: points(browser, writer) == 10)
        below = [browser.command, *processes.descendants(browser.command)]
        assert len(open_ports(below)) == 1, "the gate, and no port of TensorBoard itself"
        user.gate.touch()
        assert until(lambda: points(browser, writer) == 20)
        browser.cookie = ""
        assert browser.asks("/data/runs")[0] == 403

    assert not [pid for pid in below if Path(f"/proc/{pid}").exists() and b"tensorboard" in
                Path(f"/proc/{pid}/cmdline").read_bytes()]  # fmt: skip


@pytest.fixture
def notebooks(user):
    """Somebody whose environment has a notebook server."""
    user.write("train.py", "import time\nprint('training', flush=True)\ntime.sleep(200)\n")
    user.settings(command='"python train.py"', jobs="1", walltime='"5m"')
    with (user.project / "rabaska.toml").open("a") as stream:
        stream.write(f'\n[environment]\npath = "{PYTHON.parents[1]}"\n')
    return user


def server_of(user, run):
    told = user.home / "store" / "runs" / run / "servers" / "jupyter.json"
    return json.loads(told.read_text())


@needs_programs
def test_a_notebook_runs_in_a_job_and_is_found_again_until_it_is_cancelled(notebooks):
    user = notebooks
    with opened(user, "jupyter", "--walltime", "3m") as browser:
        (run,) = [path.name for path in user.home.glob("store/runs/*")]
        assert browser.json("/api/status")["kernels"] == 0
        name = f"/api/contents/{quote('notes.txt')}"
        browser.json(name, "PUT", {"type": "file", "format": "text", "content": "hello"})
        assert executes(browser, "import os; print(os.environ['RABASKA_DATA'])").endswith(".files")
        forks = (
            "import os\nif os.fork() == 0:\n    print('forked', flush=True); os._exit(0)\nos.wait()"
        )
        assert executes(browser, forks + "\nimport time; time.sleep(1)") == "forked"
        server = int(executes(browser, "import os; print(os.getppid())"))
        assert open_ports([server, *processes.descendants(server)]) == []
        told = server_of(user, run)
        doors = [told["socket"], os.path.dirname(told["socket"])]
        assert [stat.S_IMODE(os.stat(door).st_mode) for door in doors] == [0o600, 0o700]
        shut_out(doors)
        browser.cookie = ""
        assert browser.asks("/api/status")[0] == 403

    with opened(user, "jupyter") as browser:
        assert browser.json("/api/status")["kernels"] == 3, "the same, with what was computed"
    notes = user.project / "results" / run / "output" / "notes.txt"
    # While the session goes on, new files are copied every 15 seconds.
    until(lambda: notes.exists() or (user.types("fetch", run) and notes.exists()), 60)
    assert notes.read_text() == "hello"

    user.types("cancel", run)
    user.until(lambda told: told["state"] == "cancelled", run)
    assert not os.path.exists(doors[1])


@needs_programs
def test_a_notebook_next_to_a_program_ends_with_its_job_and_not_with_the_command(notebooks):
    user = notebooks
    run = user.types("run", "--no-doctor").output.strip()
    user.until(lambda told: told["state"] == "running", run)
    with opened(user, "jupyter", "--beside", run) as browser:
        names = [entry["name"] for entry in browser.json("/api/contents")["content"]]
        assert "train.py" in names
        browser.json("/api/kernels", "POST")
    with opened(user, "jupyter", "--beside", run) as browser:
        assert browser.json("/api/status")["kernels"] == 1
    with opened(user, "tensorboard", run, "--there") as browser:
        assert browser.json("/data/runs") == []
    place = os.path.dirname(server_of(user, run)["socket"])
    user.types("cancel", run)
    user.until(lambda told: told["state"] == "cancelled", run)

    until(lambda: not os.path.exists(place))


def test_an_environment_without_notebooks_is_told(user):
    said = user.types("jupyter", "--no-browser", code=10)

    assert "no jupyterlab" in said.errors
    assert "rabaska logs" in said.errors


def test_the_node_of_a_run_is_a_host_for_ssh_and_file_transfers(user, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    own = tmp_path / "me" / ".ssh" / "config"
    own.parent.mkdir(parents=True)
    own.write_text("Host other\n  Port 7\n")
    user.settings(command='"sleep 200"', jobs="1", walltime='"5m"')
    run = user.types("run", "--no-doctor").output.strip()
    user.until(lambda told: told["state"] == "running", run)

    refused = user.types("code", run)
    assert "--yes" in refused.errors
    assert own.read_text().startswith("Host other"), "nothing is added unasked"
    host = user.types("code", run, "--yes").output.strip()

    def ssh(*words):
        command = ["ssh", "-F", own, host, *words]
        return subprocess.run(
            command, env=user.environment, capture_output=True, text=True, check=False
        )

    included, *rest = own.read_text().splitlines()
    assert included == f"Include {user.home}/ssh/config"
    assert rest[1:] == ["Host other", "  Port 7"]
    said = ssh("pwd; echo $RABASKA_RUN; cat; exit 3")
    assert (said.returncode, said.stderr) == (3, "")
    assert said.stdout.split()[1] == run
    (tmp_path / "up.txt").write_text("hello")
    copying = ["scp", "-q", "-F", own, tmp_path / "up.txt", f"{host}:up.txt"]
    subprocess.run(copying, env=user.environment, check=True)
    assert ssh("cat up.txt").stdout == "hello"
    keys = [*user.home.glob("ssh/*/*key"), *user.home.glob("store/runs/*/servers/ssh/*")]
    shut_out([str(path) for path in (user.home / "ssh", *keys)])
    user.types("cancel", run)
    user.until(lambda told: told["state"] == "cancelled", run)
    assert "is cancelled" in ssh("true").stderr
