"""Memory, phases and events of runs on a real Slurm: told at once, and in words."""

import time

import pytest

pytestmark = [pytest.mark.real, pytest.mark.slow]

GREEDY = """
held = []
print("step 1", flush=True)
while True:
    held.append(bytearray(8 * 2**20))
"""
GREEDY_SETTINGS = """
name = "greedy"
command = "python3 train.py"

[resources]
walltime = "2m"
memory = "300 MB"

[chain]
jobs = 3
"""


def test_a_job_out_of_memory_ends_the_run_with_the_line_to_change(voyager):
    if not voyager.lab.world.cgroups:
        pytest.skip("Slurm enforces no memory limit without cgroups of version 1")
    voyager.write("train.py", GREEDY)
    voyager.write("rabaska.toml", GREEDY_SETTINGS)
    run = voyager.run("--no-doctor")

    voyager.types("wait", run, "--quiet", code=None)
    told = voyager.status(run)

    assert told["state"] == "failed", told
    assert [job["how"] for job in told["jobs"]] == ["out of memory"]
    assert "ran out of memory" in told["reason"]
    assert '`memory = "1 GB"` in [resources]' in told["hint"]
    said = voyager.types("explain", run).output
    assert "ran out of memory" in " ".join(said.split())
    assert told["hint"] in " ".join(said.split())


SLEEPER = """
import time
time.sleep(6)
for step in range(12):
    print("step", step, flush=True)
    time.sleep(1)
"""


def test_what_happens_to_a_run_reaches_who_waits_within_seconds(voyager):
    voyager.write("train.py", SLEEPER)
    voyager.write("rabaska.toml", GREEDY_SETTINGS.replace("jobs = 3", "jobs = 1"))
    run = voyager.run("--no-doctor")
    waiting = voyager.start("wait", run)
    loading = voyager.until(lambda told: told["view"]["now"].startswith("loading"), run, 30)

    heard = {line.strip(): time.time() for line in waiting.stderr}
    waiting.communicate(timeout=60)
    told = voyager.status(run)

    assert loading["jobs"][0]["phase"]["phase"] == "loading"
    ended = told["jobs"][0]["ended"]
    assert heard["job 1 ended: finished"] - ended < 3, (heard, ended)
    assert told["jobs"][0]["phase"]["spent"]["training"] > 8
    assert told["view"]["used"]["memory_asked"] == 300 * 10**6
