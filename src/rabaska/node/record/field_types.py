"""Which type each field of a run's records has.

Records are files that somebody may edit, cut short or mix up. What has not the type that its writer
gives it was damaged, and counts as missing: no reader further on has to doubt it again.
"""

from typing import Any, Dict, Iterator, List, Sequence, Tuple, Type, Union

from .. import files
from .run_folder import RunFolder

Kind = Union[Type[Any], Tuple[Type[Any], ...]]
Shape = Dict[str, Kind]

NUMBER = (int, float)
_MOST = 2**63

SAVED = {"path": str, "size": int, "mtime_ns": int}  # type: Shape
BEGUN = {
    "id": str,
    "host": str,
    "boot": str,
    "pid": int,
    "started": str,
    "begun": NUMBER,
    "resumed_from": str,
    "checkpoint_seen": dict,
    "epoch": NUMBER,
    "until": NUMBER,
    "ready": bool,
}  # type: Shape
ENDED = {
    "id": str,
    "how": str,
    "reason": str,
    "exit_code": int,
    "signal": int,
    "ended": NUMBER,
    "checkpoint": dict,
    "progressed": bool,
    "remedy": str,
    "tracks": list,
    "resumption": dict,
    "missing": list,
    "standstill": str,
    "used": dict,
}  # type: Shape
USED = {
    "seconds": NUMBER,
    "processor": NUMBER,
    "cores": int,
    "memory": int,
    "memory_limit": int,
}  # type: Shape
TRACK = {
    "what": str,
    "first": list,
    "last": list,
    "seen": int,
    "weak": bool,
    "early": list,
    "inside": list,
}  # type: Shape
JUDGED = {"state": str, "why": str, "hint": str, "step": NUMBER}  # type: Shape
SUBMISSION = {
    "submission": str,
    "time": NUMBER,
    "exit_code": int,
    "said": str,
    "complained": str,
    "jobs": int,
    "after": str,
    "after_job": int,
    "resume": bool,
    "command": str,
}  # type: Shape
PLACED = {"name": str, "bytes": int, "where": str, "seconds": NUMBER}  # type: Shape
EVENT = {
    "event": str,
    "time": NUMBER,
    "job": int,
    "jobs": int,
    "why": str,
    "reason": str,
    "placed": list,
    "count": int,
}  # type: Shape


def misfit(value: files.Json, shape: Shape, needed: Sequence[str] = ()) -> str:
    """The first field that has another type, or is needed and missing; "" when all is well."""
    for name, kind in shape.items():
        found = value.get(name)
        if found is None:
            if name in needed:
                return name
        elif (
            not isinstance(found, kind)
            or (isinstance(found, bool) and kind is not bool)
            or (isinstance(found, NUMBER) and not is_sensible(found))
        ):
            return name
    return ""


def fitting(value: files.Json, shape: Shape) -> files.Json:
    """The same without the fields that have another type."""
    return {
        name: found
        for name, found in value.items()
        if name not in shape or not misfit({name: found}, {name: shape[name]})
    }


def numbers(value: Any) -> bool:
    """Whether it is a list of numbers."""
    return isinstance(value, list) and all(
        type(one) in NUMBER and is_sensible(one) for one in value
    )


def pairs(value: Any) -> Dict[str, List[int]]:
    """The pairs of numbers in an object: of files, what is known of each (see `step_tracks`)."""
    known = value.items() if isinstance(value, dict) else []
    return {path: pair for path, pair in known if numbers(pair) and len(pair) == 2}


def is_sensible(number: float) -> bool:
    """Whether a clock, a file system or a program counts so far; false of nan as well."""
    return -_MOST < number < _MOST


def submission_lines(run: RunFolder) -> Iterator[files.Json]:
    """submissions.jsonl, line by line; nobody knows what a line was whose mark is damaged."""
    lines = files.read_lines(run.submissions)
    return (fitting(line, SUBMISSION) for line in lines if not misfit(line, {"submission": str}))
