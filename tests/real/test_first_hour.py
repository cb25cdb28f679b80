"""A new user's way on a real Slurm: five commands, no line of TOML, no failed attempt."""

import json
from pathlib import Path

import pytest
from tests.environments.small_wheels import make_wheel

pytestmark = [pytest.mark.real, pytest.mark.slow]

# Needs a package, and the GPU if there is one; resumes from its checkpoint.
TRAIN = """
import argparse, json, os
import paddle
{imports}

parser = argparse.ArgumentParser()
parser.add_argument("--data", default="numbers")
parser.add_argument("--output", default="out")
parser.add_argument("--resume")
args = parser.parse_args()
device = {device}
step = json.load(open(args.resume))["step"] if args.resume else 0
for step in range(step + 1, 4):
    print("step", step, "loss", 1 / step)
    with open(os.path.join(args.output, "checkpoint-%d.json" % step), "w") as stream:
        json.dump({{"step": step}}, stream)
told = {{"device": device, "paddle": paddle.VERSION, "files": len(os.listdir(args.data))}}
told.update((name, os.environ.get(name)) for name in ("SLURM_CPUS_PER_TASK", "SLURM_MEM_PER_NODE"))
with open(os.path.join(args.output, "result.json"), "w") as stream:
    json.dump(told, stream)
"""
# Stands for a framework, of which the lab has none.
ACCELERATOR = """
import os


class cuda:
    @staticmethod
    def is_available():
        return bool(os.environ.get("CUDA_VISIBLE_DEVICES"))
"""
PROGRAMS = {
    "cpu": TRAIN.format(imports="", device='"cpu"'),
    "gpu": TRAIN.format(
        imports="import accelerator",
        device='"gpu" if accelerator.cuda.is_available() else "cpu"',
    ),
}


@pytest.fixture
def newcomer(voyager):
    """Somebody with a program and its list of packages, who has never seen rabaska."""
    wheels = f"/opt/site/wheels/{voyager.home.parent.name}"
    make_wheel(voyager.lab.path(wheels), "paddle", "2.1")
    voyager.lab.path("/etc/pip.conf").write_text(f"[install]\nfind-links = {wheels}\n")
    voyager.profile.unlink()
    (voyager.project / "rabaska.toml").unlink()
    voyager.write("requirements.txt", "paddle\n")
    voyager.write("accelerator.py", ACCELERATOR)
    yield voyager
    voyager.lab.path("/etc/pip.conf").write_text("")


def add(user):
    options = [f"--ssh-option={word}" for word in ("-F", str(user.lab.ssh_config))]
    return user.types("clusters", "add", "lab", "--host", "lab", *options)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_five_commands_and_no_settings_bring_results(newcomer, kind):
    newcomer.write("train.py", PROGRAMS[kind])

    newcomer.types("init", "--yes")
    add(newcomer)
    said = newcomer.types("run", "--on", "lab")
    waited = newcomer.types("wait")
    folder = Path(newcomer.types("fetch").output.strip())

    told = json.loads((folder / "output" / "result.json").read_text())
    assert told["device"] == kind
    assert told["paddle"] == "2.1"
    assert told["files"] == 3
    assert told["SLURM_CPUS_PER_TASK"] == ("12" if kind == "gpu" else "4")
    assert int(told["SLURM_MEM_PER_NODE"]) > 4000
    assert "finished" in waited.output
    picked = next(line for line in said.errors.splitlines() if line.startswith("picked for lab"))
    assert "queue nvidia_dev (the default), jobs of 20 min (its limit)" in picked
    assert ("1 GPU (train.py, line 11" in picked) == (kind == "gpu")
    assert "note:" not in said.errors


def test_what_no_queue_grants_is_refused_with_the_line_that_works(newcomer):
    newcomer.write("train.py", PROGRAMS["cpu"])
    newcomer.types("init", "--yes")
    add(newcomer)
    table = '\n[cluster.lab]\nqueue = "nvidia_dev"\nresources = {walltime = "10h"}\n'
    before = (newcomer.project / "rabaska.toml").read_text()
    newcomer.add_settings(table)

    said = newcomer.types("run", "--on", "lab", code=7).errors

    assert "its limit is 20 min" in said
    assert 'write `queue = "nvidia_scal"` under [cluster.lab]' in said
    fixed = table.replace("nvidia_dev", "nvidia_scal")
    (newcomer.project / "rabaska.toml").write_text(before + fixed)
    shown = newcomer.types("run", "--on", "lab", "--dry-run").output
    assert "#SBATCH --partition=nvidia_scal" in shown
    assert "submitted by  sbatch --parsable" in shown


def test_a_plan_writes_its_choice_and_the_next_run_uses_it(newcomer):
    newcomer.write("train.py", PROGRAMS["cpu"])
    newcomer.types("init", "--yes")
    add(newcomer)

    planned = newcomer.types("plan", "--on", "lab", "--total", "60h", "--write")

    assert "jobs of a day start sooner" in planned.output
    assert "wrote to rabaska.toml under [cluster.lab]" in planned.errors
    shown = newcomer.types("run", "--on", "lab", "--dry-run")
    assert "#SBATCH --time=1-00:00:00" in shown.output
    assert "#SBATCH --array=1-3%1" in shown.output
    assert "picked" not in shown.errors
