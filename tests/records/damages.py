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


DAMAGES = {
    "cut short": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "a list": lambda text: "[]\n",
    "null": lambda text: "null\n",
    "a number": lambda text: "5\n",
    "an empty object": lambda text: "{}\n",
    "objects for all": lambda text: json.dumps({n: {"x": 1} for v in _values(text) for n in v}),
    "wrong types": every_type_wrong,
    "binary": lambda text: "\udc80\udcff\x00\udcfe" * 50,
    "deep": lambda text: "[" * 100_000,
}

RECORDS = (
    "run.json", "submissions.jsonl", "events.jsonl", "metrics.jsonl", "patterns.json",
    "jobs/001/begun.json", "jobs/001/ended.json", "jobs/001/found.json",
    "jobs/001/successor.json", "carried/001/beside.json", "carried/001/saved.jsonl",
)  # fmt: skip
