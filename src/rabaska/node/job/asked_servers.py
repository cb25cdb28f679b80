"""Servers that somebody asks for while a program runs: started by its job, and ended with it.

Who asks writes `servers/KIND.ask` into the run folder. A server that the command itself started
would end with the connection, and a notebook with it.
"""

import os
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import Dict, Iterator

from .. import files, own_program, private_files, processes
from ..record.events import say
from . import page_server, program_process
from .this_job import Work

KINDS = (page_server.JUPYTER, page_server.TENSORBOARD)
EVERY = 2.0  # seconds between two looks
_LAST = 2.0  # seconds for a server that was told to end


@contextmanager
def answered(work: Work) -> Iterator[None]:
    """Meanwhile, what is asked for is started."""
    over = threading.Event()
    running = {}  # type: Dict[str, subprocess.Popen[bytes]]

    def watch() -> None:
        while not over.wait(EVERY):
            if work.stop_reason() is not None:
                return _tell(running)  # it has as long as the program to leave
            for kind in KINDS:
                try:
                    _look(work, kind, running)
                except (OSError, program_process.NotStarted) as problem:
                    say("{} could not be started: {}".format(kind, problem))
        return None

    thread = threading.Thread(target=watch, name="servers", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        _tell(running)
        for kind, process in running.items():
            _end(work, kind, process)


def _tell(running: "Dict[str, subprocess.Popen[bytes]]") -> None:
    for process in running.values():
        if process.poll() is None:
            process.terminate()


def _end(work: Work, kind: str, process: "subprocess.Popen[bytes]") -> None:
    """End it, and remove what it would have removed: little time may be left."""
    try:
        process.wait(_LAST)
    except subprocess.TimeoutExpired:
        processes.end_all(lambda: processes.descendants(process.pid) + [process.pid], 0)
    try:
        told = files.read_json(work.run.server(kind))
        folder = os.path.dirname(str(told["socket"])) if told else ""
        if folder and not private_files.not_ours(folder):
            shutil.rmtree(folder, ignore_errors=True)
        files.remove_if_there(work.run.server(kind))
    except (OSError, ValueError, KeyError):
        pass  # it removed them itself


def _look(work: Work, kind: str, running: "Dict[str, subprocess.Popen[bytes]]") -> None:
    asked = work.run.server(kind, "ask")
    if work.lease.lost() or not os.path.exists(asked):
        return
    files.remove_if_there(asked)
    if kind in running and running[kind].poll() is None:
        return
    # As `rabaska exec` does it: in the folder, the environment and the image of the program.
    own = [sys.executable, own_program.own_path(), "exec", work.run.path, str(work.job), "--"]
    serve = ["python", "-m", "rabaska.node", "serve", kind]
    descriptor = os.open(
        work.run.server(kind, "log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
    )
    try:
        with work.lease.quiet:
            running[kind] = program_process.start_below(
                own + serve, dict(os.environ), output=descriptor
            )
    finally:
        os.close(descriptor)
