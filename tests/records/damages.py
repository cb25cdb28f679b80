"""Ways in which a record of JSON gets damaged: by hand, by a full disk, by a crash."""

import json


def every_type_wrong(text: str) -> str:
    """Each line of JSON with a list in place of a text, a text in place of all else."""
    return "".join(json.dumps(_wrong(line)) + "\n" for line in _values(text))


def _values(text: str) -> list[object]:
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


def _wrong(value: object) -> object:
    if isinstance(value, dict):
        return {name: [1] if isinstance(one, str) else "x" for name, one in value.items()}
    return "x"


def _with_numbers(text: str, number: float) -> str:
    return "".join(json.dumps(_replaced(line, number)) + "\n" for line in _values(text))


def _replaced(value: object, number: float) -> object:
    if isinstance(value, dict):
        return {name: _replaced(one, number) for name, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, number) for one in value]
    return number if type(value) in (int, float) else value


DAMAGES = {
    "cut short": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "a list": lambda text: "[]\n",
    "null": lambda text: "null\n",
    "a number": lambda text: "5\n",
    "an empty object": lambda text: "{}\n",
    "objects for all": lambda text: json.dumps({n: {"x": 1} for v in _values(text) for n in v}),
    "wrong types": every_type_wrong,
    "numbers without end": lambda text: _with_numbers(text, float("inf")),
    "numbers that are none": lambda text: _with_numbers(text, float("nan")),
    "numbers of 300 digits": lambda text: _with_numbers(text, 10**300),
    "binary": lambda text: "\udc80\udcff\x00\udcfe" * 50,
    "deep": lambda text: "[" * 100_000,
}

RECORDS = (
    "run.json", "submissions.jsonl", "events.jsonl", "metrics.jsonl", "patterns.json",
    "jobs/001/begun.json", "jobs/001/ended.json", "jobs/001/found.json", "jobs/001/phase.json",
    "jobs/001/successor.json", "carried/001/beside.json", "carried/001/saved.jsonl",
)  # fmt: skip
