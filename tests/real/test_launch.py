"""Programs of several processes on several nodes of a real Slurm."""

import json
import os
import re
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from tests.lab.login import UID
from tests.needs import torch_env

from rabaska.domain.jobs import JobSpec, Resources
from rabaska.schedulers.slurm import Slurm

pytestmark = [pytest.mark.real, pytest.mark.slow]

SOURCES = Path(__file__).parents[2] / "src"
EXACT = SOURCES.parent / "tests" / "training" / "exact" / "plain.py"
NODES = ("sdumont3170", "sdumont3171")  # those of the lab's first partition

# Who am I: each process tells in one line, by what it was given.
WHO = """
import json, os, socket
print(json.dumps({
    "host": socket.gethostname(), "data": len(os.listdir(os.environ["RABASKA_DATA"])),
    "here": sorted(os.listdir(".")), "cwd": os.getcwd(), "place": os.environ["RABASKA_DATA"],
    **{name: os.environ.get(name) for name in (
        "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS",
        "RABASKA_WORKERS", "CUDA_VISIBLE_DEVICES", "SITE")},
}), flush=True)
"""

# One global batch of 8 rows per step, shared among however many processes there are.
DDP = """
import os, signal, sys, torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

steps, pause = int(sys.argv[1]), float(sys.argv[2])
rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
if world > 1:
    dist.init_process_group("gloo")
    model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = torch.Generator().manual_seed(1)
for step in range(1, steps + 1):
    x = torch.randn(8, 6, generator=rows)
    y = x.sum(1, keepdim=True)
    loss = ((model(x[rank::world]) - y[rank::world]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total = loss.detach().clone()
    if world > 1:
        dist.all_reduce(total)
    if rank == 0:
        print("step", step, "loss %.9f" % (total.item() / world), flush=True)
    if pause:
        import time
        time.sleep(pause)
if world > 1:
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # gloo's threads now and then abort a process that has done all its work
"""

MPI = """
from mpi4py import MPI
import json, os, socket
world = MPI.COMM_WORLD
total = world.allreduce(world.Get_rank() + 1)
print(json.dumps({"rank": world.Get_rank(), "size": world.Get_size(), "total": total,
                  "host": socket.gethostname(), "cwd": os.getcwd()}), flush=True)
"""

# Answers the wish to stop by saving, which takes it a moment; its helpers do not answer at all.
STOPPABLE = """
import os, signal, subprocess, time
rank = os.environ.get("RANK", "0")
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
helper = subprocess.Popen(["sleep", "600"])
print("ready %s\\n" % rank, end="", flush=True)  # in one piece: others write to the log too
while not asked:
    time.sleep(0.05)
time.sleep(1)
assert helper.poll() is None, "the wish to stop reached a helper"
with open(os.path.join(os.environ["RABASKA_OUTPUT"], "saved-%s.npy" % rank), "w") as f:
    f.write(rank)
helper.kill()
"""


def lines_of(voyager, run):
    """What each process printed as JSON; srun may let the lines of two run together."""
    log = voyager.types("logs", run).output
    return [json.loads(found) for found in re.findall(r"\{[^{}]*\}", log)]


def finished(voyager, run, seconds=90):
    told = voyager.until(lambda one: one["state"] not in ("queued", "running"), run, seconds)
    log = voyager.types("logs", run).output
    assert told["state"] == "finished", f"{told}\n{log}"
    return told


def left_on_nodes(lab):
    """What jobs left in node-local space of every node, but for what is kept for later ones."""
    found = ["find", "/lscratch", "/tmp", "-name", "rabaska-*", "-not", "-name", f"rabaska-{UID}"]
    return {node.name: lab.nodes.run(node.name, found).split() for node in lab.site.nodes}


def project(voyager, code, launch, *, command="python3 train.py", resources="nodes = 2", more=""):
    voyager.write("train.py", code)
    voyager.write(
        "rabaska.toml",
        f"""
        name = "several"
        command = "{command}"
        launch = "{launch}"
        [data.numbers]
        path = "numbers"
        [resources]
        walltime = "10m"
        memory = "4 GB"
        tasks = 2
        {resources}
        {more}
        """,
    )


def add_to_profile(voyager, text):
    with voyager.profile.open("a") as stream:
        stream.write(text)


def test_srun_starts_one_process_for_each_task_and_tells_each_its_rank(voyager):
    project(voyager, WHO, "srun", resources="nodes = 2\n        cores = 3\n        gpus = 2")
    add_to_profile(voyager, '[variables]\nSITE = "lab"\n')

    run = voyager.run()
    finished(voyager, run)

    told = sorted(lines_of(voyager, run), key=lambda one: int(one["RANK"]))
    assert [one["RANK"] for one in told] == ["0", "1", "2", "3"]
    assert [one["LOCAL_RANK"] for one in told] == ["0", "1", "0", "1"]
    assert [one["host"] for one in told] == 2 * ["sdumont3170"] + 2 * ["sdumont3171"]
    assert {one["WORLD_SIZE"] for one in told} == {"4"}
    assert {one["MASTER_ADDR"] for one in told} == {"sdumont3170"}
    assert len({one["MASTER_PORT"] for one in told}) == 1
    assert {one["CUDA_VISIBLE_DEVICES"] for one in told} == {"0,1"}
    assert {one["OMP_NUM_THREADS"] for one in told} == {"3"}
    assert {one["RABASKA_WORKERS"] for one in told} == {"3"}
    assert {one["SITE"] for one in told} == {"lab"}
    assert {one["data"] for one in told} == {3}
    # Staged once on each node, for all processes there.
    assert len({(one["host"], one["place"]) for one in told}) == 2
    assert all(one["place"].startswith("/lscratch/") for one in told)
    assert {"train.py", "rabaska.toml"} <= set(told[-1]["here"])
    assert not any(left_on_nodes(voyager.lab).values())


def losses(log):
    return [float(loss) for loss in re.findall(r"^step \d+ loss (\S+)", log, re.MULTILINE)]


@pytest.fixture(scope="session")
def python():
    """A Python with torch and mpi4py that the nodes of the lab have."""
    return torch_env.build() / "bin" / "python"


@pytest.fixture(scope="session")
def alone(python, tmp_path_factory):
    """The losses of one process with the same global batch."""
    script = tmp_path_factory.mktemp("alone") / "train.py"
    script.write_text(DDP)
    ran = subprocess.run([python, script, "12", "0"], capture_output=True, text=True, check=True)
    return losses(ran.stdout)


@pytest.mark.parametrize("launch", ["torchrun", "srun"])
def test_two_nodes_of_two_processes_learn_as_one_process_does(voyager, python, alone, launch):
    project(voyager, DDP, launch, command=f"{python} train.py 12 0")

    run = voyager.run()
    finished(voyager, run, seconds=180)

    found = losses(voyager.types("logs", run).output)
    assert len(found) == len(alone) == 12
    assert found == pytest.approx(alone, rel=1e-5)


@pytest.mark.thorough
def test_a_session_on_two_nodes_is_killed_and_goes_on_exactly(voyager, python, tmp_path):
    together = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=4"]
    subprocess.run(
        [python, *together, EXACT, tmp_path / "whole"],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(SOURCES)},
        capture_output=True, check=True,
    )  # fmt: skip
    command = f"{python} train.py {{checkpoints}} --stop-after 22 --by KILL"
    project(voyager, EXACT.read_text(), "torchrun", command=command, more="[chain]\njobs = 3")

    run = voyager.run()
    told = finished(voyager, run, seconds=240)
    voyager.types("fetch", run, "--to", "brought")

    brought = voyager.project / "brought"
    left = [brought / "checkpoints" / "weights", brought / "output" / "metrics.jsonl"]
    whole = [tmp_path / "whole" / path.name for path in left]
    assert [job["how"] for job in told["jobs"]] == ["crashed", "finished"]
    assert [path.read_text() for path in left] == [path.read_text() for path in whole]


def test_torchrun_needs_no_srun_on_one_node(voyager, python, alone):
    command = f"{python} -u -m package.train 12 0"
    project(voyager, "", "torchrun", command=command, resources="nodes = 1")
    (voyager.project / "package").mkdir()
    voyager.write("package/train.py", DDP)

    run = voyager.run()
    finished(voyager, run, seconds=120)

    assert losses(voyager.types("logs", run).output) == pytest.approx(alone, rel=1e-5)


@pytest.mark.parametrize("starter", ["pmix", "mpirun"])
def test_an_mpi_program_runs_on_two_nodes(voyager, python, starter):
    project(voyager, MPI, "mpi", command=f"{python} train.py")
    add_to_profile(voyager, f'[jobs]\nmpi = "{starter}"\n')

    run = voyager.run()
    finished(voyager, run, seconds=120)

    told = sorted(lines_of(voyager, run), key=lambda one: one["rank"])
    assert [one["rank"] for one in told] == [0, 1, 2, 3]
    assert {(one["size"], one["total"]) for one in told} == {(4, 10)}
    assert {one["host"] for one in told} == {"sdumont3170", "sdumont3171"}


@pytest.mark.parametrize("launch", ["program", "srun"])
def test_a_program_for_one_gpu_is_started_once_unless_asked_otherwise(voyager, launch):
    project(voyager, WHO, launch, resources="nodes = 1\n        gpus = 2")

    run = voyager.run()
    finished(voyager, run)

    assert len(lines_of(voyager, run)) == (1 if launch == "program" else 2)


@pytest.mark.parametrize("launch", ["srun", "torchrun"])
def test_every_process_on_every_node_is_asked_to_save_and_nothing_else_is(voyager, python, launch):
    saved = "[checkpoints]\n        patterns = ['saved-*.npy']"
    project(voyager, STOPPABLE, launch, command=f"{python} train.py", more=saved)
    run = voyager.run()
    ready = ["ready 0", "ready 1", "ready 2", "ready 3"]
    voyager.until(lambda told: all(word in told["tail"] for word in ready), run)
    told = voyager.until(lambda told: sorted(told["vitals"]) == sorted(NODES), run)
    assert all(node["processes"] > 0 for node in told["vitals"].values())

    voyager.types("cancel", run)
    voyager.until(lambda told: told["state"] == "cancelled", run)

    output = voyager.lab.path(f"{voyager.store}/runs/{run}/carried/001/output")
    assert sorted(path.name for path in output.glob("saved-*")) == [
        f"saved-{rank}.npy" for rank in range(4)
    ]
    assert "AssertionError" not in voyager.types("logs", run).output
    voyager.lab.wait_for_nodes()
    assert not any(left_on_nodes(voyager.lab).values())


def test_nothing_runs_on_any_node_once_the_agent_was_killed(voyager):
    project(voyager, STOPPABLE, "srun")
    run = voyager.run()
    voyager.until(lambda told: "ready 3" in told["tail"], run)

    voyager.lab.nodes.run("sdumont3170", ["pkill", "-KILL", "-f", "pyz run"])

    def helpers():
        found = ["bash", "-c", "pgrep -f '[s]leep 600' || true"]
        return "".join(voyager.lab.nodes.run(node, found) for node in NODES).split()

    voyager.lab.wait_until(lambda: not helpers(), patience=30)


def test_slurm_reads_every_directive_as_it_was_meant(voyager):
    lab = voyager.lab
    folder = f"{voyager.store}/a folder/with 50% 'quotes' \"and\" #more"
    lab.run_as_user(["mkdir", "-p", folder])
    spec = JobSpec(
        name='Zoë\'s "first" run; rm -rf $HOME `id` #1\nsecond line',
        resources=Resources(
            timedelta(minutes=18, seconds=7), gpus=2, gpu_model="v100", nodes=1, tasks=2, cores=3,
            memory=5 * 10**9, exclusive=True,
        ),
        folder=folder, jobs=2, warn_before=timedelta(seconds=60), queue="gdl", features=("v100",),
        mail="zoe@example.org", requeue=False, native=("--nice=7",),
    )  # fmt: skip
    script = "\n".join(["#!/bin/bash", *Slurm().directives(spec), "echo reached"])

    job = lab.sbatch(script)
    lab.wait_until(lambda: len(list(lab.path(folder).iterdir())) == 2, patience=60)

    told = lab.world.run(["scontrol", "show", "job", f"{job}_1"]).stdout
    assert 'JobName=Zoë\'s "first" run; rm -rf $HOME `id` #1 second line\n' in told
    for fact in (
        "TimeLimit=00:19:00", "NumTasks=2", "CPUs/Task=3", "Partition=gdl", "MinMemoryNode=5000M",
        "Features=v100", "TresPerNode=gres:gpu:v100:2", "OverSubscribe=NO", "Requeue=0", "Nice=7",
        "MailUser=zoe@example.org MailType=BEGIN,END,FAIL",
    ):  # fmt: skip
        assert fact in told, fact
    assert (lab.path(folder) / f"scheduler-{job}_1.out").read_text() == "reached\n"


def test_native_options_come_from_the_profile_the_project_and_the_command_line(voyager):
    project(voyager, "print('done')", "program", more="[cluster.lab]\nnative = ['--nice=2']")
    add_to_profile(voyager, "[jobs]\nnative = ['--nice=1']\n")

    shown = voyager.types("run", "--on", "lab", "--dry-run", "--native=--nice=3").output

    assert re.findall(r"#SBATCH --nice=(\d)", shown) == ["1", "2", "3"]


# One process fails; the others would go on, and do not want to be stopped.
FAILING = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(2)
if os.environ["RANK"] == "3":
    raise ValueError("no such column")
time.sleep(600)
"""


def test_a_process_that_fails_is_the_cause_though_the_others_are_killed_after_it(voyager):
    project(voyager, FAILING, "srun", more="[chain]\njobs = 3")

    run = voyager.run()
    told = voyager.until(lambda one: one["state"] not in ("queued", "running"), run, 90)
    log = voyager.types("logs", run).output

    assert [job["how"] for job in told["jobs"]] == ["crashed"], f"{told}\n{log}"
    assert told["state"] == "failed"
    assert told["jobs"][0]["reason"] == (
        "process 3 on sdumont3171 failed first: the program ended with exit code 1"
    )
