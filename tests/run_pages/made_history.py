"""A run with jobs, a plan, curves and vitals, as a page is made of them."""

from array import array
from dataclasses import replace

from rabaska.domain.curves import Curve
from rabaska.domain.runs import Checkpoint, Job, Phase, RunState, RunStatus
from rabaska.node.record.plan import (
    CHANGED,
    JobRequest,
    Origin,
    Plan,
    RequestedResources,
    StagedData,
)
from rabaska.records.run_index import RunRecord
from rabaska.steps.run_history import RunHistory

BEGAN = 1_700_000_000.0
COMMIT = "1f" * 20


def curve(name, values, source="printed", every=10, steps=True, start=BEGAN):
    places = range(len(values))
    return Curve(
        name,
        source,
        array("d", [place * every for place in places] if steps else []),
        array("d", [start + place for place in places]),
        array("d", values),
    )


JOBS = (
    Job(
        1, "7_1", "n1", began=BEGAN, ended=BEGAN + 100, how="time limit", signal=15, first_step=0,
        last_step=100, phase=Phase(spent={"staging": 10.0, "loading": 5.0, "training": 80.0}),
        reason="the time limit of the job was near",
    ),
    Job(
        2, "7_2", "n2", began=BEGAN + 130, ended=BEGAN + 230, how="crashed", exit_code=3,
        first_step=50, last_step=150, steps_redone=50, resumed_from="output/step-50.pt",
        phase=Phase(spent={"loading": 20.0, "training": 80.0}),
    ),
)  # fmt: skip
PLAN = Plan(
    run="cats-7f3a", command=["python", "train.py", "--data", "{data}", "--lr", "0.1"], resume=[],
    code="ab" * 16, datasets=[StagedData("cats", "cats-96b548c135d5", "files")], patterns=[],
    keep=[], variables={"OMP_NUM_THREADS": "1"}, walltime=100.0, grace=10.0, signal="TERM", jobs=4,
    progress="",
    origin=Origin(project="cats", cluster="campus", scheduler="slurm", commit=COMMIT, tree=CHANGED),
    request=JobRequest(
        resources=RequestedResources(walltime=100.0, gpus=2, nodes=2), setup=["module load cuda"]
    ),
    secrets=("TOKEN",), id="c0ffee" * 5,
)  # fmt: skip
STATUS = RunStatus(
    "cats-7f3a", "campus", RunState.FAILED, reason="the program failed", jobs=JOBS,
    jobs_requested=4, checkpoint=Checkpoint("output/step-100.pt", 4000, BEGAN + 200),
    metrics={"loss": 0.5, "odd": None}, command=("python", "train.py", "--lr", "0.1"),
    about={"project": "cats", "resources": {"gpus": 2, "nodes": 2}}, tail="Killed",
    created=BEGAN - 60, now=BEGAN + 300,
)  # fmt: skip


def history(name="cats-7f3a", **changes):
    given = {
        "record": RunRecord(name, "campus", f"/runs/{name}", "", BEGAN),
        "status": replace(STATUS, name=name),
        "plan": PLAN._replace(run=name),
        "script": "#!/bin/bash\nexec train\n",
        "curves": {
            "train/loss": curve("train/loss", [2.0, 1.0, float("nan"), 0.5]),
            "val/loss": curve("val/loss", [2.5, 1.5]),
            "lr": curve("lr", [0.1, 0.01]),
        },
        "vitals": {
            "n1": {
                "gpu0 power": curve(
                    "gpu0 power", [360.0] * 50 + [359.0, 361.0] + [360.0] * 49, "W", steps=False
                )
            }
        },
        "seen": BEGAN + 300,
    }
    return RunHistory(**{**given, **changes})
