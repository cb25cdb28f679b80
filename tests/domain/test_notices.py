"""What is told of a run, and what is not."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.screen.watched_runs import NOW, curve, seen

from rabaska.domain.notices import Limits, notices, refused_address
from rabaska.domain.runs import Phase, RunState

LIMITS = Limits(stalled_after=timedelta(minutes=30), idle_after=timedelta(minutes=15))


def told(run, curves=None, vitals=None, limits=LIMITS):
    return [notice.kind for notice in notices(run, curves or {}, vitals or {}, limits)]


def at_work(phase="training", since=NOW - 7200, **more):
    run = seen(**more).run
    job = replace(run.jobs[-1], began=since - 60, phase=Phase(phase, since))
    return replace(run, jobs=(*run.jobs[:-1], job))


@pytest.mark.parametrize(
    ("state", "kinds"),
    [
        (RunState.FINISHED, ["ends"]),
        (RunState.FAILED, ["fails"]),
        (RunState.INTERRUPTED, ["fails"]),
        (RunState.GONE, ["fails"]),
        (RunState.CANCELLED, []),
        (RunState.RUNNING, []),
        (RunState.QUEUED, []),
    ],
)
def test_ends_are_told_and_who_cancelled_knows(state, kinds):
    assert told(seen(state=state).run) == kinds


def test_a_program_that_reports_nothing_for_long_stalls():
    silent = curve("loss", [1.0] * 60, began=NOW - 3600, every=1.0)
    busy = curve("loss", [1.0] * 60, began=NOW - 60, every=1.0)

    assert told(at_work(), {"loss": silent}) == ["stalls"]
    assert told(at_work(), {"loss": silent, "accuracy": busy}) == []


def test_a_program_that_was_as_slow_before_does_not_stall():
    slow = curve("loss", [1.0] * 3, began=NOW - 4 * 1800, every=1800.0)

    assert told(at_work(since=NOW - 20000), {"loss": slow}) == []


def test_a_job_that_resumed_a_moment_ago_does_not_stall():
    before = curve("loss", [1.0] * 60, began=NOW - 9000, every=1.0)

    assert told(at_work(since=NOW - 60), {"loss": before}) == []


def test_a_program_that_loads_for_very_long_stalls():
    assert told(at_work("loading", NOW - 2400)) == []
    assert told(at_work("loading", NOW - 4000)) == ["stalls"]


def test_a_gpu_that_does_nothing_is_told_and_a_busy_one_is_not():
    idle = {"n2": {"gpu0 use": curve("gpu0 use", [0.01] * 1000, "fraction", NOW - 1000)}}
    busy = {"n2": {"gpu0 use": curve("gpu0 use", [0.01] * 990 + [0.8] * 10, "", NOW - 1000)}}
    brief = {"n2": {"gpu0 use": curve("gpu0 use", [0.01] * 100, "fraction", NOW - 100)}}

    assert told(at_work(), vitals=idle) == ["idles"]
    assert told(at_work(), vitals=busy) == []
    assert told(at_work(), vitals=brief) == []
    assert told(at_work("staging"), vitals=idle) == []


def test_only_what_was_asked_for_is_told():
    assert told(seen(state=RunState.FINISHED).run, limits=Limits(when=("fails",))) == []


def test_the_same_end_has_the_same_key_and_the_next_end_another():
    run = seen(state=RunState.FAILED).run
    first, again = (notices(each, {}, {}, LIMITS)[0].key for each in (run, run))
    later = notices(replace(run, jobs=(*run.jobs, run.jobs[-1])), {}, {}, LIMITS)[0].key

    assert first == again != later


@pytest.mark.parametrize(
    ("address", "token", "is_used"),
    [
        ("https://ntfy.sh/topic", "", True),
        ("https://ntfy.sh/topic", "secret", True),
        ("http://ntfy.lan/topic", "", True),
        ("http://ntfy.lan/topic", "secret", False),
        ("http://localhost:8080/x", "secret", True),
        ("file:///etc/passwd", "", False),
        ("ntfy.sh/topic", "", False),
        ("https://[", "", False),
    ],
)
def test_addresses_that_would_leak_or_are_none_are_refused(address, token, is_used):
    assert (refused_address(address, token) == "") is is_used
