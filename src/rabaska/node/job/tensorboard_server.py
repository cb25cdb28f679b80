"""TensorBoard on a socket that only its user can open: it listens to no port.

`tensorboard SOCKET OPTION…` runs in a Python that has TensorBoard, until standard input ends.
TensorBoard itself knows ports alone, asks nobody who they are, and lets a second program of its
own listen to another port, unless it is told not to.
"""

import importlib
import os
import sys
import threading
from typing import Any, List

# Several event files grow in one folder: those of a chain of jobs, and those that come late.
_OPTIONS = ["--load_fast=false", "--reload_multifile=true"]
_USUAL = ["--reload_interval=2"]
MISSING = 69  # the exit code where this Python has no TensorBoard


def main(argv: List[str]) -> int:
    path, options = argv[0], argv[1:]
    sys.argv[1:] = []  # some libraries look there for options of their own
    try:
        program = importlib.import_module("tensorboard.program")
        plugins = importlib.import_module("tensorboard.default").get_plugins()
    except ImportError as problem:
        sys.stderr.write("{}\n".format(problem))
        return MISSING
    board = program.TensorBoard(plugins, server_class=lambda app, _flags: server(app, path))
    board.configure(["tensorboard"] + _USUAL + options + _OPTIONS)
    threading.Thread(target=_end_with_input, name="input", daemon=True).start()
    board._make_server().serve_forever()
    return 0


def server(app: Any, path: str) -> Any:
    """Serves `app` on a socket of mode 0600; werkzeug comes with TensorBoard."""
    serving = importlib.import_module("werkzeug.serving")

    class Handler(serving.WSGIRequestHandler):  # type: ignore[misc, name-defined]
        def log_request(self, *_: Any) -> None:
            pass

    before = os.umask(0o177)
    try:
        return serving.ThreadedWSGIServer("unix://" + path, 0, app, handler=Handler)
    finally:
        os.umask(before)


def _end_with_input() -> None:
    """Whoever started us holds the other end: when they are gone, so are we."""
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(0)
