"""Planted bottlenecks are named, healthy programs are not accused, and what is promised comes true.

The numbers were recorded from real runs of `planted.py` (see `observe`); a few are run here.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.bottlenecks.observe import CASES, RECORDED, observe, status_of

from rabaska.domain.bottlenecks import bottlenecks
from rabaska.domain.run_measures import Gpu, Measures, measures
from rabaska.domain.runs import RunState
from rabaska.views.bottlenecks import NOTHING_SLOW, bottleneck_views, pace, remarks

PLANTED = [name for name, case in CASES.items() if case.kind]
HEALTHY = [name for name, case in CASES.items() if not case.kind]
RECORDED_LONG_ENOUGH = 1.0  # seconds


def recorded(name: str):
    return json.loads((RECORDED / f"{name}.json").read_text())


def found(told):
    return bottlenecks(measures(status_of(told)), enough=RECORDED_LONG_ENOUGH)


@pytest.mark.parametrize("name", PLANTED)
def test_the_first_answer_is_what_was_planted(name):
    assert found(recorded(name))[0].kind == CASES[name].kind


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_program_is_not_accused(name):
    assert found(recorded(name)) == ()


def test_there_are_enough_of_each():
    assert len(PLANTED) >= 14
    assert len(HEALTHY) >= 6


@pytest.mark.parametrize("name", [name for name in PLANTED if CASES[name].after])
def test_the_remedy_gains_what_was_told(name):
    told = recorded(name)

    assert found(told)[0].gain == pytest.approx(told["gained"], rel=0.25)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("no-workers", " instead of `--workers 0` in the command"),
        ("saving", "instead of `--save-every 10` in the command"),
        ("validation", "`--eval-every 80` instead of `--eval-every 20` in the command"),
        ("decoding", "`cores = "),
        ("storage", '`as = "files"` in [data.NAME]'),
        ("swapping", '`memory = "5 GB"` in [resources]'),
        ("idle-gpu", "`gpus = 0` in [resources]"),
        ("one-idle-gpu", "`gpus = 1` in [resources]"),
        ("throttling", '`native = ["--exclude=n1"]` in [cluster.tamia]'),
        ("small-batches", "a batch size of 8"),
    ],
)
def test_the_remedy_is_a_line_to_change(name, line):
    assert line in found(recorded(name))[0].remedy


def test_of_a_slow_rank_the_process_and_its_node_are_named():
    told = recorded("slow-rank")
    (first, *_) = found(told)

    assert f"rank 1 on {told['ranks'][1]['host']}" in first.what
    assert "computes longer" in first.evidence
    assert "waits longer for its data" in found(recorded("slow-data-of-one-rank"))[0].evidence


def test_too_little_training_tells_nothing():
    assert bottlenecks(replace(measures(status_of(recorded("no-workers"))), seconds=4.9)) == ()


def test_a_program_that_nobody_watched_is_not_accused():
    assert bottlenecks(Measures(), enough=0.0) == ()
    assert bottlenecks(Measures(seconds=60.0, gpus=(Gpu("n1", "gpu0"),))) == ()


def test_workers_that_lack_a_core_are_not_said_to_wait_for_storage():
    starved = Measures(
        seconds=60.0, waiting=0.7, workers=1, cores=2, cores_used=0.5, cores_of_workers=0.2,
        workers_lacked=0.3,
    )  # fmt: skip

    assert [one.kind for one in bottlenecks(starved)] == ["too few workers"]
    (stuck,) = bottlenecks(replace(starved, workers_blocked=0.4))
    assert stuck.kind == "storage"


def slow_run():
    told = recorded("no-workers")
    told["speed"]["seconds"] = 60.0
    return status_of(told)


def test_status_tells_the_first_one_with_its_remedy():
    (remark,) = remarks(slow_run())

    assert remark.label == "slow"
    assert "waits for data" in remark.text
    assert "--workers" in remark.hint
    assert "times as fast" in remark.hint
    assert list(remarks(replace(slow_run(), state=RunState.CANCELLED))) == []


def test_what_is_well_is_said_to_be():
    told = recorded("healthy-gpu")
    told["speed"]["seconds"] = 60.0

    assert bottleneck_views(status_of(told)) == ()
    assert pace(status_of(told)) == NOTHING_SLOW
    assert pace(slow_run()) == ""


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("name", ["no-workers", "saving", "healthy-gpu"])
def test_a_program_that_runs_here_is_judged_in_the_same_way(tmp_path: Path, name):
    pytest.importorskip("torch")

    told = observe(tmp_path, name, seconds=2.0)

    assert [one.kind for one in found(told)[:1]] == [kind for kind in [CASES[name].kind] if kind]
