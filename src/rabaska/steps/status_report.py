"""The report of a run as its cluster sends it: checked, for a cluster may answer anything."""

from collections.abc import Mapping
from typing import Any

from rabaska.domain.untrusted import SIZE, TIME, Unexpected, checked
from rabaska.records.caches import Report


def _step(value: object) -> bool:
    """A number that a program printed, however large."""
    return isinstance(value, int) and not isinstance(value, bool)


_TEXT = (str, None)
_NUMBER = (int, None)
_WHEN = (TIME, None)
_PHASE = {
    "phase?": str,
    "since?": _WHEN,
    "spent?": {str: TIME},
    "what?": str,
    "done?": _NUMBER,
    "total?": _NUMBER,
    "rate?": _WHEN,
}
_USED = {
    "seconds?": _WHEN,
    "processor?": _WHEN,
    "cores?": _NUMBER,
    "memory?": _NUMBER,
    "memory_limit?": _NUMBER,
}
_JOB = {
    "job": int,
    "id?": _TEXT,
    "host?": _TEXT,
    "pid?": _NUMBER,
    "begun?": _WHEN,
    "ended?": _WHEN,
    "how?": _TEXT,
    "reason?": _TEXT,
    "exit_code?": _NUMBER,
    "signal?": _NUMBER,
    "first_step?": (_step, None),
    "last_step?": (_step, None),
    "steps_redone?": (_step, None),
    "epoch?": (float, None),
    "resumed_from?": _TEXT,
    "checkpoint_found?": _TEXT,
    "started_over?": _TEXT,
    "beginning_not_known?": _TEXT,
    "heartbeat?": _WHEN,
    "holder_alive?": (bool, None),
    "phase?": (_PHASE, None),
    "used?": (_USED, None),
}
_SUBMISSION = {
    "exit_code?": _NUMBER,
    "said?": str,
    "complained?": _TEXT,
    "time?": TIME,
    "submission?": _TEXT,
}
_UNANSWERED = {
    "state": str,
    "time?": _WHEN,
    "command?": _TEXT,
    "host?": _TEXT,
    "said?": _TEXT,
    "findable?": bool,
}
_REPORT = {
    "path": str,
    "about": {"unmet?": [str], "note?": str, "tags?": [str], "like?": str, "created?": str},
    "problems": [str],
    "id?": _TEXT,
    "mark?": _TEXT,
    "walltime?": _WHEN,
    "jobs_requested?": _NUMBER,
    "submissions?": [_SUBMISSION],
    "jobs?": [_JOB],
    "verdict?": ({"decision?": str, "reason?": str, "hint?": str}, None),
    "tail?": str,
    "metrics?": {str: (float, None)},
    "not_watched?": str,
    "begins_again?": str,
    "moved?": str,
    "incomplete?": bool,
    "command?": [str],
    "left_running?": int,
    "starting?": ({"id?": str, "what?": str}, None),
    "restarts?": [str],
    "submitting?": (_UNANSWERED, None),
}
# What a run can do without, and what is computed of what its program printed.
_ASIDE: dict[str, Any] = {
    "checkpoint": {"path": str, "size": int, "written": TIME},
    "speed": {
        "at": TIME,
        "steps": int,
        "epochs": int,
        "seconds_per_step": TIME,
        "waiting": float,
        "samples_per_second?": (float, None),
        "saves?": int,
    },
    "forecast": {
        "unit": str,
        "done": TIME,
        "total": _WHEN,
        "seconds_each": TIME,
        "per_job": TIME,
        "jobs": _NUMBER,
        "finishes": _WHEN,
        "stuck?": str,
        "hint?": str,
        "jobs_there?": int,
        "grows_to?": int,
    },
    "curve": {"name": str, "values": [(float, None)]},
    "extended": {"jobs": int, "why": str},
    "data": [{"name": str, "bytes": int, "where": str, "seconds": TIME, "arriving?": bool}],
}
_SAID = {"exit_code": int, "said": str, "complained": str, "asked?": [str]}

LINE = {"path": str, "new?": {str: {"at": SIZE, "left": SIZE, "text?": str, "packed?": str}}}
LAST = {"queue": _SAID, "history": (_SAID, None), "now": TIME, "offset?": int}


def report(told: Mapping[str, Any]) -> Report:
    """A report that can be used; what it tells aside and cannot be used is named and left out."""
    checked(told, _REPORT)
    unusable = {name: why for name in _ASIDE if (why := _wrong(told.get(name), _ASIDE[name]))}
    problems = [*told["problems"], *(f"its {name}: {why}" for name, why in unusable.items())]
    kept = {name: value for name, value in told.items() if name not in unusable}
    kept["data"] = kept.get("data") or []
    saved = kept.get("checkpoint")
    if saved:
        kept["checkpoint"] = {name: saved[name] for name in _ASIDE["checkpoint"]}
    return {**kept, "problems": problems}


def _wrong(value: Any, shape: Any) -> str:
    try:
        checked(value, (shape, None))
    except Unexpected as problem:
        return str(problem)
    return ""
