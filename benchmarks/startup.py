"""How long `rabaska --help` takes, beside the start of Python itself."""

import sys
from pathlib import Path

from measuring import medians, processor_seconds
from rows import Row

NAME = "start-up"
TIMES_ALLOWED = 5  # the start of Python


def run(quick: bool) -> list[Row]:
    program = str(Path(sys.executable).with_name("rabaska"))
    cost = medians(
        {
            "help": lambda: processor_seconds([program, "--help"]),
            "pass": lambda: processor_seconds([sys.executable, "-c", "pass"]),
        },
        repeats=7 if quick else 41,
    )
    allowed = TIMES_ALLOWED * cost["pass"]
    return [
        Row(
            work="rabaska --help",
            peer=f"{TIMES_ALLOWED} times python -c pass",
            ours=cost["help"],
            theirs=allowed,
            ratio=allowed / cost["help"],
            at_least=1.0,
        )
    ]
