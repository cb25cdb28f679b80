"""The short way of `rabaska status`: what it does not wait for."""

import subprocess
import sys

ON_THE_WAY = """
import sys
import rabaska.cli.quick_status, rabaska.cli.terminal
import rabaska.steps.read_status, rabaska.knowledge.queue_reasons
import rabaska.remote.login_node, rabaska.schedulers.slurm, rabaska.schedulers.local
"""


def printed_after_it(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", ON_THE_WAY + code], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_what_takes_long_to_import_is_left_out():
    heavy = "print(*{'click', 'pydantic', 'rich', 'subprocess'} & set(sys.modules))"

    assert printed_after_it(heavy) == []
