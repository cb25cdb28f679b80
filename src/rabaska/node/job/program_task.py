"""A task: stands between srun (or the agent) and one process; notes which failed first."""

import argparse
import os
import select
import signal
import socket
import subprocess
import sys
from typing import Callable, List, NamedTuple, Optional

from .. import files, processes
from . import job_vitals, launch, program_process
from .program_process import ProgramEnd, explain_exit


class TaskFailure(NamedTuple):
    host: str
    code: int
    rank: Optional[int] = None  # as srun counts; None for a launcher of several


def note(path: str, code: int, rank: Optional[str]) -> None:
    """Note that a process ended so, by itself; without room on the disk, nobody learns of it."""
    number = int(rank) if rank else None
    try:
        files.append_line(path, dict(TaskFailure(socket.gethostname(), code, number)._asdict()))
    except OSError:
        pass


def first(path: str) -> Optional[TaskFailure]:
    for line in files.read_lines(path):
        if isinstance(line.get("code"), int):
            return TaskFailure(str(line.get("host")), line["code"], line.get("rank"))
    return None


def explained_by_first_failure(end: ProgramEnd, failure: Optional[TaskFailure]) -> ProgramEnd:
    """How the program ended, by the process that failed first; unless it was asked to stop."""
    if failure is None or end.stop is not None:
        return end
    found = explain_exit(failure.code, None)
    who = failure.host if failure.rank is None else "process {0.rank} on {0.host}".format(failure)
    return found._replace(reason="{} failed first: {}".format(who, found.reason))


_LOOK = 0.1  # seconds


def main(argv: List[str]) -> int:
    parser = argparse.ArgumentParser(prog="task")
    parser.add_argument("--signal", default="TERM")
    parser.add_argument("--failures", help="the file that names who failed")
    parser.add_argument("--ranks", action="store_true", help="set RANK and its like from srun's")
    parser.add_argument("--below", action="store_true", help="ask the children of the command")
    parser.add_argument("--node", action="store_true", help="tell torchrun which node this is")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args(argv)
    environment = dict(os.environ)
    if options.ranks:
        environment.update(launch.rank(os.environ))
    if options.node:
        environment.update(launch.node(os.environ))
    disturbed = []  # type: List[int]
    for name in ("SIGTERM", "SIGUSR1", "SIGUSR2", "SIGINT", "SIGHUP"):
        # Slurm signals whole steps; the program has its own answer, and the task waits for it.
        signal.signal(getattr(signal, name), lambda number, _: disturbed.append(number))
    processes.become_reaper()
    try:
        child = program_process.start_below(options.command, environment)
    except program_process.NotStarted as problem:
        sys.stderr.write("rabaska: {}\n".format(problem.reason))
        return problem.code
    number = getattr(signal, "SIG" + options.signal)
    heard = []  # type: List[int]

    def pass_on() -> None:
        heard.append(number)
        ask(child.pid, number, options.below)

    vitals = job_vitals.start_on_other_node(os.environ)
    code = watch(child, pass_on)
    if vitals is not None:
        vitals.end()
    if code < 0 and (heard or disturbed):  # a shell, perhaps: its program has the time to save
        left = processes.started(processes.descendants(os.getpid()))
        again = 0 if disturbed else number
        program_process.ask_left(left, again, lambda: _said(0) == b"")
    processes.end_tree(child.pid, 0)
    code = code if code >= 0 else 128 - code
    if code and options.failures and not disturbed:
        rank = None if options.below else launch.number_of(environment)
        note(options.failures, code, rank)
    return code


def watch(child: "subprocess.Popen[bytes]", ask: Callable[[], None]) -> int:
    """Wait for the child's end, doing meanwhile what the agent says on standard input."""
    listening = True
    while child.poll() is None:
        said = _said(0 if listening else None)
        if said == b"":
            processes.end_tree(child.pid, 0)
            listening = False
        elif said:
            ask()
        processes.reap_adopted(child.pid)
    return child.returncode


def _said(descriptor: Optional[int]) -> Optional[bytes]:
    """What came on the input: b"" when it is over, None when nothing came for a moment."""
    listened = [] if descriptor is None else [descriptor]
    heard, _, _ = select.select(listened, [], [], _LOOK)
    return os.read(0, 4096) if heard else None


def ask(pid: int, number: int, below: bool) -> None:
    """Ask the program to stop.

    `below` a torchrun are the processes that train: it would give them 30 seconds and no more.
    """
    children = processes.children(pid) if below else []
    processes.signal_all(children or [pid], number)
