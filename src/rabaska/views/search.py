"""What a person sees of a search: its plan, its state, its table and its best trial."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from rabaska.domain.amounts import say_duration
from rabaska.domain.repeats import mean_text, repeated, rivals
from rabaska.domain.search import (
    FAILED,
    FINISHED,
    INTERRUPTED,
    PRUNED,
    RUNNING,
    SearchState,
    SearchStatus,
    Trial,
    ignored,
)
from rabaska.errors import WrongUse
from rabaska.node.search.trial_run import as_text
from rabaska.steps.plan_search import PlannedSearch
from rabaska.views.words import NOTE, WARNING, Remark, counted

# How each state is painted.
TONES = {
    SearchState.QUEUED: "waiting",
    SearchState.RUNNING: "active",
    SearchState.STOPPING: "caution",
    SearchState.STOPPED: "caution",
    SearchState.FINISHED: "good",
    SearchState.FAILED: "bad",
    SearchState.INTERRUPTED: "caution",
    SearchState.UNKNOWN: "unclear",
}
_WHY = 70  # characters of a reason in the table
_TOLD = 4  # metrics of a sweep that are compared side by side


@dataclass(frozen=True)
class Table:
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[str, ...]


def plan_lines(planned: PlannedSearch) -> list[str]:
    """What `search run` would submit."""
    search, spec = planned.search, planned.spec
    walltime = say_duration(spec.resources.walltime)
    jobs = spec.jobs * planned.submissions
    gpus = spec.resources.gpus * spec.resources.nodes
    hours = _hours(planned.hours, gpus)
    more = (
        f"; while trials are left, workers submit more, {_hours(planned.most_hours, gpus)} at most"
    )
    each = f", {planned.slots} trials in each" if planned.slots > 1 else ""
    trials = counted(search.trials or 0, "trial")
    stopping = f", early stopping by {search.stopping}" if search.stopping != "none" else ""
    repeats = (
        f", then the best {search.repeat_best} with {counted(search.repeats, 'other seed')} each"
        if search.repeats
        else ""
    )
    return [
        f"search {planned.name}: {trials} by {search.method}{stopping}{repeats}",
        f"at once: {planned.at_once}",
        f"jobs: {jobs} of {walltime} each{each}; {hours} at most{more if planned.grows else ''}",
        f"command of a trial: {' '.join(planned.trial.plan.command)} …",
        *(f"  {name}: {_spread(given)}" for name, given in search.space.items()),
        "",
        *planned.script.splitlines(),
    ]


def _hours(hours: float, gpus: int) -> str:
    return f"{hours * gpus:,.4g} GPU-hours" if gpus else f"{hours:,.4g} hours of jobs"


def _spread(given: Any) -> str:
    if isinstance(given, list):
        return ", ".join(as_text(one) for one in given)
    return ", ".join(f"{key} {value}" for key, value in given.items())


def status_lines(found: SearchStatus) -> list[str]:
    done = found.count(FINISHED) + found.count(PRUNED) + found.count(FAILED)
    parts = [f"{done} of {counted(found.total, 'trial')} done"]
    for state, word in ((PRUNED, "stopped early"), (FAILED, "failed"), (RUNNING, "running")):
        if found.count(state):
            parts.append(f"{found.count(state)} {word}")
    if found.count(INTERRUPTED):
        parts.append(f"{found.count(INTERRUPTED)} interrupted")
    state = f"{found.state.value} ({found.reason})" if found.reason else found.state.value
    lines = [f"search {found.name} on {found.cluster}  {state}", ", ".join(parts)]
    workers = [
        f"{count} {word}"
        for count, word in ((found.workers_running, "running"), (found.workers_waiting, "waiting"))
        if count
    ]
    if workers:
        lines.append(f"jobs of workers: {', '.join(workers)}")
    lines += _best_lines(found)
    if found.remaining is not None and not found.state.over:
        lines.append(f"about {say_duration(timedelta(seconds=math.ceil(found.remaining)))} to go")
    return [*lines, *(str(remark) for remark in remarks(found))]


def _best_lines(found: SearchStatus) -> list[str]:
    if found.best is None:
        return []
    ranked = repeated(found)
    if not ranked:
        return [f"best: {_trial_text(found, found.best)}"]
    close = rivals(ranked)
    numbers = ", ".join(str(one.trial.number) for one in (ranked[0], *close))
    first = f"best: {_trial_text(found, ranked[0].trial)}"
    each = [
        f"  trial {one.trial.number}, {found.metric} {mean_text(one)} with "
        f"{counted(len(one.values), 'other seed')}"
        for one in ranked
    ]
    if close:
        first = f"best: trials {numbers}, which differ by no more than chance"
    return [first, *each]


def _trial_text(found: SearchStatus, trial: Trial) -> str:
    values = " ".join(f"{name}={_value(value)}" for name, value in trial.values.items())
    return f"trial {trial.number}, {found.metric} {_number(trial.value)}, {values}"


def remarks(found: SearchStatus) -> list[Remark]:
    """What its user should know beside the table."""
    told = []
    if found.halted:
        told.append(
            Remark(WARNING, "stopped", f"{found.halted}; correct that, then `rabaska search run`")
        )
    elif full := next((one for one in found.trials if one.state == INTERRUPTED and one.why), None):
        text = f"{full.why}; free some space, then `rabaska search more 0 {found.name}`"
        told.append(Remark(WARNING, f"trial {full.number}", text))
    elif nameless := next((one for one in found.trials if one.names), None):
        told.append(Remark(WARNING, f"trial {nameless.number}", nameless.why))
    same = ignored(found.trials)
    if same:
        text = f"{found.metric} is the same to the last digit for all values of {same}"
        told.append(Remark(WARNING, "warning", f"{text}; the program may ignore it"))
    if found.state in (SearchState.INTERRUPTED, SearchState.STOPPED):
        left = found.total - sum(one.ended is not None for one in found.trials)
        text = f"{counted(left, 'trial')} left; `rabaska search more 0 {found.name}` continues"
        told.append(Remark(NOTE, "note", text))
    return told


def best_lines(found: SearchStatus, trial: Trial, arguments: str) -> list[str]:
    command = f"rabaska run --trial {trial.number} --of {found.name}"
    by_hand = f"rabaska run -- {arguments}" if arguments else ""
    seeds = [
        f"with {counted(len(one.values), 'other seed')}: {found.metric} {mean_text(one)}"
        for one in repeated(found)
        if one.trial == trial
    ]
    return [
        _trial_text(found, trial),
        *seeds,
        f"run: {trial.run}",
        f"again, at full length: {command}",
        *([f"or: {by_hand}"] if by_hand else []),
    ]


def table(found: SearchStatus, *, sort: str = "", first: int | None = None) -> Table:
    """The best first, or sorted as somebody wants."""
    names = tuple(
        dict.fromkeys((*found.space, *(key for one in found.trials for key in one.values)))
    )
    trials = _sorted(found, names, sort)[:first]
    told = tuple(dict.fromkeys(key for one in found.trials for key in one.told))[:_TOLD]
    metric = (found.metric,) if found.metric else told
    headings = ("trial", *metric, *names, "state", "time", "why")
    rows = tuple(_row(trial, names, () if found.metric else told) for trial in trials)
    if found.metric:
        rows = tuple(
            (row[0], _number(one.value), *row[1:]) for row, one in zip(rows, trials, strict=True)
        )
    return Table(headings, rows, ("trial", *metric, *names, "time"))


def _sorted(found: SearchStatus, names: Sequence[str], sort: str) -> Sequence[Trial]:
    if not sort:
        return found.ranked
    if sort in ("number", "trial"):
        return found.trials
    if sort not in names:
        raise WrongUse(
            f"there is no column `{sort}`", hint=f"the columns are number, {', '.join(names)}"
        )

    def key(trial: Trial) -> tuple[bool, float, str]:
        value = trial.values.get(sort)
        if isinstance(value, int | float):
            return False, float(value), ""
        return value is None, 0.0, str(value)

    return sorted(found.trials, key=key)


def _row(trial: Trial, names: Sequence[str], told: Sequence[str]) -> tuple[str, ...]:
    values = (_value(trial.values[name]) if name in trial.values else "" for name in names)
    spent = "" if trial.seconds is None else say_duration(timedelta(seconds=round(trial.seconds)))
    why = f"repeats trial {trial.repeats}" if trial.repeats and not trial.why else trial.why
    why = why if len(why) <= _WHY else why[: _WHY - 1] + "…"
    last = (_number(trial.told.get(name)) for name in told)
    return (str(trial.number), *last, *values, trial.state, spent, why)


def _value(value: Any) -> str:
    """As people read it; the command that runs a trial again has all digits."""
    return f"{value:.6g}" if isinstance(value, float) else as_text(value)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def trial_json(trial: Trial) -> dict[str, Any]:
    return {
        "number": trial.number,
        "run": trial.run,
        "values": dict(trial.values),
        "state": trial.state,
        "value": trial.value,
        "why": trial.why,
        "seconds": trial.seconds,
        "jobs": trial.jobs,
        "reports": trial.reports,
        "begun": trial.begun,
        "ended": trial.ended,
        "repeats": trial.repeats or None,
        "curve": [[at, None if math.isnan(value) else value] for at, value in trial.curve],
    }


def search_json(found: SearchStatus) -> dict[str, Any]:
    return {
        "search": found.name,
        "cluster": found.cluster,
        "path": found.path,
        "state": found.state.value,
        "metric": found.metric,
        "goal": found.goal,
        "method": found.method,
        "stopping": found.stopping,
        "total": found.total,
        "best": trial_json(found.best) if found.best else None,
        "workers": {"running": found.workers_running, "waiting": found.workers_waiting},
        "repeated": [
            {
                "trial": one.trial.number,
                "mean": one.mean,
                "spread": one.spread,
                "values": list(one.values),
            }
            for one in repeated(found)
        ],
        "halted": found.halted,
        "reason": found.reason,
        "remaining": found.remaining,
        "trials": [trial_json(trial) for trial in found.ranked],
    }
