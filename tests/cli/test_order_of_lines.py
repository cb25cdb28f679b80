"""What is said and what is printed stay in order where both go into one pipe."""

import os
import subprocess
import sys


def test_a_table_comes_before_the_note_that_follows_it(tmp_path):
    environment = {**os.environ, "RABASKA_HOME": str(tmp_path), "PYTHONUNBUFFERED": ""}

    done = subprocess.run(
        [sys.executable, "-m", "rabaska", "storage"], env=environment, check=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip

    lines = done.stdout.splitlines()
    assert lines[0].startswith("kept")
    assert lines[-1].startswith("in ")
