"""Runs a planted program as a job would, and keeps what was measured of it.

`python -m tests.bottlenecks.observe [NAME…]` writes tests/recordings/bottlenecks again.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from rabaska.domain.runs import RunState, RunStatus, Speed
from rabaska.node.record import metrics
from rabaska.node.record.run_folder import RunFolder
from rabaska.node.vitals import cgroups, sampling
from rabaska.node.vitals.recent import recent
from rabaska.steps import read_phases

REPOSITORY = Path(__file__).parents[2]
RECORDED = REPOSITORY / "tests" / "recordings" / "bottlenecks"
PROGRAM = Path(__file__).with_name("planted.py")
FAKE_NVML = REPOSITORY / "tests" / "node" / "vitals" / "fake_nvml.c"
TRACKER = """
import time

class SummaryWriter:
    def __init__(self, seconds):
        self.seconds = seconds

    def add_scalar(self, *_):
        time.sleep(self.seconds)
"""


TOLD = ""  # a GPU of which the program tells itself


class Case(NamedTuple):
    kind: str  # what is planted; "": nothing
    words: str  # of the program
    cores: int = 0  # that the job asked for
    gpus: tuple[str, ...] = ()  # `use power temperature clock reasons` of each
    ranks: int = 1
    swap: bool = False
    after: str = ""  # more words, once the remedy is applied


CASES = {
    "no-workers": Case(
        "too few workers", "--read 0.02 --compute 0.01 --workers 0",
        cores=8, after="--workers 4",
    ),
    "no-workers-decoding": Case(
        "too few workers", "--decode 0.003 --compute 0.001 --workers 0",
        cores=8,
    ),
    "one-worker": Case("too few workers", "--decode 0.004 --compute 0.001 --workers 1", cores=8),
    "decoding": Case("decoding", "--decode 0.006 --compute 0.001 --workers 2", cores=2),
    "storage": Case("storage", "--read 0.02 --decode 0.0005 --compute 0.001 --workers 2", cores=8),
    "storage-many-workers": Case("storage", "--read 0.06 --compute 0.001 --workers 4", cores=4),
    "small-batches": Case(
        "small steps", "--python 0.008 --compute 0.0005",
        gpus=(TOLD,), after="--batch-size 8",
    ),
    "much-python": Case(
        "small steps", "--python 0.02 --compute 0.002",
        gpus=(TOLD,),
    ),
    "saving": Case(
        "saving", "--compute 0.002 --save 0.1 --save-every 10",
        after="--save-every 220",
    ),
    "logging": Case("logging", "--compute 0.002 --log 0.006", after="--log-every 20"),
    "validation": Case(
        "validation", "--compute 0.002 --validate 0.2 --eval-every 20",
        after="--eval-every 80",
    ),
    "swapping": Case("swapping", "--compute 0.004", swap=True),
    "slow-rank": Case("slow rank", "--compute 0.002 --slow-rank 0.01", ranks=2),
    "slow-data-of-one-rank": Case("slow rank", "--compute 0.002 --slow-data 0.004", ranks=2),
    "slow-gpu": Case(
        "slow rank", "--compute 0.004",
        gpus=("96 280000 61 1410 0", "97 170000 60 800 0"),
    ),
    "idle-gpu": Case("idle GPU", "--python 0.01", gpus=("0 50000 33 210 1",)),
    "one-idle-gpu": Case(
        "idle GPU", "--compute 0.004",
        gpus=("94 280000 61 1410 0", "0 50000 30 210 1"),
    ),
    "throttling": Case("throttling", "--compute 0.004", gpus=("98 200000 91 900 64",)),
    "restarted-workers": Case(
        "restarted workers", "--compute 0.002 --workers 2 --epoch 6",
        cores=8, after="--persistent 1",
    ),
    "healthy-gpu": Case(
        "", "--read 0.001 --compute 0.004 --workers 2",
        cores=8, gpus=("93 280000 66 1410 0",),
    ),
    "healthy-processor": Case("", "--python 0.02 --compute 0.001", cores=2),
    "healthy-saves-and-validates": Case(
        "",
        "--compute 0.004 --save 0.05 --save-every 80 --validate 0.1 --eval-every 60 --log 0.0002",
    ),
    "healthy-power-cap": Case(
        "", "--compute 0.004",
        gpus=("99 400000 72 1290 4", "98 400000 71 1310 4"),
    ),
    "healthy-ranks": Case("", "--compute 0.004 --read 0.0003", ranks=2),
    "healthy-small-wait": Case(
        "", "--read 0.0003 --compute 0.004 --workers 0",
        cores=8, gpus=("84 220000 58 1410 0",),
    ),
}  # fmt: skip


def observe(folder: Path, name: str, seconds: float = 4.0, more: str = "") -> dict[str, Any]:
    """What a cluster would tell of the program `name`, and how fast it went."""
    case = CASES[name]
    run = RunFolder(str(folder))
    os.makedirs(run.job(1), exist_ok=True)
    (folder / "tensorboardX").mkdir(exist_ok=True)
    (folder / "tensorboardX" / "__init__.py").touch()
    (folder / "tensorboardX" / "writer.py").write_text(TRACKER)
    words = [*case.words.split(), *more.split(), "--seconds", str(seconds)]
    if TOLD in case.gpus:
        words += ["--gpu-file", str(folder / "gpus")]
    with _vitals(folder, case):
        printed = _run(folder, words, case.ranks)
    lines = metrics.tail(run, 1)
    own = metrics.watched(lines)
    return {
        "kind": case.kind,
        "command": ["python", "train.py", *case.words.split()],
        "speed": metrics.speed(lines),
        "vitals": recent(run.path, 1, own[-1]["began"], own[-1]["time"]),
        "ranks": metrics.ranks(run, 1),
        "about": {"resources": {"cores": case.cores or None, "gpus": len(case.gpus)}},
        "samples_per_second": float(printed.split()[-1]),
    }


def _run(folder: Path, words: list[str], ranks: int) -> str:
    first = REPOSITORY / "src/rabaska/training/watching/first"
    path = os.pathsep.join([str(first), str(REPOSITORY / "src"), str(folder)])
    environment = {
        **os.environ, "PYTHONPATH": path, "RABASKA_WATCH": "1", "RABASKA_JOB": "1",
        "RABASKA_METRICS": str(folder / "metrics.jsonl"), "RABASKA_HOLDS": f"{folder}#1",
    }  # fmt: skip
    if ranks > 1:
        environment["WORLD_SIZE"] = str(ranks)
    programs = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), *words], cwd=folder, stdout=subprocess.PIPE, text=True,
            env={**environment, **({"RANK": str(rank)} if ranks > 1 else {})},
        )
        for rank in range(ranks)
    ]  # fmt: skip
    printed = [one.communicate(timeout=120)[0] for one in programs]
    if any(one.returncode for one in programs):
        raise RuntimeError(f"{words}: exit code {[one.returncode for one in programs]}")
    return printed[0]


@contextmanager
def _vitals(folder: Path, case: Case) -> Any:
    """The node's part: with the GPUs and the swap disk that the case has."""
    gpus = case.gpus
    if gpus:
        library = folder / "libnvidia-ml.so.1"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, FAKE_NVML], check=True)
        (folder / "gpus").write_text("".join(f"{line}\n" for line in gpus))
        os.environ["RABASKA_NVML"], os.environ["FAKE_NVML"] = str(library), str(folder / "gpus")
        os.environ["RABASKA_SYSFS"] = str(folder)
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(len(gpus))))
    path = sampling.path_of(str(folder), 1, "n1")
    vitals = sampling.NodeVitals(path, 1, f"RABASKA_HOLDS={folder}#1", str(folder), shared=True)
    over = threading.Event()
    if case.swap:
        vitals._group = cgroups.Cgroup(str(folder), 2, 4 * 10**9)
        threading.Thread(target=_swap, args=(folder, over), daemon=True).start()
    vitals._spent = -1.0  # more looks than a job would have in so short a time
    vitals.start()
    try:
        yield
    finally:
        over.set()
        vitals.end()
        for name in ("RABASKA_NVML", "FAKE_NVML", "RABASKA_SYSFS", "CUDA_VISIBLE_DEVICES"):
            if gpus:
                os.environ.pop(name, None)


def _swap(folder: Path, over: threading.Event) -> None:
    """A cgroup whose processes are swapped out, and read back 12 MB a second."""
    (folder / "memory.swap.current").write_text("900000000\n")
    pages = 0
    while True:
        (folder / "memory.stat").write_text(f"anon 3900000000\npswpin {pages}\n")
        if over.wait(0.1):
            return
        pages += 300


def status_of(told: dict[str, Any]) -> RunStatus:
    """A recording as `rabaska status` would have it."""
    known = {field.name for field in fields(Speed)}
    speed = told["speed"] or {}
    return RunStatus(
        "cats-1",
        "tamia",
        RunState.RUNNING,
        speed=Speed(**{name: speed[name] for name in known & speed.keys()}) if speed else None,
        vitals=read_phases.vitals(told),
        ranks=read_phases.ranks(told),
        command=tuple(told["command"]),
        about=told["about"],
    )


def main(names: list[str]) -> None:
    RECORDED.mkdir(exist_ok=True)
    for name in names or CASES:
        told = _together(name)
        (RECORDED / f"{name}.json").write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")
        print(name, told["kind"] or "healthy", told.get("gained", ""), flush=True)


def _together(name: str) -> dict[str, Any]:
    """Before and after the remedy at the same time, so that both have the same processor."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        after = CASES[name].after
        words = [*CASES[name].words.split(), *after.split(), "--seconds", "6"]
        with ThreadPoolExecutor() as pool:
            (Path(other) / "tensorboardX").mkdir()
            (Path(other) / "tensorboardX" / "__init__.py").touch()
            (Path(other) / "tensorboardX" / "writer.py").write_text(TRACKER)
            then = pool.submit(_run, Path(other), words, 1) if after else None
            told = observe(Path(folder), name, seconds=6.0)
            if then:
                told["gained"] = float(then.result().split()[-1]) / told["samples_per_second"]
    return told


if __name__ == "__main__":
    main(sys.argv[1:])
