"""The commands as functions: the same verbs, typed results.

import rabaska

submitted = rabaska.run("path/to/project")
ended = rabaska.wait(submitted.run)
print(ended.state, ended.metrics)
rabaska.fetch(ended.name)
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rabaska.domain.clusters import Cluster
from rabaska.domain.jobs import JobId
from rabaska.domain.runs import RunStatus
from rabaska.journeys import cancel as _cancel
from rabaska.journeys import fetch as _fetch
from rabaska.journeys import init as _init
from rabaska.journeys import logs as _logs
from rabaska.journeys import pack as _pack
from rabaska.journeys import rehearse as _rehearse
from rabaska.journeys import resume as _resume
from rabaska.journeys import run as _run
from rabaska.journeys import show as _show
from rabaska.journeys import status as _status
from rabaska.journeys import wait as _wait
from rabaska.journeys.fetch import Fetched
from rabaska.journeys.init import Proposal
from rabaska.journeys.rehearse import Rehearsal, RehearsalOptions
from rabaska.journeys.run import Submitted
from rabaska.packing.make_pack import Pack
from rabaska.records.home import home, made_home
from rabaska.records.run_index import RunRecord, find, meant, remembered
from rabaska.settings.profile_files import names
from rabaska.settings.profiles import load_cluster
from rabaska.settings.project_file import load
from rabaska.steps import adopt as _adopt
from rabaska.steps.plan_run import PlannedRun

Folder = str | Path
Overrides = Mapping[str, object]


def init(folder: Folder = ".", *, overwrite: bool = False) -> Proposal:
    """Look at a project and write its rabaska.toml."""
    proposal = _init.init(Path(folder).absolute())
    _init.write(proposal, Path(folder).absolute() / "rabaska.toml", overwrite=overwrite)
    return proposal


def pack(folder: Folder = ".") -> tuple[Pack, ...]:
    """Pack every dataset of the project that changed."""
    return _pack.pack(load(Path(folder).absolute()), made_home())


def run(folder: Folder = ".", *, on: str = "here", overrides: Overrides | None = None) -> Submitted:
    """Carry the project to a cluster and start it; returns at once.

    `overrides` holds keys of rabaska.toml: `{"resources.walltime": "2h"}`.
    """
    return _run.run(load(Path(folder).absolute(), cluster=on, overrides=overrides), on, made_home())


def preview(folder: Folder = ".", *, on: str = "here") -> PlannedRun:
    """What `run` would submit, with nothing touched: `rabaska run --dry-run`."""
    return _run.preview(load(Path(folder).absolute(), cluster=on), on, home())


def rehearse(
    folder: Folder = ".", *, on: str = "here", wish: RehearsalOptions | None = None
) -> Rehearsal:
    """Interrupt short runs of the project, and compare them with one that was left alone."""
    project = load(Path(folder).absolute(), cluster=on)
    return _rehearse.rehearse(project, on, made_home(), wish or RehearsalOptions())


def status(run: str = "", *, on: str = "") -> RunStatus:
    """How a run stands. With `on`, here and below, it is looked for on that cluster too."""
    return _status.status(_record(run, on), home())


def statuses(*, on: str = "") -> Sequence[RunStatus]:
    """Every run this computer knows, oldest first; with `on`, every run on that cluster."""
    known = _adopt.adopt_all(on, home()).runs if on else remembered(home().runs)
    return _status.statuses(known, home())


def wait(run: str = "", *, on: str = "") -> RunStatus:
    return _wait.wait(_record(run, on), home())


def logs(
    run: str = "", *, follow: bool = False, job: int | None = None, on: str = ""
) -> Iterator[bytes]:
    return _logs.logs(_record(run, on), home(), follow=follow, job=job)


def cancel(run: str = "", *, on: str = "") -> RunStatus:
    return _cancel.cancel(_record(run, on), home())


def resume(run: str = "", *, jobs: int | None = None, on: str = "") -> JobId:
    return _resume.resume(_record(run, on), home(), jobs=jobs)


def fetch(run: str = "", *, to: Folder | None = None, on: str = "") -> Fetched:
    return _fetch.fetch(_record(run, on), home(), to=Path(to) if to else None)


def show(run: str = "", *, on: str = "") -> PlannedRun:
    return _show.show(_record(run, on), home())


def clusters() -> Sequence[Cluster]:
    return [load_cluster(name, user_profiles=home().profiles) for name in names(home().profiles)]


def _record(run: str, on: str) -> RunRecord:
    known = [each for each in remembered(home().runs) if on in ("", each.cluster)]
    if on and not (meant(known, run) if run else known):
        if run:
            return _adopt.adopt_one(run, on, home())
        _adopt.adopt_all(on, home())
    return find(home().runs, run, on=on)
