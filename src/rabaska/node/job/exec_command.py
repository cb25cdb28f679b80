"""A command beside a running program: on its node, in its folder, with its environment.

`exec FOLDER JOB -- COMMAND…`
"""

import os
from typing import Dict, List, Optional

from .. import processes
from ..record.events import say
from ..record.run_folder import RunFolder
from . import container, program_process


def main(argv: List[str], kept: Optional[Dict[str, str]] = None) -> int:
    run, job, words = RunFolder(os.path.realpath(argv[0])), int(argv[1]), argv[3:]
    found = _program(program_process.tag(run, job))
    if found is None:
        say("the program of {} is not running on this node".format(run.name))
        return 1
    environment = _environment(found)
    # What carries the tag is ended with the program; a command beside it has its own end.
    environment.pop(program_process.TAG, None)
    words, environment = container.beside(environment, words)
    environment.update(kept or {})
    os.chdir(os.readlink("/proc/{}/cwd".format(found)))
    try:
        os.execvpe(words[0], words, environment)
    except OSError as problem:
        say("cannot start {}: {}".format(words[0], problem.strerror))
        return 127


def _program(tag: str) -> Optional[int]:
    """The oldest process of the program: those it starts later may have changed folder."""
    return min(processes.carrying(program_process.TAG, tag), default=None)


def _environment(pid: int) -> Dict[str, str]:
    with open("/proc/{}/environ".format(pid), "rb") as stream:
        entries = os.fsdecode(stream.read()).split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)
