"""An example of ours that knows nothing of clusters, from `rabaska init` to fetched results."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.needs import torch_env

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.torch]

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.timeout(600)
def test_digits_in_torch_are_carried_to_slurm_and_back(voyager):
    environment = torch_env.build()
    shutil.rmtree(voyager.project)
    shutil.copytree(EXAMPLES / "digits-torch", voyager.project)
    make = [environment / "bin" / "python", EXAMPLES / "digits" / "make_data.py", "data/digits"]
    subprocess.run(make, cwd=voyager.project, check=True)

    voyager.types("init", "-y")
    voyager.add_settings('[cluster.lab]\nresources = {walltime = "10m", memory = "3 GB"}\n')
    voyager.add_settings(f'[cluster.lab.environment]\nkind = "activate"\npath = "{environment}"\n')
    run = voyager.run("--", "--epochs", "3")
    ended = json.loads(voyager.types("wait", run, "--json").output)
    folder = Path(voyager.types("fetch", run).output.strip())

    assert ended["state"] == "finished"
    assert len(list(folder.rglob("checkpoint-*.pt"))) == 3
    results = json.loads((folder / "output" / "results.json").read_text())
    assert results["accuracy"] > 0.5
