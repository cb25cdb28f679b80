"""A search in a folder, as its workers leave it: many trials, some stopped early, some failed."""

import json
import math
import os
from datetime import timedelta

from tests.node.made_runs import PLAN

from rabaska.domain.jobs import JobSpec, Resources
from rabaska.node.record.plan import to_json
from rabaska.node.search.study import Settings, Study
from rabaska.records.search_index import SearchRecord, enter
from rabaska.steps.plan_search import _workers

SPACE = {
    "lr": {"log": [1e-5, 1e-1]},
    "depth": {"int": [2, 8]},
    "optimizer": ["sgd", "adam"],
    "momentum": {"float": [0.0, 0.99], "when": {"optimizer": "sgd"}},
}


def values_of(number):
    """Spread over the space; `momentum` counts only for sgd."""
    spread = [number * share % 1 for share in (0.7548, 0.5698, 0.4302, 0.3247)]
    values = {
        "lr": float(f"{10 ** (-5 + 4 * spread[0]):.6g}"),
        "depth": 2 + int(7 * spread[1]),
        "optimizer": "sgd" if spread[2] < 0.5 else "adam",
    }
    return {**values, **({"momentum": spread[3]} if values["optimizer"] == "sgd" else {})}


def reached(values):
    """Nearly all that matters is the learning rate."""
    return 0.95 - 0.1 * abs(math.log10(values["lr"]) + 2.5) - 0.01 * abs(values["depth"] - 5)


def result_of(number):
    value = reached(values_of(number))
    curve = [[at, value * (1 - math.exp(-at / 3))] for at in range(1, 11)]
    told = {"ended": 1000.0 + number, "seconds": 3.0, "jobs": 1, "reports": 10, "curve": curve}
    if number % 10 == 3:
        return {**told, "state": "stopped early", "value": value / 2, "why": "fell behind"}
    if number % 50 == 7:
        return {**told, "state": "failed", "value": None, "why": "it crashed", "curve": []}
    return {**told, "state": "finished", "value": value, "why": ""}


def make_search(home, store, name="cats-7f3a", *, trials=60, cluster="away"):
    """The folder of a search that is over, entered into the list of this computer."""
    study = Study(f"{store}/searches/{name}")
    for number in range(1, trials + 1):
        os.makedirs(study.block(number), exist_ok=True)
        begun = {"values": values_of(number), "begun": 900.0 + number, "owner": {}, "repeats": 0}
        for what, content in ((".json", begun), (".result.json", result_of(number))):
            with open(study.file(number, what), "w") as file:
                json.dump(content, file)
    settings = {
        **dict.fromkeys(Settings._fields, 0), "given": SPACE, "metric": "val_accuracy",
        "goal": "max", "trials": trials, "method": "random", "stopping": "median", "at_once": 2,
        "take": "last", "keep_others": "all", "spelled": {}, "plan": to_json(PLAN), "growth": {},
        "workers": _workers(JobSpec(name, Resources(timedelta(hours=1)), ""), 1, 1),
        "first_report": 1, "reduction": 3,
    }  # fmt: skip
    with open(study.settings, "w") as file:
        json.dump(settings, file)
    record = SearchRecord(name, cluster, study.path, "", 1000.0)
    enter(home.searches, record)
    return record
