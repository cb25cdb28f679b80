"""The keeper: one process for each job, which runs the job's elements one after another."""

import fcntl
import os
import shlex
import signal
import subprocess
import sys
import time
import traceback
from typing import Any, Dict, List, NamedTuple, Optional

from .. import own_program, private_files, processes
from . import elements, locks, slots
from . import queue as queues
from .directives import output_path
from .queue import TAG, Queue, QueuedJob

_LOOK = 0.1  # seconds between two looks at the running script
_SHUT_DOWN = "this computer was shutting down"

Begun = Dict[str, Any]


class ElementEnd(NamedTuple):
    state: str
    reason: str
    exit_code: Optional[int] = None


class ShutdownSignal:
    """Remembers that the keeper was told to stop, as every process is at a shutdown."""

    def __init__(self) -> None:
        self.received = False

    def listen(self) -> None:
        # Handlers, not SIG_IGN: what is ignored here would be ignored by every job as well.
        signal.signal(signal.SIGTERM, self._stop)
        for number in (signal.SIGHUP, signal.SIGINT):
            signal.signal(number, lambda *_: None)

    def _stop(self, *_: Any) -> None:
        self.received = True


def launch(queue: Queue, job: QueuedJob, lock: int) -> None:
    """Start the keeper of `job` as a process of its own that nothing ties to this terminal.

    It inherits `lock`, so from the first moment to the last the job is known to be kept.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os.close(lock)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    try:
        os.write(lock, "{}\n".format(os.getpid()).encode("ascii"))
        _let_go(queue.file(job.id, "keeper.log"), lock)
        keep(queue, job)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def keep(queue: Queue, job: QueuedJob) -> None:
    """Run every element of the job, then retire it."""
    processes.become_reaper()
    shutdown = ShutdownSignal()
    shutdown.listen()
    element = 0
    while _has(queue, job, element + 1):
        element += 1
        end = _run(queue, job, element, shutdown)
        # After the cleaning: this record is also what frees the slots.
        queues.write_ended(queue, job.id, element, _record(end))
        if shutdown.received:
            break
    queues.retire(queue, job.id)


def _has(queue: Queue, job: QueuedJob, element: int) -> bool:
    """Whether there is such an element; if not, the job is retired, and none can be added."""
    with locks.held(queue.line):
        there = element <= queues.elements(queue, job)
        if not there:
            queues.retire(queue, job.id)
    return there


def _run(queue: Queue, job: QueuedJob, element: int, shutdown: ShutdownSignal) -> ElementEnd:
    """Run one element when its turn comes, and leave nothing of it behind."""

    def give_up() -> bool:
        return shutdown.received or queues.cancel_asked(queue, job.id, element)

    begun = slots.wait_for_slots(queue, job, element, give_up)
    if begun is None and shutdown.received:
        return ElementEnd(elements.NEVER_RAN, _SHUT_DOWN)
    if begun is None:
        return ElementEnd(elements.CANCELLED, "before it began")
    try:
        os.mkdir(begun["local"], 0o700)
        child = _start(queue, job, element, begun)
        return _watch(queue, job, element, child, shutdown)
    except OSError as problem:
        return ElementEnd(elements.FAILED, "it could not be started: {}".format(problem))
    finally:
        processes.end_all(lambda: _members(job), job.grace)
        slots.remove_local(begun["local"])


def _start(queue: Queue, job: QueuedJob, element: int, begun: Begun) -> "subprocess.Popen[bytes]":
    """`bash SCRIPT` in a session of its own, its output straight into the file it asked for."""
    pattern = job.output or queue.file(job.id, "job-%j.out")
    path = os.path.join(job.folder, output_path(pattern, job.element(element)))
    output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        return subprocess.Popen(
            ["bash", queue.script(job.id)],
            cwd=job.folder,
            env=_environment(queue, job, element, begun),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=private_files.restore_umask,  # noqa: PLW1509 (there is one thread)
        )
    finally:
        os.close(output)


def _cancel_rest(queue: Queue, element: str) -> str:
    """What takes the elements after this one out of the queue, as words for a shell."""
    words = [sys.executable, own_program.own_path(), "here", "cancel"]
    return " ".join(map(shlex.quote, [*words, "--queue", queue.path, "--rest", element]))


def _environment(queue: Queue, job: QueuedJob, element: int, begun: Begun) -> Dict[str, str]:
    environment = dict(os.environ)
    environment.update(
        {
            "RABASKA_JOB_ID": job.element(element),
            "RABASKA_LOCAL": begun["local"],
            "RABASKA_KEEPER": str(os.getpid()),
            "RABASKA_CANCEL_REST": _cancel_rest(queue, job.element(element)),
            TAG: job.token,
        }
    )
    environment.pop("RABASKA_JOB_ENDS", None)
    if begun["ends"] is not None:
        environment["RABASKA_JOB_ENDS"] = "{:.3f}".format(begun["ends"])
    gpus = [job.slots[slot] for slot in begun["slots"] if job.slots[slot]]
    if gpus:
        # nvidia-smi counts by bus, CUDA by speed unless it is told otherwise.
        environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    return environment


def _watch(
    queue: Queue,
    job: QueuedJob,
    element: int,
    child: "subprocess.Popen[bytes]",
    shutdown: ShutdownSignal,
) -> ElementEnd:
    began = time.monotonic()
    while True:
        code = child.poll()
        if code is not None:
            return _end_of(code)
        end = None
        if shutdown.received:
            end = ElementEnd(elements.LOST, _SHUT_DOWN)
        elif queues.cancel_asked(queue, job.id, element):
            end = ElementEnd(elements.CANCELLED, "it was cancelled")
        elif job.time and time.monotonic() - began >= job.time:
            end = ElementEnd(elements.TIMEOUT, "it took longer than {:g} s".format(job.time))
        if end is not None:
            return end._replace(exit_code=_stop(job, child))
        processes.reap_adopted(child.pid)
        time.sleep(_LOOK)


def _stop(job: QueuedJob, child: "subprocess.Popen[bytes]") -> Optional[int]:
    """TERM to the script, then to all that is left of it, then KILL: `grace` seconds in all.

    The script comes first because rabaska's agent stands in its place, and knows how its program
    wants to be asked; a program that gets TERM behind the agent's back may die before it saved.
    """
    start = time.monotonic()
    processes.signal_all([child.pid], signal.SIGTERM)
    processes.signal_all([child.pid], signal.SIGCONT)
    while child.poll() is None and time.monotonic() - start < job.grace / 2:
        processes.reap_adopted(child.pid)
        time.sleep(_LOOK)
    left = max(0.0, job.grace - (time.monotonic() - start))
    processes.end_all(lambda: _members(job), left, own=child.pid)
    code = child.poll()
    return None if code is None else _end_of(code).exit_code


def _members(job: QueuedJob) -> List[int]:
    return sorted({*processes.descendants(os.getpid()), *slots.members(job)})


def _end_of(code: int) -> ElementEnd:
    if code == 0:
        return ElementEnd(elements.DONE, "", 0)
    if code > 0:
        return ElementEnd(elements.FAILED, "exit code {}".format(code), code)
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "signal {}".format(-code)
    return ElementEnd(elements.FAILED, "killed by {}".format(name), 128 - code)


def _record(end: ElementEnd) -> Dict[str, Any]:
    return {
        "state": end.state,
        "reason": end.reason,
        "exit": end.exit_code,
        "ended": time.time(),
    }


def _let_go(log: str, lock: int) -> None:
    """Keep no descriptor but `lock`, and no folder that somebody might want to unmount."""
    os.chdir("/")
    # Started with standard input closed, the lock itself may have become descriptor 0.
    lock = fcntl.fcntl(lock, fcntl.F_DUPFD_CLOEXEC, 3)
    for descriptor in (int(name) for name in os.listdir("/dev/fd")):
        if descriptor > 2 and descriptor != lock:
            try:
                os.close(descriptor)
            except OSError:
                pass  # the one that listed the others
    nothing = os.open(os.devnull, os.O_RDONLY)
    log_file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for target, source in ((0, nothing), (1, log_file), (2, log_file)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(log_file)
