"""Pages as a browser gets them: a run in a folder of its own, on a cluster that may be cut off."""

import json

import pytest
from starlette.testclient import TestClient
from tests.node.made_runs import begin_job, make_run

from rabaska.errors import Unreachable
from rabaska.node.series.series_format import SeriesFile
from rabaska.pages.app import application
from rabaska.pages.guard import Guard
from rabaska.records import run_index
from rabaska.records.home import Home
from rabaska.remote.this_computer import Here
from rabaska.steps.live_runs import LiveRuns
from rabaska.steps.shown_runs import ShownRuns

ADDRESS = "http://127.0.0.1:8642"


class Desk:
    """Somebody's computer: its list of runs, and a cluster called `away`."""

    def __init__(self, folder, monkeypatch):
        self.home = Home(folder / "home")
        self.home.profiles.mkdir(parents=True)
        (self.home.profiles / "away.toml").write_text('title = "Away"\nscheduler = "local"\n')
        self.folder = folder
        self.is_cut = False
        really = Here.run

        def run(place, script, *, feed=b"", again=""):
            if self.is_cut:
                raise Unreachable("away does not answer", why="the cable is out")
            return really(place, script, feed=feed, again=again)

        monkeypatch.setattr(Here, "run", run)

    def add(self, name="cats-7f3a", *, note=None, tags=None, log="", **plan):
        """A run that began; its folder and its record."""
        run = make_run(self.folder / "store", name, **plan)
        begin_job(run)
        if log:
            with open(run.log(1), "w") as file:
                file.write(log)
        record = run_index.RunRecord(
            name, "away", run.path, "", 1_700_000_000.0, job_id="1", note=note, tags=tags
        )
        return run, run_index.enter(self.home.runs, record)

    def tells(self, run, name, values, start=0):
        file = SeriesFile(f"{run.path}/series/job-001.tsv", 1, 1000.0)
        for step, value in enumerate(values, start=start):
            file.add(name, "printed", step, 1000.0 + step, value)
        file.flush()

    def asks(self):
        """What is known of all runs is fetched, once."""
        self.shown.reload()
        records = self.shown.of_cluster("away", everything=True)
        self.shown.heard(LiveRuns(records, self.home).refresh(explained=True))

    def opens(self):
        """A browser that was given the token."""
        self.shown = ShownRuns(self.home)
        self.guard = Guard(application(self.shown), port=8642)
        browser = TestClient(self.guard, base_url=ADDRESS, headers={"origin": ADDRESS})
        browser.get(f"/?token={self.guard.token}")
        self.asks()
        return browser


@pytest.fixture
def desk(tmp_path, monkeypatch):
    return Desk(tmp_path, monkeypatch)


def parsed(text):
    return json.loads(text)
