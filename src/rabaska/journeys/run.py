"""Run: pack what changed, snapshot the code, push, prepare, submit."""

import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rabaska.checkup.command import missing_script
from rabaska.checkup.subject import sent_names
from rabaska.domain.clusters import Cluster
from rabaska.domain.jobs import JobId
from rabaska.domain.launching import check_launch
from rabaska.domain.projects import Project
from rabaska.domain.runs import Draw, names_for, new_name
from rabaska.errors import SettingsError
from rabaska.journeys.pack import pack
from rabaska.journeys.prepare import prepare, resolve
from rabaska.journeys.push import push
from rabaska.journeys.secrets import collected, promised
from rabaska.journeys.snapshots import take_snapshot, taken
from rabaska.journeys.station import Station, cluster_named, seen, sketch_station, station
from rabaska.journeys.submit import (
    Making,
    NameTaken,
    Voyage,
    create,
    job_spec,
    submit,
    voyage,
)
from rabaska.journeys.telling import Silent, Teller
from rabaska.packing.bundle import bundle
from rabaska.packing.pack import Pack
from rabaska.records.home import Home
from rabaska.records.runs import RunRecord, enter, forget, remember
from rabaska.remote.nowhere import Nowhere
from rabaska.settings.project import check_data, check_filled


@dataclass(frozen=True)
class Submitted:
    run: str
    job_id: JobId
    cluster: str
    path: str  # the run folder on its cluster


def run(
    project: Project,
    on: str,
    home: Home,
    teller: Teller | None = None,
    *,
    advise: bool = True,
    draw: Draw | None = None,
) -> Submitted:
    """Start a run; names are made of what `draw` gives."""
    teller = teller or Silent()
    check_filled(project)
    if advise:
        check_script(project)
        from rabaska.journeys.advancing import check_advance

        check_advance(project, on, home, teller)
    _tell_of_the_profile(cluster_named(on, home), home, teller)
    there = station(on, home)
    if advise:
        from rabaska.journeys.doctor import warn

        warn(project, there, teller)
    making = made_ready(project, there, home, teller)
    if advise:
        from rabaska.journeys.advancing import tell_if_alone

        tell_if_alone(project, on, home, making(new_name(project.name)).plan, teller)
    return start(making, names_for(project.name, draw), project, there, home, teller)


def start(
    making: Making,
    names: Iterator[str],
    project: Project,
    there: Station,
    home: Home,
    teller: Teller,
) -> Submitted:
    """Submit what is ready, under the first name that no other run has, here or there."""
    ready, record = _created(making, names, project, there, home)
    try:
        job = submit(ready.spec, there, teller=teller)
    except KeyboardInterrupt:
        told = f"`rabaska status {record.name}` shows what became of it"
        teller.warn(f"run {record.name} was being submitted; {told}")
        raise
    remember(home.runs, replace(record, job_id=job.native))
    teller.step(f"run {record.name}: submitted to {record.cluster}, id {job}")
    return Submitted(run=record.name, job_id=job, cluster=record.cluster, path=record.path)


def _created(
    making: Making, names: Iterator[str], project: Project, there: Station, home: Home
) -> tuple[Voyage, RunRecord]:
    for name in names:
        ready, path = making(name), there.run_folder(name)
        # Remembered first: whatever happens to this computer, no job runs that it does not know.
        record = enter(home.runs, _record(ready, path, project, there))
        if record is None:
            continue  # another run of this computer is called so
        try:
            create(ready, there, path)
        except NameTaken:
            forget(home.runs, record)
            continue
        return ready, record
    raise AssertionError("names never end")


def _record(ready: Voyage, path: str, project: Project, there: Station) -> RunRecord:
    name, on, folder = ready.plan.run, there.cluster.name, str(project.folder)
    identity, called = ready.plan.id, project.name
    return RunRecord(name, on, path, folder, time.time(), id=identity, called=called)


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


def made_ready(project: Project, there: Station, home: Home, teller: Teller) -> Making:
    """All that a job of the project needs, brought to its cluster; nothing is submitted."""
    check_data(project)
    check_launch(
        job_spec(project, project.name, there), there.cluster, there.scheduler.capabilities
    )
    secrets = collected(project.environment, os.environ, teller)
    # First of all: a package that is missing there would make everything else useless.
    environment = prepare(project.environment, there, teller, nodes=project.resources.nodes)
    packs = pack(project, home, teller)
    code = take_snapshot(project, home, teller)
    push(there, code, packs, teller)

    def making(name: str) -> Voyage:
        return voyage(project, name, there, code.digest, packs, environment.setup, secrets)

    _tell_of_limits(making(new_name(project.name)), there, teller)
    return making


def check_script(project: Project) -> None:
    """Refuse a command whose script is not sent: its job would wait in the queue for nothing."""
    found = missing_script(project, sent_names(project))
    if found:
        raise SettingsError(found.what, why=found.why, hint=found.fix)


def preview(
    project: Project, on: str, home: Home, teller: Teller | None = None, *, advise: bool = True
) -> Voyage:
    """What `run` would submit, with nothing packed, sent or written outside a temporary folder."""
    check_filled(project)
    check_data(project)
    if advise:
        check_script(project)
    with tempfile.TemporaryDirectory() as scratch:
        there = sketch_station(on, home, program=bundle(Path(scratch)))
        check_launch(
            job_spec(project, project.name, there), there.cluster, there.scheduler.capabilities
        )
        code = taken(project, home, Path(scratch), teller or Silent())
        packs = tuple(_not_yet_packed(dataset.name) for dataset in project.datasets)
        setup = resolve(project.environment, there, nodes=project.resources.nodes).setup
        secrets = promised(project.environment)
        ready = voyage(project, new_name(project.name), there, code.digest, packs, setup, secrets)
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
