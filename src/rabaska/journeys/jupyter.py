"""Jupyter: a notebook server in a job, with code, data, environment and checkpoint in place."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from rabaska.domain.amounts import say_duration
from rabaska.domain.projects import EnvironmentRecipe, Project
from rabaska.domain.runs import Checks, Job, Labels
from rabaska.errors import RabaskaError
from rabaska.journeys.fetch import fetch
from rabaska.journeys.run import run
from rabaska.node.job.page_server import JUPYTER
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord, find, remembered
from rabaska.remote.web_programs import private_folder
from rabaska.steps.job_server import (
    ask_for,
    job_at_work,
    live_session,
    relayed,
    session,
    until_running,
)
from rabaska.steps.progress import Reporter
from rabaska.steps.query_status import status
from rabaska.steps.web_page import Page, served_page

USUAL_PORT = 8888
_SERVERS = re.compile(r"^(jupyterlab|notebook|jupyter|jupyter[-_]server)\b", re.I | re.M)
_WARNINGS = (600.0, 120.0)  # seconds before the time limit


@dataclass(frozen=True)
class Session:
    """A run with a notebook server, and its job."""

    record: RunRecord
    job: Job
    own: bool  # whether the run is nothing else


def started(
    project: Project, on: str, home: Home, reporter: Reporter, *, new: bool = False
) -> Session:
    """The session of this project that waits or runs, or a new one; when it runs."""
    record = None if new else live_session(JUPYTER, on, project.folder, home)
    if record is None:
        checkpoint = _checkpoint(project, on, home)
        options = ("--checkpoint", checkpoint) if checkpoint else ()
        wanted = session(project, JUPYTER, *options)
        wanted = replace(wanted, environment=_with_server(project.environment, reporter))
        labels = Labels(note="notebook", tags=(JUPYTER,))
        submitted = run(wanted, on, home, reporter, checks=Checks(wanted=False), labels=labels)
        record = find(home.runs, submitted.run)
    else:
        reporter.step(f"{record.name} is still there; `--new` starts another one")
    return Session(record, until_running(record, home, reporter), own=True)


def next_to(record: RunRecord, home: Home) -> Session:
    """A server in the job of a running program."""
    job = job_at_work(record, home)
    ask_for(JUPYTER, record, home)
    return Session(record, job, own=False)


def _with_server(recipe: EnvironmentRecipe, reporter: Reporter) -> EnvironmentRecipe:
    """The environment with JupyterLab, where it is made from a list that has none."""
    if recipe.kind != "virtualenv" or _SERVERS.search(recipe.requirements):
        return recipe
    reporter.step("jupyterlab is added to the packages for this job")
    return replace(recipe, requirements=f"{recipe.requirements.rstrip()}\njupyterlab\n")


def _checkpoint(project: Project, on: str, home: Home) -> str:
    """The newest valid one of the project's newest run there that has any; its path there."""
    for record in reversed(remembered(home.runs)):
        same = record.cluster == on and record.project == str(project.folder)
        if not same or JUPYTER in (record.tags or ()):
            continue
        found = status(record, home).checkpoint
        return f"{record.path}/{found.path}" if found else ""
    return ""


@contextmanager
def opened(
    session: Session, home: Home, reporter: Reporter, *, port: int | None = None
) -> Iterator[Page]:
    """Its page on this computer, until the block ends; the server goes on."""
    with (
        relayed(session.record, session.job, JUPYTER, home) as stream,
        private_folder() as folder,
    ):
        hello = stream.hello()
        over = threading.Event()
        if hello.ends is not None:
            warn = threading.Thread(target=_warn, args=(hello.ends, over, reporter), daemon=True)
            warn.start()
            left = timedelta(seconds=max(0, int(hello.ends - time.monotonic())))
            reporter.step(f"on {session.job.host}, for {say_duration(left)}")
        token = (("Authorization", f"token {hello.token}"),)
        try:
            with served_page(stream.connect, folder, port, USUAL_PORT, added=token) as page:
                yield page
        finally:
            over.set()


def _warn(ends: float, over: threading.Event, reporter: Reporter) -> None:
    """Say in time that the job will end."""
    for before in _WARNINGS:
        left = ends - time.monotonic()
        if left <= before:
            continue
        if over.wait(max(0.0, left - before)):
            return
        said = say_duration(timedelta(seconds=int(max(0.0, ends - time.monotonic()))))
        reporter.warn(f"the job ends in {said}; save your notebooks")
    if not over.wait(max(0.0, ends - time.monotonic())):
        reporter.warn("the job is at its time limit; what was saved is kept")


def brought_home(session: Session, home: Home, reporter: Reporter) -> Path | None:
    """Copy what was written in the session so far; where it is, if anything came."""
    with suppress(RabaskaError):
        fetched = fetch(session.record, home)
        return fetched.folder if fetched.written else None
    reporter.warn(f"nothing could be fetched now; `rabaska fetch {session.record.name}` does it")
    return None
