"""A program that finished, and whose results found no room: nobody is told that all is well."""

import json
import subprocess

import pytest
from tests import disks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

RESULTS_MISSING = 18  # the exit code of `wait` and `fetch`

TRAIN = """
with open("model_final.bin", "wb") as stream:
    stream.write(bytes(range(256)) * 80_000)
print("saved model_final.bin, finished")
"""

SETTINGS = """
name = "tiny"
command = "python train.py"

[environment.variables]
RABASKA_KEEP_SECONDS = "1"
"""


def test_a_run_whose_results_found_no_room_is_not_finished_and_can_be_resumed(user):
    user.write("train.py", TRAIN)
    user.write("rabaska.toml", SETTINGS)

    with disks.small_disk(user.home, "16m"):
        user.types("run", "--wait", code=RESULTS_MISSING)
        told = user.status()
        waited = user.types("wait", code=RESULTS_MISSING).output
        fetched = user.types("fetch", code=RESULTS_MISSING).errors
        enlarge = ["mount", "-o", "remount,size=64m", user.home]
        subprocess.run(enlarge, check=True)
        user.types("resume")
        user.types("wait")
        after = user.status()
        folder = json.loads(user.types("fetch", "--json").output)["folder"]

    assert told["state"] == "failed"
    assert told["reason"].startswith("the program finished, but 1 file could not be kept")
    assert "model_final.bin: No space left on device" in told["reason"]
    assert "`rabaska resume " in told["hint"]
    assert "model_final.bin" in waited
    assert "model_final.bin" in fetched
    assert after["state"] == "finished"
    with open(f"{folder}/output/model_final.bin", "rb") as stream:
        assert len(stream.read()) == 20_480_000
