"""Reading the numbers of runs: event files beside TensorBoard, and one poll of 20 runs."""

import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import medians
from rows import Row

from rabaska.node import files
from rabaska.node.record import plan
from rabaska.node.record.run_folder import RunFolder
from rabaska.node.series.event_files import EventFile, masked_crc
from rabaska.node.series.series_format import SeriesFile
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.records.series_files import held, numbers_folder
from rabaska.steps.live_runs import LiveRuns
from rabaska.steps.query_status import statuses

NAME = "watch"
QUICK = False  # at a smaller size, starting programs takes most of the time
HERE = Path(__file__).resolve().parent
RUNS, NEW = 20, 50  # runs that are polled, and points that each has then
ACCUMULATOR = """
import sys, time
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
began = time.process_time()
reader = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
reader.Reload()
assert sum(len(reader.Scalars(tag)) for tag in reader.Tags()["scalars"]) == int(sys.argv[2])
print(time.process_time() - began)
"""


def run(quick: bool) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return [*_event_rows(Path(folder), quick), *_poll_rows(Path(folder), quick)]


def _event_rows(folder: Path, quick: bool) -> list[Row]:
    count = 20_000 if quick else 200_000
    path = folder / "events.out.tfevents.1"
    _write_events(path, count)
    contenders = {"ours": lambda: _read(path, count), "nothing": lambda: _read_nothing(path)}
    python = _python_with_tensorboard()
    if python:
        words = [python, "-c", ACCUMULATOR, str(folder), str(count)]
        contenders["theirs"] = lambda: float(_said(words))
    cost = medians(contenders, repeats=3 if quick else 7)
    rows = [
        Row(
            "look that finds nothing new",
            "1 ms",
            cost["nothing"],
            0.001,
            0.001 / cost["nothing"],
            1.0,
        )
    ]
    if python:
        ratio = cost["theirs"] / cost["ours"]
        asked = 2.5 if quick else 4.0  # what it costs to begin weighs more in a short file
        rows.insert(
            0,
            Row(
                f"{count:,} scalars", "EventAccumulator", cost["ours"], cost["theirs"], ratio, asked
            ),
        )
    else:
        print(
            "no Python here has tensorboard to compare with: pip install tensorboard",
            file=sys.stderr,
        )
    return rows


def _write_events(path: Path, count: int) -> None:
    """As PyTorch's SummaryWriter does: four names in turn."""
    with path.open("wb") as stream:
        for number in range(count):
            name = b"train/loss-%d" % (number % 4)
            value = (
                b"\x0a" + bytes([len(name)]) + name + b"\x15" + struct.pack("<f", 1 / (number + 1))
            )
            summary = b"\x0a" + bytes([len(value)]) + value
            step = number // 4
            event = b"\x09" + struct.pack("<d", 1.79e9 + number) + b"\x10" + _varint(step)
            event += b"\x2a" + bytes([len(summary)]) + summary
            length = struct.pack("<Q", len(event))
            stream.write(length + struct.pack("<I", masked_crc(length)))
            stream.write(event + struct.pack("<I", masked_crc(event)))


def _varint(number: int) -> bytes:
    said = b""
    while number >= 0x80:
        said += bytes([number & 0x7F | 0x80])
        number >>= 7
    return said + bytes([number])


def _read(path: Path, count: int) -> float:
    began = time.process_time()
    assert len(EventFile(str(path)).read(1 << 40)) == count
    return time.process_time() - began


def _read_nothing(path: Path) -> float:
    source = EventFile(str(path))
    source.skip()
    began = time.perf_counter()
    assert source.read() == []
    return time.perf_counter() - began


def _python_with_tensorboard() -> str:
    others = (f"{HERE.parent}/{name}/bin/python" for name in (".venv-beside", ".venv-frameworks"))
    for python in (sys.executable, *others):
        asked = [python, "-c", "import tensorboard"]
        if (
            Path(python).exists()
            and subprocess.run(asked, capture_output=True, check=False).returncode == 0
        ):
            return python
    return ""


def _said(words: list[str]) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def _poll_rows(folder: Path, quick: bool) -> list[Row]:
    """One call for all runs, beside `status` of the same runs."""
    home = Home(folder / "home")
    home.profiles.mkdir(parents=True)
    (home.profiles / "away.toml").write_text('title = "Away"\nscheduler = "local"\n')
    records = [_made_run(folder, number) for number in range(RUNS)]
    live, step = LiveRuns(records, home), [0]
    live.refresh()

    def poll() -> float:
        step[0] += NEW
        for record in records:
            _add_points(record, step[0])
        return _processor_seconds(live.refresh)

    cost = medians(
        {"poll": poll, "status": lambda: _processor_seconds(lambda: statuses(records, home))},
        repeats=5 if quick else 15,
    )
    told, points = _bytes_of_a_poll(records, home, step)
    return [
        Row(f"poll of {RUNS} runs, {NEW} points each", "1.2 times status", cost["poll"],
            1.2 * cost["status"], 1.2 * cost["status"] / cost["poll"], 1.0),
        Row(f"bytes of {RUNS * NEW:,} new points", "twice the points", told, 2 * points,
            2 * points / told, 1.0, unit="B"),
    ]  # fmt: skip


def _made_run(folder: Path, number: int) -> RunRecord:
    run = RunFolder(str(folder / "store/runs" / f"tiny-{number:04d}"))
    for path in (run.logs, run.output(0), run.checkpoints(0), f"{run.path}/jobs"):
        os.makedirs(path)
    made = plan.Plan(
        run=run.name, command=["true"], resume=[], code="none", datasets=[], patterns=[], keep=[],
        variables={}, walltime=60.0, grace=5.0, signal="TERM", jobs=1, progress="",
        origin=plan.Origin(project="tiny"),
    )  # fmt: skip
    files.write_json(run.plan, plan.to_json(made))
    return RunRecord(run.name, "away", run.path, "", 0.0, job_id="1")


def _add_points(record: RunRecord, step: int) -> int:
    file = SeriesFile(f"{record.path}/series/job-001.tsv", 1, 1.79e9)
    for number in range(step, step + NEW):
        file.add("train/loss", "tensorboard", number, 1.79e9 + number, 1 / (number + 1))
    return file.flush()


def _bytes_of_a_poll(records: list[RunRecord], home: Home, step: list[int]) -> tuple[int, int]:
    """Of what "new" adds to the answer, and of the points themselves."""
    from rabaska.node.login.new_numbers import Allowance, new_numbers

    step[0] += NEW
    told = points = 0
    for record in records:
        points += _add_points(record, step[0])
        have = held(numbers_folder(home, record))
        new = new_numbers(RunFolder(record.path), have, Allowance())
        told += len(json.dumps(new))
    return told, points


def _processor_seconds(act) -> float:
    before = _used()
    act()
    return _used() - before


def _used() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
