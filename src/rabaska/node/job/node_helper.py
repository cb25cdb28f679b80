"""A helper process on one node of a job: runs what the first node sends."""

import hmac
import json
import os
import select
import signal
import socket
import subprocess
import sys
from typing import Any, Dict, List, Mapping

from .. import processes
from . import program_process
from .node_messages import (
    HELLO,
    INPUT,
    NO_MORE,
    OUTPUT,
    RESULT,
    WORK,
    Frame,
    HelperConnection,
    proof,
)

PROCESS, LOCAL, NODE = "RABASKA_PROCESS", "RABASKA_PROCESS_OF_NODE", "RABASKA_NODE"

_PATIENCE = 60.0  # seconds to reach the first node
_LOOK = 0.1
_LONGEST_LINE = 65536  # bytes that are held back until their line is complete
# What the scheduler told this node alone.
_OWN = ("HOSTNAME", "PBS_NODENUM", "PBS_TASKNUM", "PBS_VNODENUM")


def main(argv: List[str]) -> int:
    if len(argv) != 4:
        sys.stderr.write("usage: node-helper HOST PORT FILE PLACE\n")
        return 2
    with open(argv[2]) as stream:
        told = json.load(stream)
    key, work = told["key"], dict(told["work"], node=int(argv[3]))
    for name in ("SIGTERM", "SIGUSR1", "SIGUSR2", "SIGINT", "SIGHUP"):
        # Schedulers signal whole jobs; the program has its own answer, and is waited for.
        signal.signal(getattr(signal, name), lambda *_: None)
    plain = socket.create_connection((argv[0], int(argv[1])), _PATIENCE)
    plain.settimeout(None)
    connection = HelperConnection(plain)
    nonce = os.urandom(16).hex()
    hello = {"place": int(argv[3]), "nonce": nonce, "proof": proof(key, HELLO, nonce)}
    connection.send(HELLO, json.dumps(hello).encode())
    processes.become_reaper()
    return LocalTasks(connection, proof(key, WORK, nonce), work).serve()


class LocalTasks:
    """The processes of this node."""

    def __init__(
        self, connection: HelperConnection, expected: str, work: Mapping[str, Any]
    ) -> None:
        self._connection = connection
        self._expected = expected  # what only our `on-nodes` can say
        self._work = work
        self._members = []  # type: List[subprocess.Popen[bytes]]
        self._outputs = {}  # type: Dict[int, int]  # where to read from -> the member's pid
        self._unended = {}  # type: Dict[int, bytes]  # of a line that is not complete yet
        self._begun = False

    def serve(self) -> int:
        try:
            while not self._begun or self._members:
                if not self._look():
                    break
            self._connection.end()
        except OSError:
            pass  # the connection broke: nobody is there to tell
        finally:
            processes.end_all(lambda: processes.descendants(os.getpid()), 0)
        return 0

    def _look(self) -> bool:
        """Pass on what there is; False when `on-nodes` is gone."""
        ready, _, _ = select.select([self._connection] + list(self._outputs), [], [], _LOOK)
        for descriptor in [one for one in ready if isinstance(one, int)]:
            self._pass_output(descriptor)
        if self._connection in ready:
            frames = self._connection.received()
            if frames is None:
                return False
            for frame in frames:
                self._handle(frame)
        for member in [one for one in self._members if one.poll() is not None]:
            self._report_end(member)
        return True

    def _handle(self, frame: Frame) -> None:
        if frame.kind == WORK:
            if not hmac.compare_digest(frame.content, self._expected.encode("ascii")):
                raise OSError("somebody else listens where `on-nodes` did")
            if not self._begun:
                self._start(self._work)
        elif frame.kind == INPUT:
            for member in self._members:
                _write(member, frame.content)
        elif frame.kind == NO_MORE:
            for member in self._members:
                _close_input(member)

    def _start(self, work: Mapping[str, Any]) -> None:
        self._begun = True
        folder = work["folder"] if os.path.isdir(work["folder"]) else "/"
        for number in range(work["tasks"]):
            environment = _environment(work, number)
            reading, writing = os.pipe()
            try:
                member = program_process.start_below(
                    work["words"], environment, folder, subprocess.PIPE, writing
                )
            except program_process.NotStarted as problem:
                os.close(reading)
                self._result(problem.code, problem.reason)
                continue
            finally:
                os.close(writing)
            self._members.append(member)
            self._outputs[reading] = member.pid

    def _pass_output(self, descriptor: int) -> None:
        """Pass on lines, so that those of several processes do not mix."""
        piece = os.read(descriptor, 65536)
        lines = self._unended.pop(descriptor, b"") + piece
        if not piece:
            del self._outputs[descriptor]
            os.close(descriptor)
        elif len(lines) < _LONGEST_LINE:
            end = max(lines.rfind(b"\n"), lines.rfind(b"\r")) + 1
            lines, self._unended[descriptor] = lines[:end], lines[end:]
        if lines:
            self._connection.send(OUTPUT, lines)

    def _report_end(self, member: "subprocess.Popen[bytes]") -> None:
        self._members.remove(member)
        _close_input(member)
        for descriptor in [one for one, pid in self._outputs.items() if pid == member.pid]:
            # What it left in the pipe; a process that it left behind may hold it open for ever.
            while descriptor in self._outputs and select.select([descriptor], [], [], 0)[0]:
                self._pass_output(descriptor)
            if self._unended.get(descriptor):
                self._connection.send(OUTPUT, self._unended.pop(descriptor))
        code = member.returncode
        self._result(code if code >= 0 else 128 - code, "")

    def _result(self, code: int, why: str) -> None:
        self._connection.send(RESULT, json.dumps({"code": code, "why": why}).encode())


def _environment(work: Mapping[str, Any], number: int) -> Dict[str, str]:
    environment = dict(work["environment"])
    environment.update({name: os.environ[name] for name in _OWN if name in os.environ})
    environment[NODE] = str(work["node"])
    environment[LOCAL] = str(number)
    environment[PROCESS] = str(work["node"] * work["tasks"] + number)
    return environment


def _write(member: "subprocess.Popen[bytes]", content: bytes) -> None:
    try:
        if member.stdin is not None and not member.stdin.closed:
            member.stdin.write(content)
            member.stdin.flush()
    except OSError:
        pass  # it does not listen any more


def _close_input(member: "subprocess.Popen[bytes]") -> None:
    try:
        if member.stdin is not None:
            member.stdin.close()
    except OSError:
        pass
