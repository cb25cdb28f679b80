"""Programs of several processes on several nodes of a real Slurm."""

import json
import re

import pytest

from tests.real.torch_env import torch_environment

pytestmark = [pytest.mark.real, pytest.mark.slow]

# Who am I: each process tells in one line, by what it was given.
WHO = """
import json, os, socket
print(json.dumps({
    "host": socket.gethostname(), "data": len(os.listdir(os.environ["RABASKA_DATA"])),
    "here": sorted(os.listdir(".")), "cwd": os.getcwd(),
    **{name: os.environ.get(name) for name in (
        "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS",
        "RABASKA_WORKERS", "CUDA_VISIBLE_DEVICES", "SITE")},
}), flush=True)
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
    """What jobs left in node-local space of every node."""
    found = ["find", "/lscratch", "/tmp", "-name", "rabaska-*"]
    return {node.name: lab.nodes.run(node.name, found).split() for node in lab.site.nodes}


def project(voyager, code, launch, *, command="python3 train.py", resources="", more=""):
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
        nodes = 2
        tasks = 2
        {resources}
        {more}
        """,
    )


def add_to_profile(voyager, text):
    with voyager.profile.open("a") as stream:
        stream.write(text)


def test_srun_starts_one_process_for_each_task_and_tells_each_its_rank(voyager):
    project(voyager, WHO, "srun", resources="cores = 3\n        gpus = 2")
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
    assert {"train.py", "rabaska.toml"} <= set(told[-1]["here"])
    assert not any(left_on_nodes(voyager.lab).values())
