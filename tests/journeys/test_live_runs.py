"""Runs as they go on: one call per cluster, what is new only, and what was last seen."""

from pathlib import Path

import pytest
from tests.node.made_runs import begin_job, make_run

from rabaska.domain.runs import RunState
from rabaska.errors import Unreachable
from rabaska.node.series.series_format import SeriesFile
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.remote.this_computer import Here
from rabaska.steps import live_runs
from rabaska.steps.live_runs import LiveRuns


@pytest.fixture
def away(tmp_path):
    """A home, and a run on a cluster that has this computer's own queue."""
    home = Home(tmp_path / "home")
    home.profiles.mkdir(parents=True)
    (home.profiles / "away.toml").write_text('title = "Away"\nscheduler = "local"\n')
    run = make_run(tmp_path / "store")
    begin_job(run)
    record = RunRecord(run.name, "away", run.path, "", 0.0, job_id="1")
    return home, record


@pytest.fixture
def calls(monkeypatch):
    """The questions that were asked; a line that is cut answers none."""
    asked = []
    really = Here.run

    def counted(self, script, *, feed=b"", again=""):
        asked.append(feed)
        if getattr(counted, "cut", False):
            raise Unreachable("away does not answer", why="the cable is out")
        return really(self, script, feed=feed, again=again)

    monkeypatch.setattr(Here, "run", counted)
    asked.append(counted)
    return asked


def add(record, step, value):
    file = SeriesFile(f"{record.path}/series/job-001.tsv", 1, 1000.0)
    file.add("loss", "printed", step, 1000.0 + step, value)
    file.flush()


def test_each_refresh_brings_what_is_new_into_a_copy(away):
    home, record = away
    live = LiveRuns([record], home)
    add(record, 1, 0.5)
    live.refresh()
    add(record, 2, 0.25)

    (now,) = live.refresh()

    assert list(live.series(record)["loss"].values) == [0.5, 0.25]
    assert now.status.state is RunState.RUNNING
    assert (now.problem, now.arriving) == ("", False)
    assert list(home.live.glob("*/series/job-001.tsv"))


def test_two_runs_of_a_cluster_are_one_call(away, calls, tmp_path):
    home, record = away
    other = make_run(tmp_path / "store", "other-1234")
    second = RunRecord(other.name, "away", other.path, "", 0.0)
    live = LiveRuns([record, second], home)
    live.refresh()
    before = len(calls)

    live.refresh()

    assert len(calls) == before + 1


def test_what_was_last_seen_is_shown_when_the_cluster_does_not_answer(away, calls):
    home, record = away
    add(record, 1, 0.5)
    (seen,) = LiveRuns([record], home).refresh()
    calls[0].cut = True
    later = LiveRuns([record], home)

    (now,) = later.refresh()

    assert now.status == seen.status
    assert now.problem == "away does not answer: the cable is out"
    assert abs(now.heard - seen.heard) < 5
    assert list(later.series(record)["loss"].values) == [0.5]


def test_a_run_that_was_never_seen_says_why(away, calls):
    home, record = away
    calls[0].cut = True

    (now,) = LiveRuns([record], home).refresh()

    assert (now.status, now.heard) == (None, 0.0)
    assert "does not answer" in now.problem


def test_of_a_run_on_this_computer_no_copy_is_made(away):
    home, record = away
    record = RunRecord(record.name, "here", record.path, "", 0.0, job_id="1")
    add(record, 1, 0.5)
    live = LiveRuns([record], home)

    live.refresh()

    assert list(live.series(record)["loss"].values) == [0.5]
    assert not list(home.live.glob("*/series"))
    assert Path(live_runs.numbers_folder(home, record)) == Path(record.path)
