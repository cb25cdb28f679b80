"""What it costs to write down the vitals of a node: at most a thousandth of one core.

A program with eight data workers runs, on a node with as many processes as there are, and GPUs of
a driver that the benchmark compiles where there is a compiler.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rows import Row

from rabaska.node.vitals import sampling

NAME = "vitals"
ALLOWED = 0.1  # percent of one core
WORKERS = 8
TAG = "RABASKA_HOLDS"
FAKE = Path(__file__).parents[1] / "tests" / "node" / "vitals" / "fake_nvml.c"

PROGRAM = """
import os, time
for _ in range({}):
    if os.fork() == 0:
        break
while True:
    time.sleep(0.01)
"""


def run(quick: bool) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        value = f"{folder}#1"
        words = [sys.executable, "-c", PROGRAM.format(WORKERS)]
        program = subprocess.Popen(words, env={**os.environ, TAG: value}, start_new_session=True)
        try:
            return [measured(folder, value, 60.0 if quick else 300.0)]
        finally:
            os.killpg(program.pid, 9)
            program.wait()


def measured(folder: str, value: str, seconds: float) -> Row:
    _make_gpus(Path(folder))
    vitals = sampling.started(folder, 1, f"{TAG}={value}", folder, shared=True)
    began = time.monotonic()
    time.sleep(seconds)
    lasted, spent = time.monotonic() - began, vitals.spent
    vitals.end()
    ours = 100 * spent / lasted
    work = f"vitals of a node, {seconds:.0f} s"
    return Row(
        work, "what is allowed", ours, ALLOWED, ALLOWED / max(ours, 1e-9), 1.0, "% of a core"
    )


def _make_gpus(folder: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        return
    library = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, FAKE], check=True)
    os.environ["RABASKA_NVML"], os.environ["RABASKA_SYSFS"] = str(library), str(folder)
