"""Kill one job of the newest run with SIGKILL, a few seconds after it began."""

import os
import signal
import sys
import time

import rabaska


def main() -> None:
    wanted = int(sys.argv[1])
    while True:
        run = rabaska.status()
        begun = [job for job in run.jobs if job.number == wanted and job.last_step]
        if begun and not begun[0].how:
            break
        if run.state.over:
            sys.exit(f"{run.name} is {run.state.value} before job {wanted}")
        time.sleep(0.3)
    time.sleep(3)
    print(f"kill -9 {begun[0].pid}  (job {wanted} of {run.name}, after step {begun[0].last_step})")
    os.kill(begun[0].pid, signal.SIGKILL)


main()
