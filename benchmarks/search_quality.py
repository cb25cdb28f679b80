"""What a search finds: beside Optuna with the same sampler, and with early stopping.

Functions whose minimum is known, and a small network that learns digits. Each is tried a hundred
times, by one worker, and that ten times with other seeds; medians are compared.
"""

import heapq
import importlib.util
import math
import random
import statistics
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from rows import Row
from search import settings_with

from rabaska.node.search import proposals, stopping
from rabaska.node.search import space as spaces
from rabaska.node.search.study import FINISHED, Trial

NAME = "search quality"
TRIALS, SEEDS, WORKERS, EPOCHS = 100, 10, 8, 27
_A = ((10, 3, 17, 3.5, 1.7, 8), (0.05, 10, 17, 0.1, 8, 14), (3, 3.5, 1.7, 10, 17, 8),
      (17, 8, 0.05, 10, 0.1, 14))  # fmt: skip
_P = ((1312, 1696, 5569, 124, 8283, 5886), (2329, 4135, 8307, 3736, 1004, 9991),
      (2348, 1451, 3522, 2883, 3047, 6650), (4047, 8828, 8732, 5743, 1091, 381))  # fmt: skip
_ALPHA = (1.0, 1.2, 3.0, 3.2)
_EVEN = {"float": [0.0, 1.0]}
Values = dict[str, Any]


def branin(at: Values) -> float:
    """Its minimum is 0.397887."""
    x, y = at["x"], at["y"]
    curve = y - 5.1 * x * x / (4 * math.pi**2) + 5 * x / math.pi - 6
    return curve * curve + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def hartmann(at: Values) -> float:
    """Its minimum is -3.32237."""
    point = [at[f"x{number}"] for number in range(6)]
    total = 0.0
    for weight, a, p in zip(_ALPHA, _A, _P, strict=True):
        distance = sum(
            width * (one - place / 1e4) ** 2 for width, one, place in zip(a, point, p, strict=True)
        )
        total -= weight * math.exp(-distance)
    return total


class Digits:
    """A network with one hidden layer that learns 8 x 8 images of digits, drawn with noise."""

    space: ClassVar[dict[str, Any]] = {
        "lr": {"log": [1e-3, 10.0]}, "hidden": {"int": [4, 48]}, "decay": {"log": [1e-6, 0.1]},
    }  # fmt: skip

    def __init__(self) -> None:
        drawn = np.random.default_rng(0)
        shapes = drawn.random((10, 64)) < 0.4
        self.y = drawn.integers(0, 10, 600)
        self.x = shapes[self.y] + drawn.normal(0, 1.1, (600, 64))

    def curve(self, at: Values, epochs: int) -> list[float]:
        """The accuracy on images that it does not learn from, after each epoch."""
        drawn = np.random.default_rng(1)
        x, y, test_x, test_y = self.x[:300], self.y[:300], self.x[300:], self.y[300:]
        first = drawn.normal(0, 0.2, (64, at["hidden"]))
        second = drawn.normal(0, 0.2, (at["hidden"], 10))
        told = []
        for _ in range(epochs):
            for part in np.array_split(drawn.permutation(300), 5):
                inner = np.tanh(x[part] @ first)
                guess = _softmax(inner @ second)
                guess[np.arange(len(part)), y[part]] -= 1
                guess /= len(part)
                back = (guess @ second.T) * (1 - inner**2)
                second -= at["lr"] * (inner.T @ guess + at["decay"] * second)
                first -= at["lr"] * (x[part].T @ back + at["decay"] * first)
            right = (np.tanh(test_x @ first) @ second).argmax(axis=1) == test_y
            told.append(float(right.mean()))
        return told

    def loss(self, at: Values) -> float:
        return 1 - max(self.curve(at, 6))


def _softmax(z: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True)


def run(*, quick: bool) -> list[Row]:
    seeds = 3 if quick else SEEDS
    digits = Digits()
    rows = _asha(digits)
    if importlib.util.find_spec("optuna") is None:
        return rows
    works: list[tuple[str, dict[str, Any], Callable[[Values], float]]] = [
        ("Branin", {"x": {"float": [-5.0, 10.0]}, "y": {"float": [0.0, 15.0]}}, branin),
        ("Hartmann-6", {f"x{number}": _EVEN for number in range(6)}, hartmann),
        ("digits, error", digits.space, digits.loss),
    ]
    for work, space, function in works:
        ours = statistics.median(_ours(space, function, seed) for seed in range(seeds))
        theirs = statistics.median(_optuna(space, function, seed) for seed in range(seeds))
        # As small as theirs, but for what six digits of a value leave out.
        rows.append(
            Row(f"{work}, best of {TRIALS} by TPE", "Optuna", ours, theirs,
                1 + (theirs - ours) / max(abs(theirs), 1e-9), 0.99, "")
        )  # fmt: skip
    return rows


def _ours(space: dict[str, Any], function: Callable[[Values], float], seed: int) -> float:
    from rabaska.node.search.sampler import OptunaMemory

    given = spaces.parameters(space)
    memory = OptunaMemory(
        settings_with(space=given, given=space, method="tpe", goal="min", seed=seed)
    )
    trials: list[Trial] = []
    for number in range(1, TRIALS + 1):
        values = memory.proposed(number, trials)
        result = {"state": FINISHED, "value": function(values)}
        trials.append(Trial(number, values, 0.0, {}, result=result))
    return min(float((one.result or {})["value"]) for one in trials)


def _optuna(space: dict[str, Any], function: Callable[[Values], float], seed: int) -> float:
    import optuna  # type: ignore[import-untyped,import-not-found,unused-ignore]

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    given = spaces.parameters(space)

    def objective(trial: Any) -> float:
        values = {
            one.name: trial.suggest_int(one.name, int(one.low), int(one.high))
            if one.whole
            else trial.suggest_float(one.name, one.low, one.high, log=one.kind == spaces.LOG)
            for one in given
        }
        return function(values)

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(objective, n_trials=TRIALS)
    return float(study.best_value)


def _asha(digits: Digits) -> list[Row]:
    """The rule with real curves: eight workers, which each take a report's time for a report."""
    rule, chosen = (
        stopping.Rule(stopping.ASHA, 1),
        settings_with(space=spaces.parameters(digits.space), given=digits.space),
    )
    curves = {
        number: digits.curve(proposals.values_of(chosen, number) or {}, EPOCHS)
        for number in range(1, TRIALS + 1)
    }
    full = max(max(curve) for curve in curves.values())
    spent, best = _stopped_early(rule, curves)
    share = spent / (TRIALS * EPOCHS)
    return [
        Row("digits by ASHA, epochs", f"{TRIALS} full trials", spent, TRIALS * EPOCHS, 1 / share,
            4.0, ""),
        Row("digits by ASHA, accuracy", f"{TRIALS} full trials", best, full, best / full, 1.0, ""),
    ]  # fmt: skip


def _stopped_early(rule: stopping.Rule, curves: dict[int, list[float]]) -> tuple[int, float]:
    """The epochs that all trials took together, and the best value."""
    drawn, waiting = random.Random(0), list(curves)
    reports: dict[int, list[float]] = {}
    running: list[tuple[float, int]] = []
    spent, best, now = 0, 0.0, 0.0
    while waiting or running:
        while waiting and len(running) < WORKERS:
            reports[waiting[0]] = []
            heapq.heappush(running, (now + drawn.random(), waiting.pop(0)))
        now, number = heapq.heappop(running)
        own = reports[number]
        own.append(curves[number][len(own)])
        spent, best = spent + 1, max(best, own[-1])
        others = [told for other, told in reports.items() if other != number and told]
        if len(own) < EPOCHS and not stopping.why_stop(rule, number, own, others):
            heapq.heappush(running, (now + 1, number))
    return spent, best
