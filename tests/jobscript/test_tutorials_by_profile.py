"""A dry run on the very clusters of the tutorials, by the profiles that come with rabaska."""

import os
import re
import subprocess
import sys

import pytest

from rabaska.settings.profile_files import profile_files

SETTINGS = """
name = "ml-test"
command = "python train.py {{data}} --load-checkpoint {{checkpoint}} --out {{output}}"
[data.images]
path = "images"
[environment]
requirements = "requirements.txt"
{environment}
[resources]
{resources}
[chain]
jobs = {jobs}
{chain}
[cluster.{cluster}]
{own}
"""

# cluster: (settings, what the tutorial's script says, in our script)
TUTORIALS = {
    "helios": (
        {"resources": 'gpus = 8\nwalltime = "12h"', "chain": "requeue = false",
         "own": 'account = "pje-224-aa"\nfeatures = ["k80"]\nmail = "ada@example.org"'},
        ["#PBS -A pje-224-aa", "#PBS -l walltime=12:00:00", "#PBS -l nodes=1:gpus=8",
         "#PBS -l feature=k80", "#PBS -m bea", "#PBS -r n",
         "module load cuda/8.0.44 libs/cuDNN/6 apps/python/3.5.0",
         "$RAMDISK if it fits, else $LSCRATCH", "$RAP/rabaska"],
    ),
    "hades": (
        {"resources": 'gpus = 2\nwalltime = "12h"', "own": 'account = "pje-224-aa"'},
        ["#PBS -A pje-224-aa", "#PBS -l nodes=1:gpus=2", "#PBS -l walltime=12:00:00", "-q @hades"],
    ),
    "copper": (
        {"resources": 'gpus = 4\ncores = 8\nmemory = "92 GB"\nwalltime = "4h"'},
        ["sqsub", "-r 240m", "-q gpu", "--gpp=4", "-n 8", "--mpp="],
    ),
    "monk": (
        {"resources": 'gpus = 1\nwalltime = "1d"'},
        ["sqsub", "-r 1440m", "-q gpu", "-o ", 'RABASKA_LOCAL="/tmp/$USER"'],
    ),
    "mosaic": (
        {"resources": 'gpus = 1\nwalltime = "4h"', "jobs": 6},
        ["sqsub", "-r 240m", "-q gpu", "-f threaded", "--gpp=1", "up to 6 of 4 h"],
    ),
    "minsky": (
        {"resources": 'gpus = 4\nnodes = 1\nwalltime = "4h"'},
        ["sqsub", "-r 240m", "-q gpu", "--gpp=4", "staged into", "/tmp/$USER"],
    ),
    "phoenix": (
        {"resources": 'gpus = 1\ncores = 4\nmemory = "22 GB"\nwalltime = "1h"'},
        ["#SBATCH --cpus-per-task=4", "#SBATCH --mem=22000M", "#SBATCH --gres=gpu:1",
         "#SBATCH --time=0-01:00:00", "module load python/3.8", "virtualenv --no-download",
         "pip install --quiet --no-index", 'RABASKA_LOCAL="$SLURM_TMPDIR"'],
    ),
    "beluga": (
        {"resources": 'gpus = 1\ncores = 3\nmemory = "47 GB"\nwalltime = "3h"', "jobs": 10,
         "environment": 'modules = ["python/3.6", "cuda", "cudnn"]',
         "own": 'account = "def-someuser"'},
        ["#SBATCH --account=def-someuser", "#SBATCH --gres=gpu:1", "#SBATCH --cpus-per-task=3",
         "#SBATCH --mem=47000M", "#SBATCH --time=0-03:00:00", "#SBATCH --array=1-10%1",
         "python/3.6 cuda cudnn"],
    ),
    **dict.fromkeys(("cedar", "graham"), (
        {"resources": 'gpus = 1\ncores = 3\nmemory = "20 GB"\nwalltime = "1d"', "jobs": 5,
         "own": 'account = "def-someuser"\nmail = "ada@example.org"'},
        ["#SBATCH --account=def-someuser", "#SBATCH --gres=gpu:1", "#SBATCH --cpus-per-task=3",
         "#SBATCH --mem=20000M", "#SBATCH --time=1-00:00:00", "#SBATCH --array=1-5%1",
         "#SBATCH --mail-user=ada@example.org", "virtualenv --no-download",
         "pip install --quiet --no-index", 'RABASKA_LOCAL="$SLURM_TMPDIR"'],
    )),
    "sdumont": (
        {"resources": 'gpus = 4\nwalltime = "4d"\nexclusive = true', "chain": "requeue = false",
         "own": 'queue = "sequana_gpu_shared"'},
        ["#SBATCH --partition=sequana_gpu_shared", "#SBATCH --gpus-per-node=4",
         "#SBATCH --time=4-00:00:00", "#SBATCH --exclusive", "#SBATCH --no-requeue",
         "$SCRATCH/rabaska"],
    ),
}  # fmt: skip


def _out_of_reach(cluster, profiles):
    """The same profile, at a host that no network knows: a test shall knock at nobody's door."""
    text = profile_files(None)[cluster].read_text("utf-8")
    profiles.mkdir(parents=True)
    beyond = re.sub(r'^(host|transfer) = ".*"$', r'\1 = "cluster.invalid"', text, flags=re.M)
    (profiles / f"{cluster}.toml").write_text(beyond, "utf-8")


@pytest.fixture
def dry_run(tmp_path):
    def dry_run(cluster, **said):
        usual = {"environment": "", "chain": "", "jobs": 1, "own": ""}
        settings = SETTINGS.format(cluster=cluster, **{**usual, **said})
        (tmp_path / "rabaska.toml").write_text(settings)
        (tmp_path / "requirements.txt").write_text("torch\n")
        (tmp_path / "train.py").write_text("import torch\n")
        (tmp_path / "images").mkdir()
        (tmp_path / "images" / "a.jpg").write_text("a")
        _out_of_reach(cluster, tmp_path / "home" / "clusters")
        own = {"RABASKA_HOME": str(tmp_path / "home"), "NO_COLOR": "1"}
        return subprocess.run(
            [sys.executable, "-m", "rabaska", "run", "--on", cluster, "--dry-run"],
            cwd=tmp_path, env={**os.environ, **own}, capture_output=True, text=True, check=False,
        )  # fmt: skip

    return dry_run


@pytest.mark.parametrize("cluster", TUTORIALS)
def test_each_directive_of_the_tutorial_stands_in_the_dry_run(cluster, dry_run):
    said, wanted = TUTORIALS[cluster]

    shown = dry_run(cluster, **said)

    assert shown.returncode == 0, shown.stderr
    assert [line for line in wanted if line not in shown.stdout] == [], shown.stdout
    # What is told once for all: the newest checkpoint, where data goes, where results are saved.
    assert "--load-checkpoint {checkpoint}" in shown.stdout
    assert re.search(r"^staged into +\S", shown.stdout, re.MULTILINE)
    assert re.search(r"^results +\S+/output", shown.stdout, re.MULTILINE)


@pytest.mark.parametrize(("cluster", "successor"), [("helios", "rorqual"), ("copper", "nibi")])
def test_a_dry_run_on_a_cluster_that_is_gone_says_what_replaced_it(cluster, successor, dry_run):
    shown = dry_run(cluster, **TUTORIALS[cluster][0])

    assert successor in shown.stderr
