"""Runs to show, made by hand, and a watch that gives them."""

import math
from array import array
from dataclasses import replace
from types import SimpleNamespace

from rabaska.domain.curves import Curve
from rabaska.domain.runs import Checkpoint, Job, Phase, RunForecast, RunState, RunStatus
from rabaska.journeys.watch import Seen
from rabaska.records.run_index import RunRecord

NOW = 1_763_440_000.0


def curve(name, values, source="printed", began=NOW - 600, every=1.0):
    places = range(len(values))
    return Curve(
        name,
        source,
        array("d", places),
        array("d", (began + every * place for place in places)),
        array("d", values),
    )


def losses(count=200):
    return [math.exp(-place / 50) for place in range(count)]


def seen(name="cats-7f3a", cluster="campus", state=RunState.RUNNING, **more):
    record = RunRecord(name, cluster, f"/store/runs/{name}", "", NOW - 700, id="0" * 32)
    run = RunStatus(
        name=name,
        cluster=cluster,
        state=state,
        jobs_requested=3,
        jobs=(
            Job(1, "7_1", "n1", began=NOW - 600, ended=NOW - 300, how="time limit",
                signal=15, first_step=1, last_step=100,
                phase=Phase(spent={"staging": 60.0})),
            Job(2, "7_2", "n2", began=NOW - 200, first_step=90, last_step=199,
                resumed_from="output/checkpoint-0090.pt",
                phase=Phase("training", NOW - 150, {"staging": 50.0})),
        ),
        forecast=RunForecast("epoch", 3.0, 40.0, 60.0, 5.0, 8, NOW + 3600),
        checkpoint=Checkpoint("output/checkpoint-0190.pt", 4_300_000, NOW - 20),
        metrics={"loss": 0.0187},
        tail="epoch 3\nstep 198 loss 0.02\nstep 199 loss 0.0187",
        created=NOW - 700,
        now=NOW,
    )  # fmt: skip
    found = Seen(
        record,
        run,
        NOW,
        curves={"val/loss": curve("val/loss", losses(20)), "loss": curve("loss", losses())},
        vitals={"n2": {"gpu0 use": curve("gpu0 use", [0.9] * 60, "fraction", NOW - 60)}},
    )
    own = {key: more.pop(key) for key in list(more) if hasattr(found, key)}
    return replace(found, **{"run": replace(run, **more), **own})


class SmallWatch:
    """Gives what it was given; `then` replaces it when a cluster is asked."""

    def __init__(self, *runs, then=()):
        self.runs = list(runs)
        self.then = list(then)
        self.asked = 0
        self.sync = SimpleNamespace()

    @property
    def clusters(self):
        return list(dict.fromkeys(each.record.cluster for each in self.runs))

    def seen(self):
        return list(self.runs)

    def of(self, cluster):
        return [each for each in self.runs if each.record.cluster == cluster]

    def open(self, key):
        self.opened = key

    def refresh(self, cluster):
        self.asked += 1
        if self.then:
            self.runs = list(self.then.pop(0))
        return False
