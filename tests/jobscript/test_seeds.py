"""The job scripts of three public tutorials, each with its equivalent made by us.

Directives are compared one by one, by what they mean to Slurm; steps by where ours does them.
"""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from rabaska.domain.amounts import duration
from rabaska.domain.secrets import Secrets
from rabaska.packing.make_pack import Pack
from rabaska.remote.this_computer import Here
from rabaska.settings.profiles import load_cluster
from rabaska.settings.project_file import load
from rabaska.steps.carry import Carried
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.environment import resolve
from rabaska.steps.plan_run import PlannedRun, job_spec, plan_run

# What ours asks for beside: a name, a place for its output, time to save, and another try.
OURS = {"--job-name", "--output", "--signal", "--requeue", "--open-mode"}

CALCUL_CANADA = """
title = "Calcul Canada"
scheduler = "slurm"
[reach]
host = "beluga"
[storage]
local = "$SLURM_TMPDIR"
[jobs]
gpus = "gres"
"""
SDUMONT = """
title = "SDumont"
scheduler = "slurm"
[reach]
host = "sdumont"
[storage]
store = "$SCRATCH/rabaska"
"""


class Tutorial:
    """A project folder, the profile of a cluster, and what we make of both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def rendered(self, profile: str, settings: str) -> PlannedRun:
        clusters, project = self.folder / "clusters", self.folder / "project"
        clusters.mkdir()
        (project / "data").mkdir(parents=True)
        (project / "requirements.txt").write_text("torch\n")
        (project / "rabaska.toml").write_text(settings)
        (clusters / "there.toml").write_text(profile)
        cluster = load_cluster("there", user_profiles=clusters)
        store = str(self.folder / "store")
        there = ConnectedCluster(cluster, Here(), store, "python3", self.folder / "ab12.pyz")
        wanted = load(project, cluster="there")
        packs = tuple(
            Pack(f"{dataset.name}-12ab", self.folder, 1, 1, 1, reused=False)
            for dataset in wanted.datasets
        )
        setup = resolve(wanted.environment, there).setup
        job = job_spec(wanted, cluster, store)
        carried = Carried(wanted, job, there, "c0de", packs, setup, Secrets(), resumes="")
        return plan_run(carried, "run-7f3a")


@pytest.fixture
def tutorial(tmp_path):
    return Tutorial(tmp_path)


def directives(script: str) -> dict[str, object]:
    """Each #SBATCH option with what it means, however it is spelled."""
    lines = re.findall(r"^#SBATCH (\S+?)(?:[= ](\S+))?[ \t]*(?:#.*)?$", script, re.MULTILINE)
    return dict(meaning(option, value) for option, value in lines)


def meaning(option: str, value: str) -> tuple[str, object]:
    if option == "--time":
        return option, span(value)
    if option == "--mem":
        return option, int(value.removesuffix("M"))
    if option in ("--gres", "--gpus-per-node"):
        *model, count = value.removeprefix("gpu:").split(":")
        return "gpus", (model, int(count))
    return option, value


def span(value: str) -> timedelta:
    """As sbatch(1) reads it: minutes, or days and hours, or hours and minutes."""
    days, _, clock = value.rpartition("-")
    parts = clock.split(":")
    if days and len(parts) < 3:
        parts += ["00"] * (3 - len(parts))
    return timedelta(days=int(days or 0)) + duration(":".join(parts))


def assert_the_same(ours: str, theirs: str) -> None:
    made, wanted = directives(ours), directives(theirs)
    for option, value in wanted.items():
        assert made.get(option) == value, option
    assert set(made) - set(wanted) <= OURS


def assert_in_order(script: str, steps: list[str]) -> None:
    place = 0
    for step in steps:
        found = re.compile(step, re.MULTILINE).search(script, place)
        assert found, f"{step!r} is missing, or comes too early, in\n{script}"
        place = found.end()


def test_the_workshop_that_builds_its_environment_in_the_job(tutorial):
    made = tutorial.rendered(
        CALCUL_CANADA,
        """
        command = "python train.py {data}"
        [data.tinyimagenet]
        path = "data"
        [environment]
        modules = ["python/3.8"]
        requirements = "requirements.txt"
        [output]
        keep = ["lightning_logs"]
        [resources]
        gpus = 1
        cores = 4
        memory = "22000M"
        walltime = "1h"
        """,
    )

    assert_the_same(
        made.script,
        """
#SBATCH --cpus-per-task=4
#SBATCH --mem=22000M
#SBATCH --gres=gpu:1
#SBATCH --time=00-01:00:00  # DD-HH:MM:SS
""",
    )
    assert_in_order(
        made.script,
        [
            r"^module load python/3\.8",
            r"SLURM_TMPDIR",
            r"^virtualenv --no-download",
            r"^source .*bin/activate",
            r" pip install .*--no-index.* -r ",
            r"^exec python3 \S+ run \S+/runs/run-7f3a$",
        ],
    )
    # The agent unpacks the data on the node, trains, and brings the results back.
    assert [(one.pack, one.mode) for one in made.plan.datasets] == [("tinyimagenet-12ab", "files")]
    assert made.plan.command == ["python", "train.py", "{data}"]
    assert made.plan.keep == ["lightning_logs"]


ML_TEST = """
command = "python train.py {data}"
[data.mydataset]
path = "data"
[environment]
modules = ["python/3.6", "cuda", "cudnn"]
path = "~/my_env"
[resources]
gpus = 1
cores = 3
memory = "32000M"
walltime = "3h"
"""


def test_the_manual_that_activates_an_environment(tutorial):
    made = tutorial.rendered(CALCUL_CANADA, ML_TEST)

    assert_the_same(
        made.script,
        """
#SBATCH --gres=gpu:1       # Request GPU "generic resources"
#SBATCH --cpus-per-task=3  # Refer to cluster's documentation for the right CPU/GPU ratio
#SBATCH --mem=32000M       # Memory proportional to GPUs
#SBATCH --time=0-03:00     # DD-HH:MM:SS
""",
    )
    assert_in_order(
        made.script,
        [
            r"^module load python/3\.6 cuda cudnn",
            r"^source \"\$HOME/my_env/bin/activate\"",
            r'^export RABASKA_LOCAL="\$SLURM_TMPDIR"$',
            r"^exec python3 \S+ run \S+/runs/run-7f3a$",
        ],
    )
    assert [one.name for one in made.plan.datasets] == ["mydataset"]
    assert made.plan.command == ["python", "train.py", "{data}"]


def test_the_manuals_chain_of_ten_jobs_from_checkpoint_to_checkpoint(tutorial):
    chained = ML_TEST.replace(
        '"python train.py {data}"',
        '"python train.py {data} --write-checkpoints-to {checkpoints}"\n'
        'resume = "--load-checkpoint {checkpoint}"',
    )
    more = '[chain]\njobs = 10\n[checkpoints]\npatterns = ["*.h5"]\n'
    account = '[cluster.there]\naccount = "def-someuser"\n'

    made = tutorial.rendered(CALCUL_CANADA, chained + more + account)

    assert directives(made.script)["--array"] == "1-10%1"
    assert directives(made.script)["--account"] == "def-someuser"
    assert made.plan.patterns == ["*.h5"]
    assert made.plan.command[3:] == ["--write-checkpoints-to", "{checkpoints}"]
    assert made.plan.resume == ["--load-checkpoint", "{checkpoint}"]


# Queue, nodes, cards of each node, hours, as in the supercomputer's table of queues.
CONFIGURATIONS = {
    "one card": ("nvidia_dev", 1, ("k40", 1), "00:20:00", "program"),
    "a node's cards": ("sequana_gpu_shared", 1, ("v100", 4), "96:00:00", "torchrun"),
    "several nodes": ("nvidia", 4, ("k40", 2), "48:00:00", "torchrun"),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_supercomputers_three_configurations(tutorial, name):
    queue, nodes, (model, cards), walltime, launch = CONFIGURATIONS[name]

    made = tutorial.rendered(
        SDUMONT,
        f"""
        command = "python train.py"
        launch = "{launch}"
        [environment]
        path = "myenv"
        [resources]
        nodes = {nodes}
        gpus = {cards}
        gpu_model = "{model}"
        walltime = "{walltime}"
        [cluster.there]
        queue = "{queue}"
        """,
    )

    several = f"#SBATCH --nodes={nodes}\n#SBATCH --ntasks-per-node={cards}\n" if cards > 1 else ""
    assert_the_same(
        made.script,
        f"#SBATCH --partition={queue}\n#SBATCH --gpus-per-node={model}:{cards}\n"
        f"#SBATCH --time={walltime}\n{several}",
    )
    assert_in_order(made.script, [r"conda activate myenv", r"^exec python3"])
    assert (made.plan.launch.nodes, made.plan.launch.tasks) == (nodes, cards)
    assert made.plan.launch.form == launch
