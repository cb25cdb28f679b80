"""What a run is doing, why it failed and what it used, by the front door."""

import re

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

LATE = """
import time
time.sleep(2.5)
for step in range(3):
    print("step", step, flush=True)
    time.sleep(0.9)
"""
SETTINGS = """
name = "tiny"
command = "python train.py --batch-size 64"

[resources]
walltime = "60s"

[chain]
jobs = 3
"""
TOO_LARGE = """
import sys
print("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 11.17 GiB total "
      "capacity; 10.62 GiB already allocated)")
sys.exit(1)
"""
QUOTA = "raise OSError(122, 'Disk quota exceeded')"


def test_each_phase_is_told_while_it_lasts_and_counted_afterwards(user):
    user.write("train.py", LATE)
    user.write("rabaska.toml", SETTINGS)
    run = user.types("run", "--no-doctor").output.strip()

    loading = user.until(lambda told: told["view"]["now"].startswith("loading"), run)
    waited = user.types("wait", run)
    told = user.status(run)

    assert loading["state"] == "running"
    assert told["view"]["now"] == ""
    assert told["jobs"][0]["phase"]["spent"]["training"] > 1
    assert told["jobs"][0]["used"]["seconds"] > 4
    assert "job 1: loading" in waited.errors
    assert re.search("time of job 1: .*loading", waited.output)
    assert "\nused: " in waited.output


@pytest.mark.parametrize(
    ("program", "how", "said", "line"),
    [
        (TOO_LARGE, "out of memory", "11.17 GiB", "--batch-size 32"),
        (QUOTA, "quota exceeded", "quota", "rabaska clean --on here"),
    ],
)
def test_status_and_explain_name_one_cause_and_one_line_after_one_job(
    user, program, how, said, line
):
    user.write("train.py", program)
    user.write("rabaska.toml", SETTINGS)
    run = user.types("run", "--no-doctor", "--wait", "--quiet", code=None).output.split()[0]

    told = user.status(run)
    explained = " ".join(user.types("explain", run).output.split())

    assert (told["state"], [job["how"] for job in told["jobs"]]) == ("failed", [how])
    assert said in told["reason"]
    assert line in told["hint"]
    assert told["hint"] in explained
    assert told["reason"][1:] in explained
