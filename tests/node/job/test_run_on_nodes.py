"""A command on several nodes without srun, by a pbsdsh that gives no input, like the real one."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from rabaska.node.job.key_file import key_file
from rabaska.node.job.node_messages import WORK, HelperConnection
from rabaska.packing.node_bundle import bundle
from rabaska.schedulers.torque import Torque

# The real one starts its process without our environment, input or output.
PBSDSH = """#!/bin/sh
[ "$1 $3" = "-n --" ] || exit 2
echo "$2" >>"$0.places"
shift 3
exec env -i PBS_NODENUM=1 "$@" </dev/null >/dev/null 2>&1
"""
REACH = Torque().capabilities.reach
WHO = "echo $RABASKA_PROCESS $RABASKA_PROCESS_OF_NODE $RABASKA_NODE $COLOUR"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return [sys.executable, str(bundle(tmp_path_factory.mktemp("program")))]


@pytest.fixture
def cluster(tmp_path):
    """The variables of a job on two nodes, which both are this computer."""
    starter = tmp_path / "bin" / "pbsdsh"
    starter.parent.mkdir()
    starter.write_text(PBSDSH)
    starter.chmod(0o755)
    nodes = tmp_path / "nodes"
    nodes.write_text("localhost\nlocalhost\n127.0.0.1\n127.0.0.1\n")
    path = f"{starter.parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PBS_NODEFILE": str(nodes), "COLOUR": "blue"}


def words(program, *command, tasks=1, nodes=2, reach=REACH):
    return [
        *program,
        "on-nodes",
        f"--reach={reach}",
        f"--nodes={nodes}",
        f"--tasks={tasks}",
        "--",
        *command,
    ]


def on_nodes(cluster, program, *command, **how):
    return subprocess.run(
        words(program, *command, **how),
        env=cluster,
        input="",
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_every_process_of_every_node_knows_which_it_is_and_what_the_first_was_told(
    cluster, program
):
    done = on_nodes(cluster, program, "sh", "-c", WHO, tasks=2)

    assert done.returncode == 0, done.stderr
    told = ["0 0 0 blue", "1 1 0 blue", "2 0 1 blue", "3 1 1 blue"]
    assert sorted(done.stdout.splitlines()) == told


def test_the_scheduler_is_asked_for_the_first_processor_of_each_other_node(
    cluster, program, tmp_path
):
    on_nodes(cluster, program, "true")

    assert (tmp_path / "bin" / "pbsdsh.places").read_text().split() == ["2"]


def test_input_reaches_every_process_and_its_end_too(cluster, program):
    done = subprocess.run(
        words(program, "cat"),
        env=cluster,
        input="stop\n",
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.stdout == "stop\nstop\n"


def test_the_first_failure_ends_the_others_and_is_the_answer(cluster, program):
    began = time.monotonic()

    done = on_nodes(cluster, program, "sh", "-c", "[ $RABASKA_NODE = 0 ] && exec sleep 60; exit 7")

    assert done.returncode == 7
    assert time.monotonic() - began < 20


SAVING = """
read stop
[ $RABASKA_NODE = 0 ] && exit 85
sleep 2
echo saved >"$SAVED"
exit 85
"""


def test_who_was_asked_to_stop_may_finish_saving_when_another_one_is_done(
    cluster, program, tmp_path
):
    saved = tmp_path / "saved"
    with subprocess.Popen(
        words(program, "sh", "-c", SAVING),
        env={**cluster, "SAVED": str(saved)},
        stdin=subprocess.PIPE,
    ) as process:
        process.stdin.write(b"stop\n")
        process.stdin.flush()
        process.wait(30)

    assert process.returncode == 85
    assert saved.read_text() == "saved\n"


def test_who_asks_to_go_on_does_not_end_the_others_in_the_middle_of_a_save(
    cluster, program, tmp_path
):
    saved = tmp_path / "saved"
    command = f"[ $RABASKA_NODE = 0 ] && exit 85; sleep 2; echo saved >{saved}; exit 85"

    assert on_nodes(cluster, program, "sh", "-c", command).returncode == 85
    assert saved.read_text() == "saved\n"


def test_nothing_is_left_on_any_node_when_the_launcher_is_killed(cluster, program, tmp_path):
    command = f"echo $$ >{tmp_path}/pid-$RABASKA_NODE; exec sleep 60"
    process = subprocess.Popen(
        words(program, "sh", "-c", command), env=cluster, stdin=subprocess.PIPE
    )
    files = [tmp_path / "pid-0", tmp_path / "pid-1"]
    until(lambda: all(file.exists() and file.read_text() for file in files))

    process.kill()
    process.communicate()

    until(lambda: not any(Path(f"/proc/{file.read_text().strip()}").exists() for file in files))


def test_a_scheduler_that_refuses_is_told_with_the_node(cluster, program, tmp_path):
    (tmp_path / "bin" / "pbsdsh").write_text("#!/bin/sh\necho 'tm_init: no' >&2\nexit 3\n")

    done = on_nodes(cluster, program, "true")

    assert done.returncode == 1
    assert "127.0.0.1 could not be reached: exit code 3" in done.stdout + done.stderr
    assert "tm_init: no" in done.stdout + done.stderr


def test_a_job_with_fewer_nodes_than_promised_says_which_it_has(cluster, program):
    done = on_nodes(cluster, program, "true", nodes=3)

    assert done.returncode == 1
    assert "the job has 2 of 3 nodes: localhost, 127.0.0.1" in done.stdout + done.stderr


def test_a_command_that_is_not_there_is_named(cluster, program):
    done = on_nodes(cluster, program, "no-such-program")

    assert done.returncode == 127
    assert "command not found: no-such-program" in done.stdout + done.stderr


def test_one_node_needs_nobody_else(cluster, program):
    done = on_nodes(
        {**cluster, "PBS_NODEFILE": ""}, program, "sh", "-c", WHO, tasks=2, nodes=1, reach=""
    )

    assert sorted(done.stdout.splitlines()) == ["0 0 0 blue", "1 1 0 blue"]


def test_a_shell_command_runs_on_a_node_that_is_named(cluster, program):
    ours = [*program, "rsh", "--reach", "pbsdsh", "127.0.0.1"]  # as earlier versions called it

    done = subprocess.run(
        [*ours, "A=1;", "echo", "$A $COLOUR"], env=cluster, capture_output=True, text=True,
        timeout=30, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip

    assert done.stdout == "1 blue\n", done.stderr


def until(condition, seconds=20):
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.05)


def test_whoever_listens_in_our_place_learns_no_key_and_has_nothing_run(program, tmp_path):
    """Somebody else of the node takes the port of a `on-nodes` that was killed."""
    key, mark = tmp_path / "key", tmp_path / "mark"
    work = {"words": ["touch", str(mark)], "environment": {}, "folder": "/", "tasks": 1}
    key.write_text(json.dumps({"key": "4f7c0ffee9911d5e", "work": work}))
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        helper = subprocess.Popen([*program, "node-helper", "localhost", port, str(key), "0"])
        connection = HelperConnection(listener.accept()[0])
        hello = connection.received()[0]
        connection.send(WORK, b"guessed")
        helper.wait(30)
        connection.close()

    assert b"4f7c0ffee9911d5e" not in hello.content
    assert not mark.exists()


def test_lines_of_several_processes_do_not_mix(cluster, program):
    halves = "for i in 1 2 3; do printf ready; sleep 0.1; printf ' %s\\n' $i; done; printf last"

    done = on_nodes(cluster, program, "sh", "-c", halves, tasks=2)

    assert done.returncode == 0, done.stderr
    lines = done.stdout.replace("last", "").splitlines()
    assert sorted(lines) == sorted([f"ready {number}" for number in (1, 2, 3)] * 4)
    assert done.stdout.count("last") == 4


def test_what_a_process_says_at_its_end_arrives_though_it_read_no_input(cluster, program):
    for _ in range(5):
        done = subprocess.run(
            words(program, "echo", "said", tasks=2), env=cluster, input="unread\n" * 5000,
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip

        assert (done.returncode, done.stdout) == (0, "said\n" * 4), done.stderr


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_it_listens_for_the_nodes_of_the_job_alone_and_no_variable_crosses_the_network(
    cluster, program, tmp_path
):
    """Whoever can read what travels sees neither the command nor a variable."""
    strace = ["strace", "-f", "-s", "99999", "-e", "trace=bind,sendto,sendmsg", "-o"]

    done = subprocess.run(
        [*strace, str(tmp_path / "sent"), *words(program, "sh", "-c", WHO)],
        env={**cluster, "TOKEN": "wandb-4711"}, capture_output=True, text=True, timeout=60,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    sent = (tmp_path / "sent").read_text()
    assert "INADDR_ANY" not in sent
    assert 'inet_addr("0.0.0.0")' not in sent
    assert 'inet_addr("127.0.0.1")' in sent
    assert "wandb-4711" not in sent


def test_a_program_on_another_node_has_its_users_umask(cluster, program):
    done = on_nodes({**cluster, "RABASKA_UMASK": "027"}, program, "sh", "-c", "umask")

    assert done.stdout.split() == ["0027", "0027"]


# Another user of the network, who connects to `on-nodes` before the node's own helper does.
STRANGERS = """#!{python}
import os, resource, socket, struct, sys, time

at = sys.argv.index("node-helper") + 1
if not os.fork():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    connections = []
    for _ in range({count}):
        try:
            one = socket.create_connection((sys.argv[at], int(sys.argv[at + 1])), 5)
            connections.append(one)
            one.sendall({said!r})
        except OSError:
            pass
    open(__file__ + ".done", "w").close()
    for one in connections:
        try:
            while one.recv(4096):
                pass
        except OSError:
            pass
    os._exit(0)
while not os.path.exists(__file__ + ".done"):
    time.sleep(0.02)
os.execvp(sys.argv[4], sys.argv[4:])
"""


def hello(content):
    return b"H" + len(content).to_bytes(4, "big") + content


@pytest.mark.parametrize(
    ("count", "said"),
    [
        pytest.param(300, b"", id="more than may be open"),
        pytest.param(2, hello(b'{"place": 1e999, "nonce": "", "proof": ""}'), id="infinity"),
        pytest.param(2, hello(b"[" * 100_000), id="deep"),
        pytest.param(2, hello(b'{"place": 1, "nonce": "\\u00e9", "proof": []}'), id="odd"),
    ],
)
def test_strangers_who_connect_do_not_disturb(cluster, program, count, said):
    starter = Path(cluster["PATH"].partition(":")[0]) / "pbsdsh"
    starter.write_text(STRANGERS.format(python=sys.executable, count=count, said=said))

    limited = ["sh", "-c", 'ulimit -S -n 150; exec "$@"', "sh", *program]
    done = on_nodes(cluster, limited, "sh", "-c", "echo $RABASKA_NODE")

    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["0", "1"]


def test_what_was_left_of_a_killed_meeting_goes_with_the_next(tmp_path, monkeypatch):
    """It holds all variables of a program, secrets among them."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name, age in (("meeting-old", 7200), ("meeting-new", 60), ("other", 7200)):
        (tmp_path / name).write_text("WANDB_API_KEY=…")
        os.utime(tmp_path / name, (time.time() - age,) * 2)

    with key_file({"words": []}) as (path, _):
        there = {one.name for one in tmp_path.iterdir()} - {os.path.basename(path)}

    assert there == {"meeting-new", "other"}
    assert not os.path.exists(path)
