"""How processes are started, and how those on many nodes are asked to stop."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from agents import Agents, make_run

from rabaska.node.job import launch
from rabaska.node.job.this_job import this_job_from
from rabaska.node.record import jobs, lease, plan
from rabaska.node.record.plan import Launch
from rabaska.node.record.run_folder import RunFolder
from rabaska.packing.make_pack import PackOptions, pack

WHERE = launch.Allocation("node1", 10012, "12_2", "/local/job")
TASK = ["py", "x.pyz", "task"]
ONE_NODE = [
    "-m", "torch.distributed.run", "--nnodes=1", "--nproc-per-node=2", "--rdzv-backend=c10d",
    "--rdzv-conf=store_type=file", "--rdzv-endpoint=/local/job/torchrun",
]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python train.py --lr 1", ["python", *ONE_NODE, "train.py", "--lr", "1"]),
        ("/env/bin/python3.11 a.py", ["/env/bin/python3.11", *ONE_NODE, "a.py"]),
        ("python -u -W error a.py", ["python", "-u", "-W", "error", *ONE_NODE, "a.py"]),
        ("python -m pkg.train x", ["python", *ONE_NODE, "-m", "pkg.train", "x"]),
        ("python -c pass", ["python", *ONE_NODE, "--no-python", "python", "-c", "pass"]),
        ("./train.sh x", ["python3", *ONE_NODE, "--no-python", "./train.sh", "x"]),
        ("pythonic x", ["python3", *ONE_NODE, "--no-python", "pythonic", "x"]),
    ],
)
def test_torchrun_takes_the_place_of_python(command, expected):
    how = Launch("torchrun", nodes=1, tasks=2)

    assert launch.torchrun(command.split(), how, WHERE) == expected


def test_several_nodes_meet_at_the_first():
    how = Launch("torchrun", nodes=2, tasks=4, cores=3)

    words = launch.launched(["python", "a.py"], how, WHERE, TASK)

    srun = words[: words.index("py")]
    assert srun == [
        "srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--kill-on-bad-exit=1",
        "--export=ALL", "--cpus-per-task=12",
    ]  # fmt: skip
    assert words[len(srun) :] == [
        *TASK, "--below", "--node", "--", "python", "-m", "torch.distributed.run", "--nnodes=2",
        "--nproc-per-node=4", "--master-addr=node1", "--master-port=10012", "a.py",
    ]  # fmt: skip


def test_srun_starts_one_process_for_each_task():
    words = launch.launched(["python", "a.py"], Launch("srun", 2, 4, 3), WHERE, TASK)

    assert "--ntasks=8" in words
    assert "--cpus-per-task=3" in words
    assert words[-6:] == [*TASK, "--ranks", "--", "python", "a.py"][-6:]


def test_mpi_is_started_as_the_site_says():
    program = ["python", "a.py"]

    by_srun = launch.launched(program, Launch("mpi", 2, 2, mpi="pmix"), WHERE, TASK)
    by_mpirun = launch.launched(program, Launch("mpi", 2, 2, mpi="mpirun"), WHERE, TASK)

    assert by_srun[0] == "srun"
    assert "--mpi=pmix" in by_srun
    assert by_mpirun == ["mpirun", "-n", "4", "python", "a.py"]


def test_a_plain_program_is_started_as_it_is_however_many_cards_there_are():
    assert launch.launched(["a", "b"], Launch("program", 2, 8), WHERE, TASK) == ["a", "b"]


def test_threads_follow_the_cores_unless_somebody_chose_them():
    how = Launch("program", cores=6)

    assert launch.variables(how, WHERE, {}) == {"RABASKA_WORKERS": "6", "OMP_NUM_THREADS": "6"}
    assert launch.variables(how, WHERE, {"OMP_NUM_THREADS": "1"})["OMP_NUM_THREADS"] == "1"
    assert launch.variables(Launch(), WHERE, {}) == {}


def test_the_port_comes_from_the_number_of_the_job():
    slurm = {"SLURM_JOB_ID": "30012", "SLURMD_NODENAME": "sd3170"}

    assert launch.allocation(slurm, "30010_2", "host", "/x") == ("sd3170", 20012, "30010_2", "/x")
    assert launch.allocation({}, "7_1", "host", "/x") == ("host", 10071, "7_1", "/x")
    assert 10000 <= launch.allocation({}, "", "host", "/x").port < 30000


def test_a_run_from_before_launch_forms_is_read_as_a_plain_one(tmp_path):
    run = make_run(tmp_path, {})
    value = plan.to_json(plan.load(run))
    del value["launch"]

    assert plan.from_json(value).launch == Launch()


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("5000", 5000.0),
        ("", 1060.0),
        ("N/A", 1060.0),
        ("900", 1060.0),  # a clock that is off cannot have ended a job that just begins
        (time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(7000)) + "\n", 7000.0),
    ],
)
def test_the_end_of_the_job_is_read_as_schedulers_write_it(tmp_path, text, ends):
    wanted = plan.load(make_run(tmp_path, {}))

    job = this_job_from({"RABASKA_JOB_ENDS": text}, wanted, 1000.0)

    assert job.ask_at == ends - wanted.grace


# Says when it is asked; its child, as of a data loader, would die of the same signal.
PROGRAM = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGUSR1, lambda *_: (os.write(1, b"asked\\n"), sys.exit(7)))
print("ready", os.environ.get("RANK"), os.getpid(), flush=True)
time.sleep(60)
"""


STARTED = []


@pytest.fixture(autouse=True)
def nothing_is_left():
    """A test that fails leaves no process for the next one to stumble over."""
    yield
    while STARTED:
        process = STARTED.pop()
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def task(*words, command=(sys.executable, "-c", PROGRAM)):
    own = [sys.executable, "-m", "rabaska.node", "task", "--signal", "USR1", *words, "--"]
    process = subprocess.Popen(
        [*own, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "SLURM_PROCID": "3", "SLURM_LOCALID": "1"}, text=True,
    )  # fmt: skip
    STARTED.append(process)
    return process


def alive(pid):
    return Path(f"/proc/{pid}/stat").exists()


def test_a_task_asks_its_program_and_passes_its_exit_code_on():
    process = task("--ranks")
    assert process.stdout.readline().split()[:2] == ["ready", "3"]

    process.stdin.write("stop\n")
    process.stdin.flush()

    assert process.stdout.readline() == "asked\n"
    assert process.wait(20) == 7
    process.communicate()


def test_a_task_asks_the_program_that_a_shell_started_and_lets_it_save():
    process = task(command=("bash", "-c", '"$0" -c "$1"; echo over', sys.executable, PROGRAM))
    assert process.stdout.readline().startswith("ready")

    process.stdin.write("stop\n")
    process.stdin.flush()

    assert process.stdout.readline() == "asked\n"
    assert process.wait(20) == 128 + signal.SIGUSR1
    process.communicate()


def test_a_task_survives_the_signals_that_slurm_sends_to_whole_steps():
    process = task()
    pid = process.stdout.readline().split()[2]

    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGUSR1)
    time.sleep(0.5)

    assert process.poll() is None
    assert alive(pid)
    process.communicate("stop\n")


def test_a_task_ends_its_program_when_nobody_speaks_to_it_any_more():
    process = task()
    pid = process.stdout.readline().split()[2]

    process.communicate()

    assert process.returncode == 128 + signal.SIGKILL
    assert not alive(pid)


# srun for one machine: each node is a folder that stands for another node's local storage.
SRUN = """#!/bin/sh
echo "$@" >> "$NODES/srun.log"
while [ "${1#--}" != "$1" ]; do shift; done
exec "$@"
"""


@pytest.fixture
def agents(zipapp, tmp_path):
    made = Agents(zipapp, RunFolder(""), tmp_path / "local")
    yield made
    for process in made.started:
        process.kill()
        process.communicate()


def with_srun(tmp_path):
    (tmp_path / "bin").mkdir()
    srun = tmp_path / "bin" / "srun"
    srun.write_text(SRUN)
    srun.chmod(0o755)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "NODES": str(tmp_path)}


def test_every_node_is_staged_and_left_and_the_program_started_between(agents, tmp_path):
    variables = with_srun(tmp_path)
    code = {"train.py": "import os; print('world', os.environ['WORLD_SIZE'])"}
    agents.run = make_run(tmp_path, code, launch=Launch("srun", nodes=2, tasks=2))

    exit_code, said = agents.job(**variables)

    assert exit_code == 0, said
    calls = [line.split() for line in (tmp_path / "srun.log").read_text().splitlines()]
    ours = [[word for word in ("stage", "task", "clean") if word in call] for call in calls]
    assert ours == [["stage"], ["task"], ["clean"]]
    assert "world 4" in agents.log(1)


def test_the_nodes_of_a_job_are_told_a_path_that_each_of_them_has(agents, tmp_path):
    (tmp_path / "numbers").mkdir()
    (tmp_path / "numbers" / "one").write_text("1")
    packed = pack(tmp_path / "numbers", tmp_path / "packs", PackOptions("numbers"))
    shards = plan.StagedData("numbers", packed.identity, "shards")
    code = {"train.py": "import os; print(os.listdir(os.environ['RABASKA_DATA']))"}
    several = Launch("srun", nodes=2, tasks=1)
    agents.run = make_run(tmp_path, code, launch=several, datasets=[shards])

    exit_code, said = agents.job(**with_srun(tmp_path))

    assert exit_code == 0, said
    assert "arriving" not in agents.log(1)  # the others have no such folder
    assert "shard-00000.tar" in agents.log(1)
    assert "staged in" in said


def test_the_jobs_that_wait_are_cancelled_when_the_run_is_finished(agents, tmp_path):
    agents.run = make_run(tmp_path, {"train.py": ""})
    mark = tmp_path / "cancelled"

    agents.job(RABASKA_CANCEL_REST=f"touch '{mark}'")

    assert mark.exists()


@pytest.mark.parametrize(
    ("left", "said"), [("true", False), ("echo 13.control", True), ("false", True)]
)
def test_jobs_that_are_gone_are_not_said_to_be_left(agents, tmp_path, left, said):
    agents.run = make_run(tmp_path, {"train.py": ""})

    _, told = agents.job(RABASKA_CANCEL_REST="false", RABASKA_WAITING=left)

    assert ("could not cancel" in told) == said


def test_the_jobs_that_wait_stay_while_there_is_work_left(agents, tmp_path):
    agents.run = make_run(tmp_path, {"train.py": "open('a.npz', 'w'); raise SystemExit(85)"})
    mark = tmp_path / "cancelled"

    agents.job(RABASKA_CANCEL_REST=f"touch '{mark}'")

    assert agents.ended(1).how == "asked to go on"


WAITS = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("ready", flush=True)
time.sleep(60)
"""


def begun(agents, agent):
    while agent.poll() is None:
        log = Path(agents.run.log(1))
        if log.exists() and "ready" in log.read_text():
            return
        time.sleep(0.05)
    raise AssertionError(agent.communicate())


def test_a_holder_that_its_scheduler_gave_up_hands_the_run_over(agents, tmp_path):
    agents.run = make_run(tmp_path, {"train.py": WAITS})
    first = agents.start(RABASKA_JOB_ID="12_1", RABASKA_ONE_AT_A_TIME="yes")
    begun(agents, first)

    second = agents.start(RABASKA_JOB_ID="12_2", RABASKA_ONE_AT_A_TIME="yes")
    first.communicate(timeout=60)

    assert agents.ended(1).how == "killed"
    assert "another job" in agents.ended(1).reason
    while jobs.read_begun(agents.run, 2) is None:
        assert second.poll() is None
        time.sleep(0.05)


def test_a_holder_of_another_submission_keeps_the_run(agents, tmp_path):
    agents.run = make_run(tmp_path, {"train.py": WAITS})
    begun(agents, agents.start(RABASKA_JOB_ID="12_1", RABASKA_ONE_AT_A_TIME="yes"))

    exit_code, said = agents.job(RABASKA_JOB_ID="13_1", RABASKA_ONE_AT_A_TIME="yes")

    assert exit_code == 75
    assert "held by job 1" in said
    assert not lease.ask_to_hand_over(agents.run, 1, "13_1")


def test_mpirun_is_told_of_the_nodes_and_how_to_reach_them(tmp_path):
    how = Launch("mpi", 2, 2, mpi="mpirun", reach="pbsdsh")
    given = {"PBS_NODEFILE": "/var/spool/pbs/aux/7", "OMPI_MCA_plm_rsh_agent": "the site's own"}

    told = launch.mpi_variables(how, str(tmp_path), given)

    assert told["OMPI_MCA_orte_default_hostfile"] == "/var/spool/pbs/aux/7"
    assert "OMPI_MCA_plm_rsh_agent" not in told
    assert told["PRTE_MCA_plm_ssh_agent"] == f"sh {tmp_path}/rsh.sh"
    assert ' rsh --reach pbsdsh "$@"' in (tmp_path / "rsh.sh").read_text()
    assert launch.mpi_variables(how._replace(nodes=1), str(tmp_path), given) == {}
    assert launch.mpi_variables(how._replace(reach="srun"), str(tmp_path), given) == {}


def test_without_srun_our_own_starter_reaches_every_node():
    how = Launch("torchrun", nodes=2, tasks=4, reach="pbsdsh")

    words = launch.launched(["python", "a.py"], how, WHERE, TASK)

    assert words[2:7] == ["on-nodes", "--reach=pbsdsh", "--nodes=2", "--tasks=1", "--"]
    assert words[7:11] == [*TASK, "--below"]
    assert launch.by_starter(how)


TOGETHER = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
number = torch.ones(1)
dist.all_reduce(number)
port = int(os.environ["MASTER_PORT"])
store = dist.TCPStore(os.environ["MASTER_ADDR"], port, None, False, wait_for_workers=False)
pickled = [key for key in store.list_keys() if key.startswith("torch.rendezvous")]
line = "together {} pickled {}\\n".format(int(number), pickled)
os.write(1, line.encode())  # in one go: two processes share the output
dist.barrier()
"""


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2])
def test_torchrun_reads_no_pickle_from_a_port_that_others_can_write_to(tmp_path, zipapp, nodes):
    (tmp_path / "train.py").write_text(TOGETHER)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    where = launch.Allocation("127.0.0.1", port, "7", str(tmp_path))
    task = [sys.executable, str(zipapp), "task"]
    how = Launch("torchrun", nodes=nodes, tasks=2 // nodes)
    words = launch.launched([sys.executable, "train.py"], how, where, task)

    on_each = [
        subprocess.Popen(
            words[words.index(str(zipapp)) - 1 :], cwd=tmp_path, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env={**os.environ, "SLURM_NODEID": str(number)},
        )
        for number in range(nodes)
    ]  # fmt: skip
    said, codes = b"", []
    for node in on_each:
        with node:  # reads before it waits: its input stays open so long
            said += node.stdout.read()
        codes.append(node.returncode)

    assert codes == [0] * nodes
    assert said.count(b"together 2 pickled []") == 2
