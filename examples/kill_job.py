"""Kill a job of the newest run with SIGKILL: the second one that gets as far as training."""

import os
import signal
import time

import rabaska


def main() -> None:
    run = rabaska.status()
    while not run.state.over:
        trained = [job for job in run.jobs if job.last_step]
        if len(trained) > 1 and not trained[-1].how and killed(trained[-1].pid):
            print(f"kill -9 {trained[-1].pid}  (job {trained[-1].number} of {run.name})")
            return
        time.sleep(0.3)
        run = rabaska.status()
    print(f"{run.name} is {run.state.value} already: there was no second job to kill")


def killed(pid: int) -> bool:
    """Whether the process was there to be killed: its job may have ended meanwhile."""
    time.sleep(3)
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


main()
