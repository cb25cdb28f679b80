"""Vitals of a job, by real agents and tasks: on each of its nodes, and at nobody's expense."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rabaska.node.login.run_report import report
from rabaska.node.record import chain_rule

PROGRAM = "import time; time.sleep(1)"
UNTIL_TOLD = """
import glob, os, time
folder = os.environ["RABASKA_HOLDS"].rpartition("#")[0]
until = time.time() + 40
while time.time() < until:
    if any("gpu0 use" in open(path).read() for path in glob.glob(folder + "/vitals/*.tsv")):
        break
    time.sleep(0.1)
"""


def test_a_job_tells_what_its_node_did(agents_for: Any, fake_nvml: Path, tmp_path: Path) -> None:
    agents = agents_for(UNTIL_TOLD)

    code, said = agents.job(RABASKA_NVML=str(fake_nvml), RABASKA_SYSFS=str(tmp_path))

    (path,) = Path(agents.run.path, "vitals").iterdir()
    (means,) = report(agents.run.path)["vitals"].values()
    assert code == 0
    assert path.name.startswith("job-001-")
    assert means["gpu0 use"] == 0.87
    assert means["processes"] == 1
    assert agents.events("no vitals of GPUs") == []
    assert "left running" not in said


def test_a_driver_that_hangs_delays_no_job(
    agents_for: Any, fake_nvml: Path, tmp_path: Path
) -> None:
    (tmp_path / "gpus").write_text("hang\n")
    agents = agents_for(PROGRAM)
    began = time.monotonic()

    code, said = agents.job(
        RABASKA_NVML=str(fake_nvml), RABASKA_SYSFS=str(tmp_path), FAKE_NVML=str(tmp_path / "gpus")
    )

    assert (code, agents.ended(1).how) == (0, chain_rule.FINISHED)
    assert time.monotonic() - began < 30
    assert "left running" not in said + agents.log(1)
    assert agents.events("ended stragglers") == []


@pytest.mark.parametrize(
    ("node", "local", "writes"), [("1", "0", True), ("1", "1", False), ("0", "0", False)]
)
def test_on_another_node_its_first_task_writes_them(tmp_path, node, local, writes):
    words = [sys.executable, "-m", "rabaska.node", "task", "--", "sleep", "0.8"]
    placed = {"SLURM_NODEID": node, "SLURM_LOCALID": local, "SLURM_PROCID": "3"}
    environment = {**os.environ, **placed, "RABASKA_HOLDS": f"{tmp_path}#2"}

    with subprocess.Popen(words, env=environment, stdin=subprocess.PIPE) as task:
        assert task.wait() == 0

    found = list((tmp_path / "vitals").glob("job-002-*.tsv")) if writes else []
    assert bool(found) is writes
    assert (tmp_path / "vitals").exists() is writes
