"""Servers in a job: how long they stay."""

import os
import subprocess
import sys
import time

# The clock of the day jumps by a week after a moment; then the job is told to end.
JUMPS = """
import os, signal, threading, time
real, ahead = time.time, [0.0]
time.time = lambda: real() + ahead[0]
def act():
    time.sleep(0.3)
    ahead[0] = 7 * 86400.0
    time.sleep(1.2)
    print("told to end", flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=act, daemon=True).start()
from rabaska.node.job import page_server
page_server.main(["code"])
"""


def test_a_clock_that_is_set_ends_no_session():
    environment = {**os.environ, "RABASKA_DEADLINE": str(time.time() + 3600)}

    done = subprocess.run(
        [sys.executable, "-c", JUMPS], env=environment, capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines()[-1] == "told to end"
