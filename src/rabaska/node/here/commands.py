"""The words `here submit`, `more`, `marks`, `name`, `status` and `cancel`: text in, text out."""

import argparse
import os
import re
import sys
import time
import uuid
from typing import List, Optional, Tuple

from .. import files
from . import keeper, locks
from . import queue as queues
from .directives import Refused, Requested, output_path, read
from .elements import elements, line_of
from .queue import Queue, QueuedJob
from .slots import capacity, check, sweep


def main(arguments: List[str]) -> int:
    """Run one command and return its exit code; a refusal is one plain line on stderr and 1."""
    options = _parser().parse_args(arguments)
    before = os.umask(0o077)  # of the keeper too; a job's script gets the user's own
    try:
        if not options.queue:
            raise Refused("no queue is named; give --queue FOLDER or set RABASKA_QUEUE")
        queue = Queue(os.path.abspath(options.queue))
        queues.make(queue)
        _sweep_unless_busy(queue)
        if options.command == "submit":
            return submit(queue, options.script, options.mark)
        if options.command == "marks":
            return marks(queue)
        if options.command == "name":
            return name(queue, options.job)
        if options.command == "more":
            return more(queue, options.job, options.mark)
        if options.command == "status":
            return status(queue, options.jobs)
        return cancel(queue, options.jobs, rest=options.rest)
    except (Refused, OSError) as problem:
        print("here: {}".format(problem), file=sys.stderr)
        return 1
    finally:
        os.umask(before)


def submit(queue: Queue, script: str, mark: str = "") -> int:
    """Queue a script, start its keeper, and print `here job <id>`."""
    text = _text_of(script)
    requested = read(os.fsdecode(text))  # as paths are, so that a path in it names the same file
    machine = capacity(queue.path)
    check(machine, requested.gpus)
    _make_output_folder(requested)
    number = queues.new_id(queue)
    # Locked before the record appears: who finds the record finds its keeper alive.
    lock = locks.hold(queue.keeper(number))
    assert lock is not None
    job = _job(number, requested, [machine.gpu(slot) for slot in range(machine.slots)], mark)
    files.write_whole(queue.script(number), text)
    queues.write_job(queue, job)
    queues.activate(queue, number)
    keeper.launch(queue, job, lock)
    print("here job {}".format(number))
    return 0


def more(queue: Queue, number: int, mark: str) -> int:
    """Let a job that is not over run its script once more, after all else; print its number."""
    with locks.held(queue.line):
        # A keeper that has nothing left to do retires its job while it holds the line.
        active = number in queue.active() and queues.keeper_lives(queue, number)
        if not active:
            raise Refused("job {} has ended; nothing can follow it".format(number))
        queues.add_element(queue, number, re.sub(r"\W", "-", mark))
    print("here job {}".format(number))
    return 0


def marks(queue: Queue) -> int:
    """Print a line for each mark under which something was submitted: its job, and the mark."""
    for number in queue.jobs():
        job = queues.read_job(queue, number)
        for mark in queues.marks(queue, job) if job else []:
            print("{} {}".format(number, mark))
    return 0


def name(queue: Queue, number: int) -> int:
    """Print what the job is called, whatever the locale."""
    job = queues.read_job(queue, number)
    if job is None and not os.path.exists(queue.record(number)):
        raise Refused("there is no job {}".format(number))
    if job is not None:  # else its record is damaged
        sys.stdout.buffer.write(job.name.encode("utf-8", "backslashreplace") + b"\n")
    return 0


def status(queue: Queue, wanted: List[str]) -> int:
    """Print one line for each element of the jobs named, or of every job."""
    for word in wanted or [str(number) for number in queue.jobs()]:
        job, element = _parts(word)
        found = [] if job is None else elements(queue, job)
        lines = [line_of(one) for one in found if element is None or one.name == word]
        for line in lines:
            # Whatever the locale: under LANG=C an accent in a path would stop the whole answer.
            sys.stdout.buffer.write(line.encode("utf-8", "backslashreplace") + b"\n")
        if not lines:
            print("here: there is no job {}".format(word), file=sys.stderr)
    return 0


def cancel(queue: Queue, wanted: List[str], rest: bool = False) -> int:
    """Ask for the end of each job or element named; 1 when one of them does not exist.

    `rest` means not the elements that are named, but those of the same job that come after them.
    """
    missing = 0
    for word in wanted:
        job, element = _parts(word)
        if job is None or not os.path.exists(queue.record(job)):
            print("here: there is no job {}".format(word), file=sys.stderr)
            missing = 1
            continue
        for each in _after(queue, job, element) if rest else [element]:
            queues.ask_to_cancel(queue, job, each)
    return missing


def _after(queue: Queue, job: int, element: Optional[int]) -> List[int]:
    found = queues.read_job(queue, job)
    return (
        [] if found is None else list(range((element or 0) + 1, queues.elements(queue, found) + 1))
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="here", description="Run jobs on this computer.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.required = True
    for name, what in (
        ("submit", "queue a job script and print the number of the job"),
        ("more", "let a job that is not over run its script once more"),
        ("marks", "list the marks of submissions, and their jobs"),
        ("name", "print the name of a job"),
        ("status", "show the status of jobs, one line per element"),
        ("cancel", "end jobs, or keep them from starting"),
    ):
        command = commands.add_parser(name, description=what)
        command.add_argument("--queue", default=os.environ.get("RABASKA_QUEUE", ""))
        if name == "marks":
            continue
        if name == "submit":
            command.add_argument("--mark", default="", help="what to call the submission")
            command.add_argument("script")
        elif name == "name":
            command.add_argument("job", type=int)
        elif name == "more":
            command.add_argument("--mark", required=True, help="the same mark counts once")
            command.add_argument("job", type=int)
        else:
            command.add_argument("jobs", nargs="*" if name == "status" else "+")
        if name == "cancel":
            command.add_argument("--rest", action="store_true", help="what comes after them")
    return parser


def _sweep_unless_busy(queue: Queue) -> None:
    with locks.held(queue.line, wait=False) as ours:
        if ours:  # else somebody is sweeping or taking slots right now
            sweep(queue)


def _text_of(script: str) -> bytes:
    try:
        with open(script, "rb") as stream:
            return stream.read()
    except OSError as problem:
        raise Refused("the script cannot be read: {}".format(problem))


def _make_output_folder(requested: Requested) -> None:
    folder = os.path.dirname(output_path(requested.output, "0_0"))
    if folder:
        os.makedirs(folder, exist_ok=True)


def _job(number: int, requested: Requested, slots: List[str], mark: str) -> QueuedJob:
    return QueuedJob(
        id=number,
        folder=os.getcwd(),
        token=uuid.uuid4().hex,
        slots=slots,
        submitted=time.time(),
        mark=mark,
        **requested._asdict(),
    )


def _parts(word: str) -> Tuple[Optional[int], Optional[int]]:
    """`12` and `12_3` as numbers; (None, None) for a word that names no job."""
    job, _, element = word.partition("_")
    if not job.isdigit() or (element and not element.isdigit()):
        return None, None
    return int(job), int(element) if element else None
