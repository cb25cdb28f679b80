"""Run: pack what changed, snapshot the code, push, prepare, submit."""

import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rabaska.checkup.check_command import missing_script
from rabaska.checkup.subject import sent_names
from rabaska.domain.clusters import Cluster
from rabaska.domain.job_request import check_launch
from rabaska.domain.jobs import JobId
from rabaska.domain.projects import Project
from rabaska.domain.runs import Draw, names_for, new_name
from rabaska.errors import SettingsError
from rabaska.journeys.pack import pack
from rabaska.packing.make_pack import Pack
from rabaska.packing.node_bundle import bundle
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord, enter, forget, remember
from rabaska.remote.place import Nowhere
from rabaska.settings.project_file import check_data, check_filled
from rabaska.steps.carry import push, take_snapshot, taken
from rabaska.steps.connect import (
    ConnectedCluster,
    cluster_named,
    connect,
    connect_for_preview,
    observations_of,
)
from rabaska.steps.environment import prepare, resolve
from rabaska.steps.progress import Reporter, SilentReporter
from rabaska.steps.project_secrets import collected, promised
from rabaska.steps.submit import (
    NameTaken,
    PlanNamed,
    PlannedRun,
    create,
    job_spec,
    plan_run,
    submit,
)


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
    teller: Reporter | None = None,
    *,
    advise: bool = True,
    draw: Draw | None = None,
) -> Submitted:
    """Start a run; names are made of what `draw` gives."""
    teller = teller or SilentReporter()
    check_filled(project)
    if advise:
        check_script(project)
        from rabaska.steps.earlier_runs import check_advance

        check_advance(project, on, home, teller)
    _tell_of_the_profile(cluster_named(on, home), home, teller)
    there = connect(on, home)
    if advise:
        from rabaska.journeys.doctor import warn

        warn(project, there, teller)
    making = made_ready(project, there, home, teller)
    if advise:
        from rabaska.steps.earlier_runs import tell_if_alone

        tell_if_alone(project, on, home, making(new_name(project.name)).plan, teller)
    return start(making, names_for(project.name, draw), project, there, home, teller)


def start(
    making: PlanNamed,
    names: Iterator[str],
    project: Project,
    there: ConnectedCluster,
    home: Home,
    teller: Reporter,
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
    making: PlanNamed, names: Iterator[str], project: Project, there: ConnectedCluster, home: Home
) -> tuple[PlannedRun, RunRecord]:
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


def _record(ready: PlannedRun, path: str, project: Project, there: ConnectedCluster) -> RunRecord:
    name, on, folder = ready.plan.run, there.cluster.name, str(project.folder)
    identity, called = ready.plan.id, project.name
    return RunRecord(name, on, path, folder, time.time(), id=identity, called=called)


def _tell_of_the_profile(cluster: Cluster, home: Home, teller: Reporter) -> None:
    """That a cluster is gone; and at first use what is not as its profile has it.

    Profiles hold facts that nobody could verify. They are held against the site once.
    """
    if cluster.retirement:
        teller.warn(cluster.retirement)
    elif cluster.probe and not cluster.is_here and observations_of(cluster.name, home) is None:
        from rabaska.steps.probe_site import probe_site

        probe_site(cluster, home)
        found = observations_of(cluster.name, home)
        differing = [fact for fact in found.facts if fact.verdict == "differs"] if found else []
        for fact in differing:
            says = f"{fact.key} is {fact.says or 'not'} in the profile of {cluster.name}"
            teller.warn(f"{says}, and the cluster says: {fact.found}")


def made_ready(
    project: Project, there: ConnectedCluster, home: Home, teller: Reporter
) -> PlanNamed:
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

    def making(name: str) -> PlannedRun:
        return plan_run(project, name, there, code.digest, packs, environment.setup, secrets)

    _tell_of_limits(making(new_name(project.name)), there, teller)
    return making


def check_script(project: Project) -> None:
    """Refuse a command whose script is not sent: its job would wait in the queue for nothing."""
    found = missing_script(project, sent_names(project))
    if found:
        raise SettingsError(found.what, why=found.why, hint=found.fix)


def preview(
    project: Project, on: str, home: Home, teller: Reporter | None = None, *, advise: bool = True
) -> PlannedRun:
    """What `run` would submit, with nothing packed, sent or written outside a temporary folder."""
    check_filled(project)
    check_data(project)
    if advise:
        check_script(project)
    with tempfile.TemporaryDirectory() as scratch:
        there = connect_for_preview(on, home, program=bundle(Path(scratch)))
        check_launch(
            job_spec(project, project.name, there), there.cluster, there.scheduler.capabilities
        )
        code = taken(project, home, Path(scratch), teller or SilentReporter())
        packs = tuple(_not_yet_packed(dataset.name) for dataset in project.datasets)
        setup = resolve(project.environment, there, nodes=project.resources.nodes).setup
        secrets = promised(project.environment)
        ready = plan_run(project, new_name(project.name), there, code.digest, packs, setup, secrets)
        _tell_of_limits(ready, there, teller or SilentReporter())
        return ready


def _tell_of_limits(ready: PlannedRun, there: ConnectedCluster, teller: Reporter) -> None:
    """What the cluster cannot do, and what could not be asked of it."""
    if isinstance(there.place, Nowhere):
        teller.warn(f"{there.place.why}; paths are shown as the profile spells them")
    for sentence in there.scheduler.unmet(ready.spec):
        teller.warn(sentence)


def _not_yet_packed(name: str) -> Pack:
    return Pack(
        identity=f"{name}-(packed first)", folder=Path(), files=0, bytes=0, shards=0, reused=False
    )
