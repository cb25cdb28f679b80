"""A command on every node of a job, where the scheduler has no srun that would do it.

`on-nodes --reach HOW [--nodes N] [--tasks T] -- COMMAND…`

It behaves like srun: standard input is passed on to every process, what they print is printed here,
and when one process fails the others are ended, and its exit code is ours. The scheduler's own way
(`pbsdsh`, `qrsh -inherit`) or ssh only has to start a helper on each node, which connects back:
pbsdsh gives neither input nor output.
"""

import argparse
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from typing import Any, Dict, List, Optional, Tuple

from .. import own_program
from ..record.chain_rule import GO_ON_EXIT_CODE
from ..record.events import say
from . import node_list
from .key_file import key_file
from .node_list import JobNode, NotReached
from .node_messages import (
    HELLO,
    INPUT,
    LONGEST_HELLO,
    NO_MORE,
    OUTPUT,
    RESULT,
    WORK,
    Frame,
    HelperConnection,
    is_proof,
    proof,
)
from .program_process import STOP

_PATIENCE = 120.0  # seconds for nodes that do not answer
_LAST_WORDS = 10.0  # seconds for what was started to end
_SAVING = 60.0  # seconds to end like one that asked to be started again: it may still be saving
_LOOK = 0.1
_FAILED = 1
_MOST_UNPROVEN = 64  # ours say who they are at once; `select` cannot watch a thousand


def main(argv: List[str]) -> int:
    parser = argparse.ArgumentParser(prog="on-nodes")
    parser.add_argument("--reach", default="")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--tasks", type=int, default=1)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args(argv)
    try:
        hosts = node_list.several(options.reach, socket.gethostname(), options.nodes)
        return CommandOnNodes(hosts, options.reach, options.tasks, options.command).run()
    except NotReached as problem:
        say(str(problem))
        return _FAILED


class CommandOnNodes:
    """One command on its way to every node, and what comes back."""

    def __init__(
        self,
        hosts: List[JobNode],
        reach: str,
        tasks: int,
        command: List[str],
        first_is_here: bool = True,
    ) -> None:
        self._hosts = hosts
        self._reach = reach
        self._tasks = tasks
        self._command = command
        self._first_is_here = first_is_here
        self._helpers = {}  # type: Dict[int, HelperConnection]  # by the place in `hosts`
        self._nonces = {}  # type: Dict[int, str]
        self._unproven = []  # type: List[HelperConnection]  # who has not said the key yet
        self._starters = {}  # type: Dict[int, subprocess.Popen[bytes]]
        self._left = dict.fromkeys(range(len(hosts)), tasks)  # processes, by node
        self._code = 0
        self._input = True
        self._asked = False  # to stop, by what came on the input

    def run(self) -> int:
        for name in ("SIGTERM", "SIGUSR1", "SIGUSR2", "SIGINT", "SIGHUP"):
            signal.signal(getattr(signal, name), lambda *_: None)
        with _listener(self._others()) as listener:
            try:
                with key_file(self._work()) as (path, self._key):
                    self._start_helpers(listener.getsockname(), path)
                    self._wait_for_helpers(listener)
                self._relay()
            finally:
                self._close()
        return self._code

    def _others(self) -> List[str]:
        """The nodes that must reach this one."""
        return [host.name for host in self._hosts[1 if self._first_is_here else 0 :]]

    def _start_helpers(self, address: Tuple[str, int], path: str) -> None:
        for number, host in enumerate(self._hosts):
            here = number == 0 and self._first_is_here
            words = [sys.executable, own_program.own_path(), "node-helper"]
            words += [address[0], str(address[1]), path, str(number)]
            if not here:
                search = os.environ.get("PATH", "")
                words = node_list.starting(self._reach, host, words, search)
            try:
                self._starters[number] = subprocess.Popen(words, stdin=subprocess.DEVNULL)
            except OSError as problem:
                raise NotReached("{} cannot be reached: {}".format(host.name, problem))

    def _wait_for_helpers(self, listener: socket.socket) -> None:
        """Wait until there is a helper on every node."""
        give_up = time.monotonic() + _PATIENCE
        while len(self._helpers) < len(self._hosts):
            self._check_starters()
            if time.monotonic() > give_up:
                raise NotReached("{} did not answer".format(self._missing()))
            listened = [listener, *self._unproven]  # type: List[Any]
            ready, _, _ = select.select(listened, [], [], _LOOK)
            for newcomer in [one for one in self._unproven if one in ready]:
                self._check_hello(newcomer)
            if listener in ready:
                self._accept(listener)
        for number, connection in self._helpers.items():
            connection.send(WORK, proof(self._key, WORK, self._nonces[number]).encode("ascii"))

    def _accept(self, listener: socket.socket) -> None:
        try:
            self._unproven.append(HelperConnection(listener.accept()[0], LONGEST_HELLO))
        except OSError:
            return  # gone again
        if len(self._unproven) > _MOST_UNPROVEN:
            self._unproven.pop(0).close()  # the one that has been silent for longest

    def _check_starters(self) -> None:
        for number, starter in self._starters.items():
            code = starter.poll()
            if number not in self._helpers and code not in (None, 0):
                name = self._hosts[number].name
                raise NotReached("{} could not be reached: exit code {}".format(name, code))

    def _missing(self) -> str:
        lacking = set(range(len(self._hosts))) - set(self._helpers)
        return ", ".join(self._hosts[number].name for number in sorted(lacking))

    def _check_hello(self, connection: HelperConnection) -> None:
        frames = connection.received()
        if frames == []:
            return
        self._unproven.remove(connection)
        who = _who(frames[0], self._key) if frames else None
        if who is None or who[0] in self._helpers:
            connection.close()
        else:
            place, nonce = who
            connection.trust()
            self._nonces[place] = nonce
            self._helpers[place] = connection

    def _work(self) -> Dict[str, Any]:
        return {
            "words": self._command,
            "environment": dict(os.environ),
            "folder": os.getcwd(),
            "tasks": self._tasks,
        }

    def _relay(self) -> None:
        """Pass on input and output until every process has ended, or one failed."""
        give_up = None  # type: Optional[float]
        while any(self._left.values()):
            if self._code and give_up is None:
                give_up = time.monotonic() + self._patience()
            if give_up is not None and time.monotonic() >= give_up:
                break
            listened = list(self._helpers.values())  # type: List[Any]
            ready, _, _ = select.select(listened + ([0] if self._input else []), [], [], _LOOK)
            if 0 in ready:
                self._pass_input()
            for number, connection in list(self._helpers.items()):
                if connection in ready:
                    self._read_from(number, connection)

    def _patience(self) -> float:
        """Seconds that the other processes have after one ended with a code that is not 0.

        Those that were asked to stop save, each for as long as it takes: who asked them ends them.
        """
        if self._asked:
            return float("inf")
        return _SAVING if self._code == GO_ON_EXIT_CODE else 0.0

    def _pass_input(self) -> None:
        piece = os.read(0, 65536)
        self._input = bool(piece)
        self._asked = self._asked or piece == STOP
        for connection in self._helpers.values():
            connection.send(INPUT, piece) if piece else connection.send(NO_MORE)

    def _read_from(self, number: int, connection: HelperConnection) -> None:
        frames = connection.received()
        if frames is None:
            self._helpers.pop(number).close()
            if self._left[number]:
                say("lost contact with {}".format(self._hosts[number].name))
                self._code = self._code or _FAILED
            return
        for frame in frames:
            if frame.kind == OUTPUT:
                _print(frame.content)
            elif frame.kind == RESULT:
                self._left[number] -= 1
                ended = json.loads(frame.content.decode("ascii"))
                if ended["why"]:
                    say("{}: {}".format(self._hosts[number].name, ended["why"]))
                self._code = self._code or int(ended["code"])

    def _close(self) -> None:
        for connection in list(self._helpers.values()) + self._unproven:
            connection.close()
        give_up = time.monotonic() + _LAST_WORDS
        for starter in self._starters.values():
            try:
                starter.wait(max(0.0, give_up - time.monotonic()))
            except subprocess.TimeoutExpired:
                starter.kill()
                starter.wait()


def _who(hello: Frame, key: str) -> Optional[Tuple[int, str]]:
    """Which node a helper is on, and its nonce; None for somebody who does not know the key."""
    try:
        told = json.loads(hello.content.decode("ascii"))
        place, nonce = int(told["place"]), str(told["nonce"])
        ours = hello.kind == HELLO and is_proof(told["proof"], key, HELLO, nonce)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return (place, nonce) if ours else None


def _listener(others: List[str]) -> socket.socket:
    """Listens where the other nodes of the job reach this one, and nowhere else."""
    listener = socket.socket()
    try:
        listener.bind((_address_for(others[0]) if others else "127.0.0.1", 0))
        listener.listen(len(others) + _MOST_UNPROVEN)
    except OSError as problem:
        listener.close()
        raise NotReached("this node has no address for {}: {}".format(others[0], problem))
    return listener


def _address_for(host: str) -> str:
    """Ours as `host` sees it; its own name may stand for 127.0.1.1. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))
        return str(probe.getsockname()[0])


def _print(content: bytes) -> None:
    while content:
        content = content[os.write(1, content) :]
