"""Run: pack what changed, snapshot the code, push, prepare, submit."""

import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from rabaska.domain.clusters import Cluster
from rabaska.domain.jobs import JobId
from rabaska.domain.projects import Project
from rabaska.domain.runs import new_name
from rabaska.journeys.pack import pack
from rabaska.journeys.prepare import prepare, resolve
from rabaska.journeys.push import push
from rabaska.journeys.snapshots import not_code, take_snapshot
from rabaska.journeys.station import Station, cluster_named, seen, sketch_station, station
from rabaska.journeys.submit import Voyage, create, submit, voyage
from rabaska.journeys.telling import Silent, Teller
from rabaska.packing.bundle import bundle
from rabaska.packing.pack import Pack
from rabaska.packing.snapshot import snapshot
from rabaska.records.home import Home
from rabaska.records.runs import RunRecord, remember
from rabaska.remote.git import own_files
from rabaska.remote.nowhere import Nowhere
from rabaska.settings.project import check_data


@dataclass(frozen=True)
class Submitted:
    run: str
    job: JobId
    cluster: str
    path: str  # the run folder on its cluster


def run(
    project: Project, on: str, home: Home, teller: Teller | None = None, *, advise: bool = True
) -> Submitted:
    teller = teller or Silent()
    if advise:
        from rabaska.journeys.advancing import check_advance

        check_advance(project, on, home, teller)
    _tell_of_the_profile(cluster_named(on, home), home, teller)
    there = station(on, home)
    if advise:
        from rabaska.journeys.doctor import warn

        warn(project, there, teller)
    return start(made_ready(project, there, home, teller), project, there, home, teller)


def start(ready: Voyage, project: Project, there: Station, home: Home, teller: Teller) -> Submitted:
    """Submit what is ready."""
    name, on, path = ready.plan.run, there.cluster.name, there.run_folder(ready.plan.run)
    record = RunRecord(name, on, path, str(project.folder), time.time())
    # Remembered first: whatever happens to this computer, no job runs that it does not know.
    remember(home.runs, record)
    create(ready, there, path)
    job = submit(ready.spec, there, teller=teller)
    remember(home.runs, replace(record, job=job.native))
    teller.step(f"run {name}: submitted to {on} as job {job}")
    return Submitted(run=name, job=job, cluster=on, path=path)


def _tell_of_the_profile(cluster: Cluster, home: Home, teller: Teller) -> None:
    """That a cluster is gone; and at first use what is not as its profile has it.

    Profiles hold facts that nobody could verify. They are held against the site once.
    """
    if cluster.farewell:
        teller.warn(cluster.farewell)
    elif cluster.probe and not cluster.is_here and seen(cluster.name, home) is None:
        from rabaska.journeys.visit import visit

        visit(cluster, home)
        found = seen(cluster.name, home)
        differing = [fact for fact in found.facts if fact.verdict == "differs"] if found else []
        for fact in differing:
            says = f"{fact.key} is {fact.says or 'not'} in the profile of {cluster.name}"
            teller.warn(f"{says}, and the cluster says: {fact.found}")


def made_ready(project: Project, there: Station, home: Home, teller: Teller) -> Voyage:
    """All that a job of the project needs, brought to its cluster; nothing is submitted."""
    check_data(project)
    # First of all: a package that is missing there would make everything else useless.
    environment = prepare(project.environment, there, teller, nodes=project.resources.nodes)
    packs = pack(project, home, teller)
    code = take_snapshot(project, home, teller)
    push(there, code, packs, teller)
    ready = voyage(project, new_name(project.name), there, code.digest, packs, environment.setup)
    _tell_of_limits(ready, there, teller)
    return ready


def preview(project: Project, on: str, home: Home, teller: Teller | None = None) -> Voyage:
    """What `run` would submit, with nothing packed, sent or written outside a temporary folder."""
    check_data(project)
    with tempfile.TemporaryDirectory() as scratch:
        there = sketch_station(on, home, program=bundle(Path(scratch)))
        unwanted = not_code(project, home)
        code = snapshot(project.folder, Path(scratch), exclude=unwanted, listed=own_files)
        packs = tuple(_not_yet_packed(dataset.name) for dataset in project.datasets)
        setup = resolve(project.environment, there, nodes=project.resources.nodes).setup
        ready = voyage(project, new_name(project.name), there, code.digest, packs, setup)
        _tell_of_limits(ready, there, teller or Silent())
        return ready


def _tell_of_limits(ready: Voyage, there: Station, teller: Teller) -> None:
    """What the cluster cannot do, and what could not be asked of it."""
    if isinstance(there.place, Nowhere):
        teller.warn(f"{there.place.why}; paths are shown as the profile spells them")
    for sentence in there.scheduler.unmet(ready.spec):
        teller.warn(sentence)


def _not_yet_packed(name: str) -> Pack:
    return Pack(
        identity=f"{name}-(packed first)", folder=Path(), files=0, bytes=0, shards=0, reused=False
    )
