"""A second user on login node and compute nodes, who prepares traps and tries every door."""

import os
import tarfile
import time

import pytest
from tests.lab.login import UID
from tests.lab.site import THIN
from tests.second_user import PREPARE, SPY, pried

pytestmark = pytest.mark.real

KEY = "4f7c0ffee9911d5e"
PLACES = ["/tmp", "/var/tmp", "/dev/shm", "/lscratch", "/scratch", "/home/alice", "/run"]
ON_NODE = ["/tmp", "/var/tmp", "/dev/shm", "/lscratch"]

PROFILE = """
local = "/tmp/$USER"

[storage.tiers.ram]
path = "/dev/shm"
"""

TRAIN = """
import os, sys, time
print("environment", os.environ["VIRTUAL_ENV"], os.environ["RABASKA_LOCAL"], os.getcwd())
print("data", os.environ["RABASKA_DATA"], "key", len(os.environ["WANDB_API_KEY"]))
open(os.environ["RABASKA_OUTPUT"] + "/model.pt", "w").write("weights")
print("ready", flush=True)
while len(sys.argv) > 1 and not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
"""


@pytest.fixture
def shared_machine(make_lab, make_voyager, monkeypatch, tmp_path):
    """A lab with alice, who runs things, and bob, who has been there before her."""
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    lab = make_lab(others=("bob",))
    alice = make_voyager(lab)
    alice.profile.write_text(alice.profile.read_text() + PROFILE)
    for node in ("", *THIN):
        bob(lab, ["/usr/bin/python3", "-c", PREPARE, "alice", str(UID)], node=node)
    with tarfile.open(lab.path("/home/alice/env.tar"), "w") as archive:
        link = tarfile.TarInfo("bin/python")
        link.type, link.linkname = tarfile.SYMTYPE, "/usr/bin/python3"
        archive.addfile(link)
    return alice


def bob(lab, words, stdin="", *, node=""):
    done = lab.run_as("bob", words, node=node, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


def settings(alice, *, more=""):
    alice.write("train.py", TRAIN)
    alice.write(
        "rabaska.toml",
        f"""
        command = "python train.py {alice.gate}"
        {more}
        [environment]
        kind = "packed"
        path = "/home/alice/env.tar"
        secrets = ["WANDB_API_KEY"]
        [data.numbers]
        path = "numbers"
        as = "shards"
        [resources]
        walltime = "2m"
        """,
    )


def owned(lab, node, places):
    """All that alice has there, as root sees it."""
    command = ["find", *places, "-user", "alice", "-print"]
    if not node:
        return set(lab.world.run(command, check=False).stdout.splitlines())
    return set(
        lab.world.run(command, check=False, inside_of=lab.nodes.pid(node)).stdout.splitlines()
    )


def everything(lab):
    return {(node, path) for node in ("", *THIN) for path in owned(lab, node, PLACES)}


def doors(lab, before):
    """What bob can do with what alice has had made since."""
    new = everything(lab) - before
    assert new
    found = []
    for host in ("", *THIN):
        paths = sorted(path for node, path in new if node == host)
        found += pried(lambda words, stdin, host=host: bob(lab, words, stdin, node=host), paths)
    return found


def open_in_store(alice):
    """What others could read if the store's own folder were open; a program's files are its own."""
    command = ["find", alice.store, "-perm", "/0077", "-not", "-type", "l", "-printf", "%P\n"]
    found = alice.lab.world.run(command).stdout.splitlines()
    return [path for path in found if "/kept/" not in path and "/logs/scheduler-" not in path]


def until_ready(alice, run):
    alice.until(lambda told: told["state"] == "running", run)
    end = time.monotonic() + 60
    while "ready" not in alice.types("logs", run).output:
        assert time.monotonic() < end
        time.sleep(0.2)


@pytest.mark.parametrize("nodes", [1, 2])
def test_another_user_finds_no_way_in_before_during_and_after_a_job(shared_machine, nodes):
    alice = shared_machine
    lab, before = alice.lab, everything(alice.lab)
    several = '\n[resources]\nnodes = 2\nwalltime = "2m"' if nodes == 2 else ""
    settings(alice)
    if several:
        text = (alice.project / "rabaska.toml").read_text()
        alice.write("rabaska.toml", text.replace("walltime", "nodes = 2\n        walltime"))

    run = alice.run()
    until_ready(alice, run)
    during = doors(lab, before)
    assert open_in_store(alice) == []
    overheard = "".join(
        bob(lab, ["/usr/bin/python3", "-c", SPY], node=node) for node in ("", *THIN)
    )
    job = alice.status(run)["job_id"]
    overheard += bob(lab, ["scontrol", "-o", "show", "job", job])
    overheard += lab.run_as("bob", ["scontrol", "write", "batch_script", job, "-"]).stdout
    alice.let_go()
    alice.types("wait", run)
    printed = alice.types("logs", run).output
    after = doors(lab, before)

    assert open_in_store(alice) == []
    assert during == []
    assert after == []
    assert KEY not in overheard
    assert "key 16" in printed
    used = printed.split("environment ")[1].split()[:3]
    assert all(path.startswith("/tmp/rabaska-") for path in used), printed
    assert not any(lab.path(f"/tmp/pwned-{UID}").exists() for _ in THIN)
    for node in THIN:
        assert lab.nodes.run(node, ["bash", "-c", "ls -d /tmp/pwned* 2>/dev/null || true"]) == ""
        assert owned(lab, node, ON_NODE) == set(), "nothing is left on the node"
    out = lab.path(f"{alice.store}/runs/{run}/logs").glob("scheduler-*.out")
    said = "".join(path.read_text() for path in out)
    if nodes == 1:
        assert "/tmp/alice is not used: /tmp/alice belongs to bob" in said


def test_the_group_of_a_store_may_read_what_is_shared_but_no_secret(shared_machine):
    alice, lab = shared_machine, shared_machine.lab
    alice.profile.write_text(
        alice.profile.read_text().replace("[storage]", '[storage]\nshare = "group"')
    )
    lab.world.run(["usermod", "-a", "-G", "alice", "bob"])
    settings(alice)
    alice.let_go()
    run = alice.run()
    alice.types("wait", run, "--quiet")

    def seen(path):
        return lab.run_as("bob", ["cat", f"{alice.store}/runs/{run}/{path}"])

    assert "RABASKA" in seen("job.sh").stdout
    assert seen("carried/001/output/model.pt").stdout == "weights"
    assert KEY not in seen("run.json").stdout
    modes = lab.world.run(["find", alice.store, "-perm", "/0027", "-not", "-type", "l"]).stdout
    assert [
        path for path in modes.splitlines() if "/output/" not in path and "scheduler-" not in path
    ] == []


def test_a_forwarded_agent_is_not_there_for_root_to_use(shared_machine, tmp_path):
    alice = shared_machine
    lab = alice.lab
    config = lab.ssh_config
    config.write_text(config.read_text() + "    ForwardAgent yes\n")
    agent = alice.types("clusters", "check", "lab")

    sockets = lab.world.run(["find", "/tmp", "-name", "agent.*", "-type", "s"], check=False).stdout
    assert sockets == "", agent.output
    assert os.environ.get("WANDB_API_KEY") == KEY


def test_a_store_that_belongs_to_somebody_else_is_not_used(shared_machine):
    alice, lab = shared_machine, shared_machine.lab
    lab.world.run(["install", "-d", "-m", "777", "-o", "bob", alice.store])
    settings(alice)

    said = alice.types("run", "--on", "lab", code=3)

    assert "belongs to another user" in said.errors
    assert lab.world.run(["find", alice.store, "-mindepth", "1"]).stdout == ""


def test_a_store_in_which_somebody_else_was_first_is_not_used(shared_machine):
    """A folder as /scratch often is: whoever makes `node` there can replace what a job starts."""
    alice, lab = shared_machine, shared_machine.lab
    lab.world.run(["install", "-d", "-m", "1777", "-o", "root", alice.store])
    bob(lab, ["mkdir", "-m", "777", f"{alice.store}/node"])
    settings(alice)

    said = alice.types("run", "--on", "lab", code=3)

    assert f"{alice.store} belongs to root and others may write to it" in said.errors
    assert f'store = "{alice.store}/$USER/rabaska"' in said.errors
    assert lab.world.run(["find", f"{alice.store}/node", "-mindepth", "1"]).stdout == ""
