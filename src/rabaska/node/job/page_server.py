"""A server for a browser inside a job: JupyterLab or TensorBoard, on a socket of its user alone.

`serve KIND [--checkpoint PATH] [OPTION…]` runs in the program's environment, until the server
ends or it is told to. Nothing listens on a port: kernels speak through sockets, too, for what they
print could be read by everybody on the node.
"""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import Dict, List, Optional

from .. import files, private_files
from ..record.events import say
from ..record.run_folder import RunFolder
from . import notebook_kernel

JUPYTER, TENSORBOARD = "jupyter", "tensorboard"
CODE = "code"  # no server at all: the job is there for whoever comes by ssh
MISSING = 69  # the exit code where the environment has no such server
_ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_PLACES = ("/tmp", "/dev/shm")
_STARTING = 300.0  # seconds, from a slow disk
_BEFORE = 5.0  # seconds before the program would be asked to stop
_ENDING = 10.0  # seconds to shut down kernels
# The first that the environment has; the name of the module, and that of its page.
_SERVERS = ("jupyterlab", "notebook", "jupyter_server")


def main(argv: List[str]) -> int:
    kind, options = argv[0], argv[1:]
    environment = dict(os.environ)
    if options[:1] == ["--checkpoint"]:
        environment["RABASKA_CHECKPOINT"], options = options[1], options[2:]
    if kind == CODE:
        return _wait(_leaves(environment))
    run = _run(environment)
    folder = _private_folder()
    try:
        path = os.path.join(folder, "s")
        token = os.urandom(24).hex()
        words = _words(kind, path, folder, options)
        if words is None:
            return MISSING
        os.mkdir(os.path.join(folder, "r"), 0o700)
        environment.update(JUPYTER_TOKEN=token)
        environment[notebook_kernel.FOLDER] = os.path.join(folder, "r")
        notebook_kernel.write_kernel(os.path.join(folder, "k"), sys.executable)
        paths = [os.path.join(folder, "k"), environment.get("JUPYTER_PATH", "")]
        environment["JUPYTER_PATH"] = os.pathsep.join(filter(None, paths))
        environment.pop("JUPYTER_PREFER_ENV_PATH", None)
        return _serve(run, kind, words, environment, {"socket": path, "token": token})
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _leaves(environment: Dict[str, str]) -> float:
    """When we leave by ourselves: a job that is told to end would count as one with work left.

    By the monotonic clock: that of the day may be set, and kernels would be lost.
    """
    deadline = float(environment.get("RABASKA_DEADLINE") or 0)
    left = deadline - _BEFORE - time.time() if deadline else float("inf")
    return time.monotonic() + left


def _wait(leaves: float) -> int:
    """Until the job is told to end, or its time limit is near."""
    ends = []  # type: List[int]
    for number in _ENDS:
        signal.signal(number, lambda number, _frame: ends.append(number))
    say("ready")
    while not ends and time.monotonic() < leaves:
        time.sleep(0.5)
    return 0


def _run(environment: Dict[str, str]) -> RunFolder:
    """The run whose program, or its neighbour, we are: its output is three folders below it."""
    output = environment["RABASKA_OUTPUT"]
    return RunFolder(os.path.dirname(os.path.dirname(os.path.dirname(output))))


def _private_folder() -> str:
    for place in _PLACES:
        try:
            return private_files.new_folder(place)
        except (OSError, private_files.NotPrivate):
            continue
    raise SystemExit("there is no private place for a socket in {}".format(" or ".join(_PLACES)))


def _words(kind: str, path: str, folder: str, options: List[str]) -> Optional[List[str]]:
    """What starts the server; None where the environment has none, which is said."""
    if kind == TENSORBOARD:
        if importlib.util.find_spec("tensorboard") is None:
            say("{} has no tensorboard".format(sys.executable))
            return None
        logs = os.path.dirname(os.environ["RABASKA_OUTPUT"])
        return [sys.executable, "-m", "rabaska.node", kind, path, "--logdir", logs] + options
    module = next((name for name in _SERVERS if importlib.util.find_spec(name)), None)
    if module is None:
        say("{} has no jupyterlab".format(sys.executable))
        return None
    return [
        sys.executable,
        "-m",
        module,
        "--no-browser",
        "--ServerApp.sock=" + path,
        "--ServerApp.sock_mode=0600",
        "--ServerApp.root_dir=" + os.getcwd(),
        "--KernelManager.transport=ipc",
        "--ServerApp.allow_root=True",  # a container may know its user as root
    ] + options


def _serve(
    run: RunFolder,
    kind: str,
    words: List[str],
    environment: Dict[str, str],
    told: Dict[str, object],
) -> int:
    """Start it, write down how it is reached, and wait for its end."""
    leaves = _leaves(environment)
    process = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE)
    ends = []  # type: List[int]

    def end(number: int, _frame: object) -> None:
        ends.append(number)
        process.terminate()

    for number in _ENDS:
        signal.signal(number, end)
    try:
        if _listens(str(told["socket"]), process):
            told["deadline"] = float(environment.get("RABASKA_DEADLINE") or 0)
            _write_down(run, kind, told)
            say("{} is ready".format(kind))
        while process.poll() is None:
            if not ends and time.monotonic() >= leaves:
                say("the time limit of the job is near")
                end(signal.SIGTERM, None)
            if ends:
                _end(process)
            time.sleep(0.2)
    finally:
        files.remove_if_there(run.server(kind))
    # Told to end, it did what it should: a session has no work left.
    return 0 if ends else process.returncode


def _listens(path: str, process: "subprocess.Popen[bytes]") -> bool:
    until = time.monotonic() + _STARTING
    while not os.path.exists(path):
        if process.poll() is not None or time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def _write_down(run: RunFolder, kind: str, told: Dict[str, object]) -> None:
    before = os.umask(0o077)
    try:
        files.make_inside(os.path.dirname(run.server(kind)))
        files.write_json(run.server(kind), told)
    finally:
        os.umask(before)


def _end(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(_ENDING)
    except subprocess.TimeoutExpired:
        process.kill()
