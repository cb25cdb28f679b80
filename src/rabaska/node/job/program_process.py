"""The training program as a process: started, watched, asked to stop, and ended whole."""

import errno
import os
import signal
import subprocess
import time
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Set

from .. import environment_variables, private_files, processes
from ..files import Json
from ..record import chain_rule
from ..record.run_folder import RunFolder
from .stop_signals import Stop

TAG = "RABASKA_HOLDS"  # in the environment of everything a program starts; names run and job
STOP = b"stop\n"  # said on the standard input of what listens to it
NOT_FOUND = 127  # as shells say it
NOT_EXECUTABLE = 126

_LOOK = 0.1  # seconds between two looks at the program
_SETTLE = 0.2  # seconds in which a signal that the program got first reaches the agent as well
_LAST_WORDS = 2.0  # seconds for processes that outlive the program
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>
# A shell reports a child that died of signal n as 128 + n.
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGXCPU)

Look = Callable[[], Optional[Stop]]


class NotStarted(Exception):
    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class ProgramEnd(NamedTuple):
    """How the program ended, and why, in words."""

    how: str
    reason: str
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    stop: Optional[Stop] = None  # why it had been asked to stop, if it had
    remedy: str = ""  # what to do about it, where that is known
    missing: Sequence[str] = ()  # files that it left beside its code and that could not be kept
    used: Optional[Json] = None  # what it used of its node (see `used_resources`)


def start(
    words: List[str], folder: str, environment: Dict[str, str], log: str, listens: bool = False
) -> "subprocess.Popen[bytes]":
    """Start `words` in `folder`, with everything it prints going straight into `log`.

    What `listens` is asked to stop through its standard input instead of a signal (`task`).
    """
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    stdin = subprocess.PIPE if listens else subprocess.DEVNULL
    try:
        return start_below(words, environment, folder, stdin, descriptor)
    except NotStarted as problem:
        say_in_log(log, problem.reason)
        raise
    finally:
        os.close(descriptor)


def say_in_log(log: str, text: str) -> None:
    """Say something where anybody looks first, between what the program prints."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, "rabaska: {}\n".format(text).encode("utf-8", "replace"))
    finally:
        os.close(descriptor)


def start_below(
    words: List[str],
    environment: Dict[str, str],
    folder: Optional[str] = None,
    stdin: int = subprocess.DEVNULL,
    output: Optional[int] = None,
) -> "subprocess.Popen[bytes]":
    """Start a process that does not outlive this one."""
    before = private_files.umask_restored(_die_with(os.getpid()), environment)
    try:
        return subprocess.Popen(
            words,
            cwd=folder,
            env=environment,
            stdin=stdin,
            stdout=output,
            stderr=output,
            preexec_fn=before,  # noqa: PLW1509 (the caller holds threads still)
        )
    except OSError as problem:
        raise _not_started(words[0], problem, environment)


def _not_started(word: str, problem: OSError, environment: Dict[str, str]) -> NotStarted:
    if problem.errno == errno.E2BIG:
        why = (
            environment_variables.too_long(environment)
            or "its arguments and variables are too long"
        )
        return NotStarted(NOT_EXECUTABLE, "cannot execute {}: {}".format(word, why))
    if problem.errno == errno.ENOENT:
        return NotStarted(NOT_FOUND, "command not found: {}".format(word))
    return NotStarted(NOT_EXECUTABLE, "cannot execute {}: {}".format(word, problem.strerror))


def _die_with(agent: int) -> Callable[[], None]:
    """What the new process does before it becomes the program, so as not to outlive the agent."""
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        prctl = None  # then the next job ends what is left (`end_left_by`)

    def before() -> None:
        if prctl is not None:
            prctl(_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != agent:
            os._exit(NOT_EXECUTABLE)

    return before


def watch(
    process: "subprocess.Popen[bytes]",
    ask: int,
    look: Look,
    patience: Callable[[], float],
    clock: Callable[[], float] = time.monotonic,
) -> ProgramEnd:
    """Wait for the program's end; when `look` sees a reason, ask it by signal `ask` to stop.

    What has not ended `patience` seconds after that, by `clock`, is killed, with all that it
    started; how many these are is asked when it is asked to stop. A shell dies of the signal that
    its program should have heard: then that is asked, and has the same time.
    """
    asked = None  # type: Optional[Stop]
    kill_at = 0.0
    below = {}  # type: Dict[int, str]
    while process.poll() is None:
        stop = look()
        if stop is not None and asked is None:
            asked, kill_at = stop, clock() + patience()
            if not stop.at_once:
                below = processes.started(processes.descendants(process.pid))
                ask_to_stop(process, ask)
        if asked is not None and (clock() >= kill_at or (stop and stop.at_once)):
            _end(process)
        processes.reap_adopted(process.pid)
        time.sleep(_LOOK)
    if process.returncode == -ask:

        def is_over() -> bool:
            stop = look()
            return clock() >= kill_at or (stop is not None and stop.at_once)

        ask_left(below, ask, is_over)
    return explain_exit(process.returncode, asked)


def ask_left(below: Dict[int, str], number: int, is_over: Callable[[], bool]) -> None:
    """Ask those who were `below` a process that died of the signal itself, and wait for them.

    Only the uppermost, as the program was: what it started, such as loaders of data, is its own.
    """
    asked: Set[int] = set()
    while not is_over():
        left = processes.heads(below)
        if not left:
            return
        processes.signal_all([pid for pid in left if pid not in asked], number)
        asked.update(left)
        processes.reap_adopted(0)
        time.sleep(_LOOK)


def wait_for_left(below: Dict[int, str], is_over: Callable[[], bool]) -> None:
    """The same of those who heard the signal themselves: they are not asked again."""
    ask_left(below, 0, is_over)


def stopped_meanwhile(end: ProgramEnd, told: Look) -> ProgramEnd:
    """`end`, unless the job was `told` to end too late for the agent to ask the program.

    A scheduler signals agent and program together. A program that saves and exits 0 at once is
    not finished, though the agent, which looks now and then, never asked it.
    """
    until = time.monotonic() + _SETTLE
    while end.stop is None:
        stop = told()
        if stop is not None:
            return end._replace(how=stop.how, reason=stop.reason, stop=stop)
        if time.monotonic() >= until:
            break
        time.sleep(_SETTLE / 10)
    return end


def ask_to_stop(process: "subprocess.Popen[bytes]", number: int) -> None:
    if process.stdin is None:
        process.send_signal(number)
        return
    try:
        process.stdin.write(STOP)
        process.stdin.flush()
    except (BrokenPipeError, ValueError):
        pass  # it is ending already


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill the program; on other nodes its tasks do so when their input is over."""
    if _hang_up(process):
        try:
            process.wait(_LAST_WORDS)
        except subprocess.TimeoutExpired:
            pass
    processes.end_tree(process.pid, 0)


def _hang_up(process: "subprocess.Popen[bytes]") -> bool:
    """End the input of what listens to it; False when nothing does any more."""
    if process.stdin is None or process.stdin.closed:
        return False
    try:
        process.stdin.close()
    except BrokenPipeError:
        pass
    return True


def explain_exit(code: int, asked: Optional[Stop]) -> ProgramEnd:
    """What `code` (negative: a signal) means, given whether the program had been asked to stop."""
    exit_code = code if code >= 0 else None
    number = -code if code < 0 else None
    if asked is not None:
        return ProgramEnd(asked.how, asked.reason, exit_code, number, asked)
    if code == 0:
        return ProgramEnd(chain_rule.FINISHED, "the program finished", 0)
    if code == chain_rule.GO_ON_EXIT_CODE:
        return ProgramEnd(chain_rule.ASKED_TO_GO_ON, "the program asked to be started again", code)
    died_of = number if number is not None else code - 128
    if died_of in _FROM_OUTSIDE:
        return ProgramEnd(chain_rule.KILLED, _killed(died_of), exit_code, number)
    if number is not None:
        return ProgramEnd(
            chain_rule.CRASHED, "the program was killed by {}".format(_name(number)), None, number
        )
    return ProgramEnd(chain_rule.CRASHED, "the program ended with exit code {}".format(code), code)


def _killed(number: int) -> str:
    reason = "the program was killed from outside ({})".format(_name(number))
    if number == signal.SIGKILL:
        reason += "; too much memory is the usual cause"
    return reason


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal {}".format(number)


def tag(run: RunFolder, job: int) -> str:
    return "{}#{}".format(run.path, job)


def end_rest(process: "subprocess.Popen[bytes]", tag: str, ours: Optional[int] = None) -> int:
    """End what outlived the program, and say how many processes that were; `ours` is not its."""
    _hang_up(process)
    left = set(processes.descendants(os.getpid())) | set(processes.carrying(TAG, tag))
    left.discard(ours or 0)
    if left:
        processes.end_tree(process.pid, _LAST_WORDS)
        end_left_by(tag)
    return len(left)


def end_left_by(tag: str) -> None:
    """End every process on this machine that carries `tag`: its agent is no more."""
    processes.end_all(lambda: processes.carrying(TAG, tag), 0)
