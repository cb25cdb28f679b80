"""A search: what is tried, and what became of it."""

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

_LESS_IS_BETTER = {
    "loss", "losses", "err", "error", "wer", "cer", "perplexity", "ppl", "mse", "mae", "rmse",
    "fid", "nll", "bpd", "kl", "time", "seconds", "latency", "distance", "regret",
}  # fmt: skip
_MORE_IS_BETTER = {
    "acc", "accuracy", "top1", "top5", "acc1", "acc5", "prec", "precision", "recall", "f1", "auc",
    "auroc", "map", "miou", "iou", "dice", "bleu", "rouge", "r2", "psnr", "ssim", "score", "reward",
    "return", "elbo", "likelihood",
}  # fmt: skip


@dataclass(frozen=True)
class Search:
    """The table [search] of rabaska.toml."""

    metric: str = ""
    goal: str | None = None  # "max" or "min"; None: guessed from the metric's name
    trials: int | None = None
    at_once: int | None = None
    method: str = "random"
    stopping: str = "none"
    first_report: int = 1
    reduction: int = 3
    take: str = "last"
    seed: int = 0
    trials_per_gpu: int = 1
    keep_best: int = 20
    keep_others: str = "checkpoint"
    repeats: int = 0
    repeat_best: int = 3
    seed_option: str = ""
    values_as: str | None = None
    file_option: str = "--config"
    space: Mapping[str, Any] = field(default_factory=dict)


def guessed_goal(metric: str) -> str | None:
    """`max` or `min`, by what a metric of that name measures; None where that is not known."""
    words = set(re.split(r"[^a-z0-9]+", metric.lower()))
    if words & _LESS_IS_BETTER:
        return "min"
    return "max" if words & _MORE_IS_BETTER else None


class SearchState(Enum):
    QUEUED = "queued"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"  # no more trials are begun, for all fail in the same way
    INTERRUPTED = "interrupted"  # no worker is left, and there is work
    UNKNOWN = "unknown"  # the queue did not tell of its workers

    @property
    def over(self) -> bool:
        return self in _OVER


_OVER = (
    SearchState.STOPPED,
    SearchState.FINISHED,
    SearchState.FAILED,
    SearchState.INTERRUPTED,
)

FINISHED, PRUNED, FAILED = "finished", "stopped early", "failed"
RUNNING, INTERRUPTED = "running", "interrupted"


@dataclass(frozen=True)
class Trial:
    """One trial, which is a run."""

    number: int
    run: str
    values: Mapping[str, Any]
    state: str  # FINISHED, PRUNED, FAILED, RUNNING or INTERRUPTED
    value: float | None = None  # of the metric
    why: str = ""  # it was stopped early, or failed
    seconds: float | None = None
    jobs: int | None = None
    reports: int = 0
    begun: float = 0.0
    ended: float | None = None
    tries: int = 1
    repeats: int = 0  # the trial that it repeats with another seed, or 0
    names: tuple[str, ...] = ()  # what it reported, where the metric was missing
    curve: tuple[tuple[int, float], ...] = ()
    told: Mapping[str, float | None] = field(default_factory=dict)  # last values, without a metric


@dataclass(frozen=True)
class SearchStatus:
    name: str
    cluster: str
    path: str
    state: SearchState
    metric: str
    goal: str
    method: str
    stopping: str
    total: int  # trials that there shall be
    at_once: int
    trials: tuple[Trial, ...]
    workers_running: int = 0
    workers_waiting: int = 0
    halted: str = ""  # why no more trials are begun
    reason: str = ""  # why it is not known whether there are workers
    now: float = 0.0  # by the clock of its cluster
    space: Mapping[str, Any] = field(default_factory=dict)
    workers: Mapping[str, Any] = field(default_factory=dict)  # how they were submitted
    plan: Mapping[str, Any] = field(default_factory=dict)  # of each trial's run
    spelled: Mapping[str, Any] = field(default_factory=dict)  # how values reach the program

    def count(self, state: str) -> int:
        return sum(trial.state == state for trial in self.trials)

    @property
    def ranked(self) -> tuple[Trial, ...]:
        """The best that finished first; then those that were stopped early, and the rest."""
        order = {FINISHED: 0, PRUNED: 2, RUNNING: 3, INTERRUPTED: 4, FAILED: 5}

        def key(trial: Trial) -> tuple[int, float, int]:
            worth = math.inf if trial.value is None else -trial.value * self._better
            # A repeat tells about the trial that it repeats, and is no better than that.
            place = order.get(trial.state, 6)
            return place + (1 if trial.repeats and not place else 0), worth, trial.number

        return tuple(sorted(self.trials, key=key))

    @property
    def _better(self) -> int:
        return 1 if self.goal == "max" else -1

    @property
    def best(self) -> Trial | None:
        first = next(iter(self.ranked), None)
        return first if first and first.state == FINISHED and first.value is not None else None

    @property
    def remaining(self) -> float | None:
        """Seconds until all trials are over, once ten were seen; None before."""
        seconds = [one.seconds for one in self.trials if one.ended and one.seconds is not None]
        left = self.total - sum(one.ended is not None for one in self.trials)
        if len(seconds) < 10 or left <= 0:
            return None
        return statistics.fmean(seconds) * left / max(1, min(self.at_once, left))


def ignored(trials: Sequence[Trial]) -> str:
    """Parameters that seem to change nothing: the same result for all their values; "" if none."""
    done = [
        one for one in trials if one.state == FINISHED and one.value is not None and not one.repeats
    ]
    names = dict.fromkeys(key for one in done for key in one.values)
    return ", ".join(name for name in names if _changes_nothing(name, done))


def _changes_nothing(name: str, done: Sequence[Trial]) -> bool:
    """Whether the result is the same to the last digit whatever `name` is, in three trials or more.

    Where others matter, trials are compared that differ in this one alone: a grid has such.
    """
    varied = [one for one in done if name in one.values]
    if len({repr(one.values[name]) for one in varied}) < 2:
        return False
    if len(varied) >= 3 and len({one.value for one in varied}) == 1:
        return True
    alike: dict[str, list[Trial]] = {}
    for one in varied:
        rest = repr(sorted((key, value) for key, value in one.values.items() if key != name))
        alike.setdefault(rest, []).append(one)
    pairs = [group for group in alike.values() if len(group) > 1]
    return len(pairs) > 1 and all(len({one.value for one in group}) == 1 for group in pairs)
