"""metrics.jsonl: how far and how fast a job went, a line now and then.

A watched program tells it itself, all numbers since the job began (`rabaska.training.watching`):

    {"job", "time", "began", "steps", "batches", "epochs", "batch", "length", "waiting", …}

`waiting`, `validating`, `saving`, `logging`, `starting` and `fetching` are seconds (see
`rabaska.training.watching.counting`). `each` are the seconds for a batch, all that comes between
batches included. A line with `"save": "begins"` holds until the next one.

For others the agent notes what they print, and since when:

    {"job", "time", "since", "from", "at", "unit": "epoch" or "step", "total"}

A job that is not watched, or no longer, says why: {"job", "time", "off"}.
"""

import json
import os
from typing import Dict, List, Optional

from .. import files
from ..files import Json
from . import field_types
from .phase_names import LOGGING, SAVING, VALIDATING, WAITING
from .run_folder import RunFolder

TAIL = 32 * 1024  # bytes: some minutes of lines
_PARTS = (
    (WAITING, "waiting"),
    (VALIDATING, "validating"),
    (SAVING, "saving"),
    (LOGGING, "logging"),
)
_SHARES = ("saving", "validating", "logging", "starting", "fetching")
_WHOLE = 0.03  # an epoch that is over but for so little was saved at its end


def append(run: RunFolder, job: int, **told: object) -> None:
    files.append_line(run.metrics, dict(told, job=job))


def tail(run: RunFolder, job: int, size: int = TAIL) -> List[Json]:
    """The newest lines of a job, oldest first."""
    return [line for line in _tail_of(run.metrics, size) if line.get("job") == job]


def _tail_of(path: str, size: int) -> List[Json]:
    try:
        with open(path, "rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - size))
            text = stream.read(size)
    except OSError:
        return []
    return [line for line in map(_line, text.split(b"\n")) if line is not None]


def _line(text: bytes) -> Optional[Json]:
    try:
        value = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        return None  # cut at the beginning of what was read, or half written
    return value if isinstance(value, dict) else None


def watched(lines: List[Json]) -> List[Json]:
    """The lines that the newest process of the program wrote itself."""
    own = [line for line in lines if "steps" in line]
    return [line for line in own if line.get("pid") == own[-1].get("pid")]


def saving_since(lines: List[Json]) -> Optional[float]:
    """When the save began that the program is busy with; None when it is not."""
    own = watched(lines)
    return own[-1]["time"] if own and own[-1].get("save") == "begins" else None


def saving_seconds(lines: List[Json]) -> float:
    """What all saves took so far."""
    own = watched(lines)
    seconds = own[-1].get("saving", 0.0) if own else 0.0
    return float(seconds) if isinstance(seconds, (int, float)) else 0.0


def parts(lines: List[Json]) -> Dict[str, float]:
    """Seconds of the training so far that were spent on something else than computing."""
    own = watched(lines)
    if not own:
        return {}
    told = {name: _seconds(own[-1], word) for name, word in _PARTS}
    return {name: seconds for name, seconds in told.items() if seconds > 0}


def _seconds(line: Json, name: str) -> float:
    value = line.get(name, 0.0)
    return float(value) if isinstance(value, (int, float)) else 0.0


def ranks(run: RunFolder, job: int) -> List[Json]:
    """What each process of several told last, the first rank first."""
    found = {}  # type: Dict[int, Json]
    for line in _tail_of(run.ranks(job), TAIL * 4):
        if field_types.numbers([line.get(name) for name in ("rank", "time", "steps", "waiting")]):
            found[int(line["rank"])] = line
    return [
        {
            "rank": rank,
            "host": str(found[rank].get("host", "")),
            "steps": int(found[rank]["steps"]),
            "waiting": _seconds(found[rank], "waiting") / max(1, found[rank]["steps"]),
            "forward": _seconds(found[rank], "forward") / max(1, found[rank]["steps"]),
        }
        for rank in sorted(found)
    ]


def off(lines: List[Json]) -> str:
    """Why the job is not watched; "" when it is, or when nobody knows."""
    return str(([line["off"] for line in lines if "off" in line] or [""])[-1])


def speed(lines: List[Json]) -> Optional[Json]:
    """Of a watched program, over the last minutes; None when it has told too little."""
    own = watched(lines)
    if not own:
        return None
    last = own[-1]
    first = own[0] if len(own) > 1 else {"time": last["began"], "steps": 0, "waiting": 0.0}
    span, steps = last["time"] - first["time"], last["steps"] - first["steps"]
    if span <= 0 or steps <= 0:
        return None
    batches = last["batches"] - first.get("batches", 0)
    size = last.get("batch_size")
    return {
        "at": last["time"],
        "steps": last["steps"],
        "epochs": last["epochs"],
        "seconds_per_step": span / steps,
        "waiting": min(1.0, max(0.0, (last["waiting"] - first["waiting"]) / span)),
        "samples_per_second": batches * size / span if size and batches else None,
        "saves": last.get("saves", 0),
        "seconds": span,
        "workers": last.get("workers"),
        "batch_size": size,
        "saves_lately": last.get("saves", 0) - first.get("saves", 0),
        "shares": {
            name: min(1.0, max(0.0, (_seconds(last, name) - _seconds(first, name)) / span))
            for name in _SHARES
        },
    }


def epoch_of(line: Json, start: float) -> float:
    """How many epochs of the run are over, in a job that began after `start` of them."""
    if "at" in line:
        return float(line["at"]) if line.get("unit") == "epoch" else start
    first = line.get("first_epoch")
    begun = line["batch"] / line["length"] if line.get("length") else 0.0
    return float((start if first is None else first) + line["epochs"] + begun)


def epoch_at(lines: List[Json], moment: float, start: float) -> float:
    """How many epochs were over at a moment, such as that of a checkpoint."""
    told = [line for line in lines if "steps" in line or "at" in line]
    before = [line for line in told if line["time"] <= moment]
    after = [line for line in told if line["time"] > moment]
    if not before:
        return start
    epoch = epoch_of(before[-1], start)
    if after:
        share = (moment - before[-1]["time"]) / (after[0]["time"] - before[-1]["time"])
        epoch += share * max(0.0, epoch_of(after[0], start) - epoch)
    return float(round(epoch)) if abs(epoch - round(epoch)) < _WHOLE else epoch
