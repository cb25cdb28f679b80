"""All runs in one table: what differs between them, sorted and filtered as people ask."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from datetime import timedelta
from typing import NamedTuple

from rabaska.domain.amounts import say_duration
from rabaska.domain.arguments import named_values, what_differs
from rabaska.domain.runs import RunStatus
from rabaska.views.runs import TONES, labels_text, run_row

# The headings of the fields of `TableRow`, in their order.
TABLE_HEADINGS = (
    "run", "cluster", "state", "jobs", "progress", "last metric", "age", "arguments", "note",
    "reason",
)  # fmt: skip
_ALWAYS = ("run", "cluster", "state", "jobs", "progress", "age")
_METRICS_NAMED = 2
_WIDEST = 48  # letters of a note or of arguments in the table


@dataclass(frozen=True)
class TableRow:
    name: str
    cluster: str
    state: str
    jobs: str
    progress: str
    metric: str
    age: str
    arguments: str  # that not all runs of its project have
    note: str
    reason: str


class RunLine(NamedTuple):
    """A run with its row, and how its state is painted."""

    run: RunStatus
    row: TableRow
    tone: str


def run_lines(runs: Sequence[RunStatus], now: float) -> list[RunLine]:
    """A row for each run; arguments are compared with the other runs of its project."""
    arguments = _arguments(runs)
    return [
        RunLine(run, _row(run, words, now), TONES[run.state])
        for run, words in zip(runs, arguments, strict=True)
    ]


def _arguments(runs: Sequence[RunStatus]) -> list[str]:
    found: dict[int, str] = {}
    projects = dict.fromkeys(run.about.get("project", "") for run in runs)
    for project in projects:
        places = [
            place for place, run in enumerate(runs) if run.about.get("project", "") == project
        ]
        found.update(
            zip(places, what_differs([runs[place].command for place in places]), strict=True)
        )
    return [found[place] for place in range(len(runs))]


def _row(run: RunStatus, arguments: str, now: float) -> TableRow:
    row = run_row(run)
    metrics = list(run.metrics.items())[:_METRICS_NAMED]
    age = say_duration(timedelta(seconds=max(0.0, now - run.created))) if run.created else ""
    return TableRow(
        name=run.name,
        cluster=run.cluster,
        state=row.state,
        jobs=row.jobs,
        progress=row.progress,
        metric=", ".join(
            f"{name} {'nan' if value is None else f'{value:g}'}" for name, value in metrics
        ),
        age=age,
        arguments=arguments,
        note=labels_text(run.note, run.tags),
        reason=row.reason or (f"went on as {run.moved}" if run.moved else ""),
    )


def shown_columns(lines: Sequence[RunLine]) -> list[int]:
    """The places of the columns that say something of any run."""
    rows = [astuple(line.row) for line in lines]
    return [
        place
        for place, heading in enumerate(TABLE_HEADINGS)
        if heading in _ALWAYS or any(row[place] for row in rows)
    ]


def shortened(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def fields_of(run: RunStatus) -> dict[str, object]:
    """What `--sort` and `--filter` know of a run: its columns, its metrics, its arguments."""
    counted = [
        job.epoch if job.last_step is None else job.last_step
        for job in run.jobs
        if not (job.last_step is None and job.epoch is None)
    ]
    return {
        **named_values(run.command),
        **run.metrics,
        "run": run.name,
        "name": run.name,
        "note": run.note,
        "cluster": run.cluster,
        "on": run.cluster,
        "state": run.state.value,
        "jobs": len(run.jobs),
        "progress": counted[-1] if counted else None,
        "age": -run.created,
        "created": run.created,
        "project": str(run.about.get("project", "")),
        "queue": str(run.about.get("queue", "")),
        "account": str(run.about.get("account", "")),
        "commit": str(run.about.get("commit", "")),
    }


def known_keys(runs: Iterable[RunStatus]) -> list[str]:
    return sorted({key for run in runs for key in fields_of(run)} | {"tag"})


def is_wanted(run: RunStatus, condition: str) -> bool:
    """Whether `key=value` holds of the run, or the text is part of what its row says."""
    fields = fields_of(run)
    key, equals, value = condition.partition("=")
    if equals and key.strip().lstrip("-") in ("tag", "tags"):
        return value.strip().lstrip("#") in run.tags
    if equals and (name := _key(key, fields)):
        return _is_same(fields[name], value.strip())
    everything = [run.name, run.cluster, run.state.value, run.reason, *run.command]
    everything.append(labels_text(run.note, run.tags))
    return condition.lower() in " ".join(everything).lower()


def _key(typed: str, fields: dict[str, object]) -> str:
    plain = typed.strip().lstrip("-")
    return next((key for key in fields if key in (plain, typed.strip())), "")


def _is_same(mine: object, wanted: str) -> bool:
    number, other = _number(mine), _number(wanted)
    if number is not None and other is not None:
        return number == other
    return str("" if mine is None else mine).lower() == wanted.lower()


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    text = str(value)
    return float(text) if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text) else None


def sort_key(run: RunStatus, typed: str) -> tuple[int, float, str]:
    """Numbers by size, then words; runs of which nothing is known come last."""
    fields = fields_of(run)
    value = fields.get(_key(typed, fields)) if _key(typed, fields) else None
    number = _number(value)
    if number is not None and not math.isnan(number):
        return 0, number, ""
    return (1, 0.0, str(value).lower()) if value not in (None, "") else (2, 0.0, "")
