"""Puts the commands of one stand-in into a folder, for somebody's PATH."""

from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = {
    "pbs": ("qsub", "qstat", "qdel", "qselect"),
    "torque": ("qsub", "qstat", "qdel", "qselect"),
    "moab": ("msub", "showq", "showstart", "checkjob", "canceljob"),
    "sqsub": ("sqsub", "sqjobs", "sqkill"),
}
MODULES = {"sqsub": "sq"}
COMMAND = """\
#!{python}
import sys

sys.path.insert(0, {library!r})
from engine import Queue
from {module} import main

sys.exit(main({program!r}, sys.argv[1:], Queue({spool!r})))
"""

Write = Callable[[str, str], None]  # a path and its content


def install(scheduler: str, folder: str, spool: str, python: str, write: Write) -> None:
    """Write the commands into `folder`; `write` makes them executable where they are to be run."""
    library = f"{folder}/lib"
    for module in HERE.glob("*.py"):
        write(f"{library}/{module.name}", module.read_text())
    for program in PROGRAMS[scheduler]:
        text = COMMAND.format(
            python=python,
            library=library,
            module=MODULES.get(scheduler, scheduler),
            program=program,
            spool=spool,
        )
        write(f"{folder}/{program}", text)
