"""A kernel of IPython that listens to no port: every user of the node could knock there.

`kernel -f FILE` runs what `python -m ipykernel_launcher` would. That one opens a port on loopback,
through which processes that it forks hand it what they print, and another when somebody debugs a
notebook: to that one anybody on the node may connect, and run what they like.
"""

import importlib
import json
import os
import sys
from typing import Any, List

FOLDER = "JUPYTER_RUNTIME_DIR"  # where the sockets are: of its user alone
_DEBUGGER = "debugpy"


def write_kernel(folder: str, python: str) -> None:
    """Make this the kernel of `python` for a server that finds `folder` in JUPYTER_PATH."""
    place = os.path.join(folder, "kernels", "python3")
    os.makedirs(place, 0o700)
    told = {
        "argv": [python, "-m", "rabaska.node", "kernel", "-f", "{connection_file}"],
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "metadata": {"debugger": False},
    }
    with open(os.path.join(place, "kernel.json"), "w") as stream:
        json.dump(told, stream)


def main(argv: List[str]) -> int:
    given = sys.modules.get(_DEBUGGER)
    sys.modules[_DEBUGGER] = None  # type: ignore[assignment]
    try:
        application = importlib.import_module("ipykernel.kernelapp")
        importlib.import_module("ipykernel.debugger")
    finally:
        del sys.modules[_DEBUGGER]
        if given is not None:
            sys.modules[_DEBUGGER] = given
    _without_port(importlib.import_module("ipykernel.iostream").IOPubThread)
    application.launch_new_instance(argv=argv)
    return 0


def _without_port(thread: Any) -> None:
    """Have the pipe of forked processes be a socket; of a version that has none, nothing."""
    if not hasattr(thread, "_setup_pipe_in") or not hasattr(thread, "_setup_pipe_out"):
        return
    zmq = importlib.import_module("zmq")
    stream = importlib.import_module("zmq.eventloop.zmqstream").ZMQStream
    address = "ipc://" + os.path.join(os.environ[FOLDER], "forked-{}".format(os.getpid()))

    def listen(self: Any) -> None:
        self._pipe_uuid, self._pipe_port = os.urandom(16), 0
        pipe = self.socket.context.socket(zmq.PULL)
        pipe.linger = 0
        pipe.bind(address)
        self._pipe_in = stream(pipe, self.io_loop)
        self._pipe_in.on_recv(self._handle_pipe_msg)

    def speak(_self: Any) -> Any:
        context = zmq.Context()  # another one than before the fork
        pipe = context.socket(zmq.PUSH)
        pipe.linger = 3000
        pipe.connect(address)
        return context, pipe

    thread._setup_pipe_in, thread._setup_pipe_out = listen, speak
