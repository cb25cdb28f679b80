"""The process that asks the drivers of GPUs, and how the agent asks it.

`gpu-vitals` answers each line of its input with one of JSON: {"values": [[name, unit, value] …],
"spent": processor seconds of its own so far}. A driver that hangs takes only this process with it:
it is given up, and nobody waits for it.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .. import own_program

Value = Tuple[str, str, float]

LIBRARY, SYSFS = "RABASKA_NVML", "RABASKA_SYSFS"  # where tests have them

_FIRST_PATIENCE = 60.0  # seconds; to wake the driver of eight GPUs takes many of them
_PATIENCE = 5.0
_LAST_WORDS = 0.5


def main(_argv: List[str]) -> int:
    for name in ("SIGTERM", "SIGUSR1", "SIGUSR2", "SIGINT", "SIGHUP"):
        # Schedulers signal whole jobs; this ends when its input does.
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    gpus = _gpus(os.environ)
    for _ in sys.stdin:
        values = [value for one in gpus for value in one.values()]
        sys.stdout.write(json.dumps({"values": values, "spent": time.process_time()}) + "\n")
        sys.stdout.flush()
    return 0


def _gpus(environment: Mapping[str, str]) -> List[Any]:
    found = []  # type: List[Any]
    visible = environment.get("ROCR_VISIBLE_DEVICES") or environment.get("HIP_VISIBLE_DEVICES")
    try:
        from . import nvml

        shown = environment.get("CUDA_VISIBLE_DEVICES")
        found.append(nvml.NvidiaGpus(environment.get(LIBRARY) or nvml.LIBRARY, shown))
    except (ImportError, OSError):
        pass  # no such driver, or a Python without ctypes
    from . import amd

    found.append(amd.AmdGpus(environment.get(SYSFS) or amd.SYSFS, visible))
    return found


def has_gpus(environment: Mapping[str, str]) -> bool:
    """Whether it is worth a process: a look at the names of devices, which no driver answers."""
    if environment.get(LIBRARY) or environment.get(SYSFS):
        return True
    return os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/kfd")


class GpuProcess:
    """`gpu-vitals`, asked now and then; after a question without an answer it is given up."""

    def __init__(self, without: str = "") -> None:
        self.why = ""  # it was given up
        self.spent = 0.0  # processor seconds of its own, since it has started
        self._at_start = float("inf")
        self._patience = _FIRST_PATIENCE
        self._unread = b""
        environment = {name: text for name, text in os.environ.items() if name != without}
        self._process = _started(environment)  # type: Optional[subprocess.Popen[bytes]]
        if self._process is None:
            self.why = "it could not be started"

    def values(self, is_over: Any = lambda: False) -> List[Value]:
        """Of every GPU; none when there is no answer, or when `is_over` meanwhile."""
        process = self._process
        if process is None or process.stdin is None:
            return []
        try:
            process.stdin.write(b"\n")
            process.stdin.flush()
        except (OSError, ValueError):
            self._give_up("the process that asks the driver ended")
            return []
        told = self._answer(process, is_over)
        if told is None:
            if not is_over() and not self.why:
                self._give_up("the driver did not answer in {:.0f} s".format(self._patience))
            return []
        self._patience = _PATIENCE
        self._at_start = min(self._at_start, float(told["spent"]))
        self.spent = float(told["spent"]) - self._at_start
        return [(str(name), str(unit), float(value)) for name, unit, value in told["values"]]

    def _answer(self, process: "subprocess.Popen[bytes]", is_over: Any) -> Optional[Dict[str, Any]]:
        until = time.monotonic() + self._patience
        assert process.stdout is not None
        while b"\n" not in self._unread:
            left = until - time.monotonic()
            if left <= 0 or is_over():
                return None
            if select.select([process.stdout], [], [], min(left, _LAST_WORDS))[0]:
                piece = os.read(process.stdout.fileno(), 1 << 16)
                if not piece:
                    self._give_up("the process that asks the driver ended")
                    return None
                self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        try:
            found = json.loads(line.decode("utf-8"))
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    def _give_up(self, why: str) -> None:
        self.why = why
        self.end()

    @property
    def stuck(self) -> Optional[int]:
        """Its process, where the kernel does not let it end."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def end(self) -> None:
        process = self._process
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            try:
                stream.close()  # type: ignore[union-attr]
            except OSError:
                pass
        if process.poll() is not None:
            return
        try:
            process.wait(_LAST_WORDS)
        except subprocess.TimeoutExpired:
            process.kill()
            try:
                process.wait(_LAST_WORDS)
            except subprocess.TimeoutExpired:
                pass  # the driver holds it in the kernel


def _started(environment: Dict[str, str]) -> "Optional[subprocess.Popen[bytes]]":
    words = [sys.executable, own_program.own_path(), "gpu-vitals"]
    if not os.path.isfile(own_program.own_path()):
        words = [sys.executable, "-m", "rabaska.node", "gpu-vitals"]
        paths = [own_program.own_path(), environment.get("PYTHONPATH", "")]
        environment = dict(environment, PYTHONPATH=os.pathsep.join(filter(None, paths)))
    try:
        return subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
    except OSError:
        return None
