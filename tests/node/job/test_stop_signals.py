"""When a program is asked to stop, whatever becomes of the clock of the day."""

import os
import time
from pathlib import Path
from typing import Any

from rabaska.node.job.stop_signals import ASK_AGAIN, Deadline
from rabaska.node.record import chain_rule

# Loaded by the agent's Python before anything else: a clock that somebody sets.
SETTABLE_CLOCK = """
import os, time
_real = time.time
def _shown():
    try:
        return _real() + float(open(os.environ["CLOCK"]).read() or 0)
    except OSError:
        return _real()
time.time = _shown
"""

SLOW = """
import time
for step in range(20):
    print("step", step, flush=True)
    time.sleep(0.1)
"""


def test_a_clock_that_is_set_ahead_ends_no_job(agents_for: Any, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "first/sitecustomize.py").write_text(SETTABLE_CLOCK)
    clock = tmp_path / "clock"
    agents = agents_for(SLOW)
    agent = agents.start(CLOCK=str(clock), PYTHONPATH=str(tmp_path / "first"))
    while not os.path.exists(agents.run.log(1)) or "step 2" not in agents.log(1):
        time.sleep(0.02)

    clock.write_text("3600")
    agent.wait(30)

    assert agents.ended(1).how == chain_rule.FINISHED


def left_in_the_end(deadline: Deadline) -> float:
    while deadline.left() == 30.0:  # as long as it asks
        time.sleep(0.02)
    return deadline.left()


def test_after_a_suspension_the_scheduler_is_asked_how_long_is_left() -> None:
    slept = [0.0]
    again = {ASK_AGAIN: "date --date='100 seconds' +%Y-%m-%dT%H:%M:%S"}
    deadline = Deadline(time.monotonic() - 5.0, 10.0, lambda: slept[0], again)

    before = deadline.left()
    slept[0] = 60.0

    assert before <= 0
    assert deadline.left() > 0  # while it asks
    assert 80.0 < left_in_the_end(deadline) <= 90.0


def test_where_nobody_answers_the_time_of_a_suspension_counts() -> None:
    slept = [0.0]
    for again in ("", "false", "no-such-command", "echo N/A"):
        deadline = Deadline(time.monotonic() - 5.0, 10.0, lambda: slept[0], {ASK_AGAIN: again})

        slept[0] += 60.0

        assert left_in_the_end(deadline) <= 0
