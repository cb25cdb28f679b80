"""Every built-in profile makes the job scripts that were read and found right."""

import re
import subprocess

import pytest
from render import FORMS, SCRIPTS, profiles, script

from rabaska.schedulers import SCHEDULERS
from rabaska.settings.profiles import load_cluster

# What the sites and tutorials ask for, directive by directive.
SPELLED = {
    ("fir", "one-gpu"): ["#SBATCH --account=def-prof", "#SBATCH --gpus-per-node=h100:1"],
    ("nibi", "gpus"): ["#SBATCH --gpus-per-node=h100:8", "#SBATCH --ntasks-per-node=8"],
    ("rorqual", "nodes"): ["#SBATCH --nodes=2", "#SBATCH --gpus-per-node=h100:4"],
    ("trillium-gpu", "one-gpu"): ["#SBATCH --gpus-per-node=1"],
    ("beluga", "one-gpu"): ["#SBATCH --gres=gpu:1", "#SBATCH --mem=47000M"],
    ("cedar", "one-gpu"): ["#SBATCH --mem=32000M", "#SBATCH --array=1-3%1"],
    ("phoenix", "one-gpu"): ["#SBATCH --gres=gpu:1", "#SBATCH --cpus-per-task=4",
                             "#SBATCH --mem=22000M"],
    ("helios", "one-gpu"): ["#PBS -A def-prof", "#PBS -l feature=k80",
                            "#PBS -m bea -M ada@example.org", "#PBS -l walltime=12:00:00"],
    ("hades", "one-gpu"): ["#PBS -q @hades"],
    ("jean-zay", "one-gpu"): ["#SBATCH --qos=qos_gpu-t3", "#SBATCH --hint=nomultithread"],
    ("perlmutter", "nodes"): ["#SBATCH --qos=regular", "#SBATCH --constraint=gpu"],
    ("sdumont", "gpus"): ["#SBATCH --partition=nvidia", "#SBATCH --gpus-per-node=2"],
    ("mila", "one-gpu"): ["#SBATCH --partition=long", "#SBATCH --gres=gpu:1"],
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", profiles())
def test_the_script_is_the_one_that_was_read(name, form):
    kept = SCRIPTS / f"{name}.{form}.sh"

    assert kept.read_text("utf-8") == script(name, form), "run `make golden` and read the change"


def test_every_script_belongs_to_a_profile():
    kept = {path.name for path in SCRIPTS.iterdir()}

    assert kept == {f"{name}.{form}.sh" for name in profiles() for form in FORMS}


def test_every_scheduler_of_a_profile_is_one_that_rabaska_speaks_to():
    assert {load_cluster(name).scheduler for name in profiles()} <= set(SCHEDULERS)


@pytest.mark.parametrize(("name", "form"), SPELLED)
def test_what_the_site_wants_to_read_stands_in_the_script(name, form):
    written = script(name, form)

    lines = written.splitlines()
    assert [line for line in SPELLED[name, form] if line not in lines] == [], written


@pytest.mark.parametrize("name", profiles())
def test_bash_can_read_every_script(name):
    for form in FORMS:
        read = subprocess.run(
            ["bash", "-n", SCRIPTS / f"{name}.{form}.sh"], capture_output=True, check=False
        )

        assert read.returncode == 0, read.stderr


@pytest.mark.parametrize("name", profiles())
def test_no_queue_is_named_where_the_site_wants_to_choose(name):
    if not load_cluster(name).names_queue:
        assert not re.search(r"--partition|-q ", script(name, "one-gpu"))
