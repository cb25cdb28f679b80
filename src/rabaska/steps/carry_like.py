"""Bring what a run like an earlier one needs to its cluster; its code, or that of today."""

import os
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from rabaska.domain.arguments import with_arguments
from rabaska.domain.jobs import JobSpec
from rabaska.domain.projects import Project
from rabaska.domain.run_changes import Changes
from rabaska.domain.runs import Checks, Labels
from rabaska.domain.secrets import Secrets
from rabaska.environments.recipes import Environment
from rabaska.errors import SettingsError
from rabaska.node.record.plan import Plan, StagedData
from rabaska.packing.code_snapshot import is_as_named, unpacked
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.remote.git_commit import Revision
from rabaska.settings.project_file import check_command
from rabaska.steps.carry import (
    Carried,
    is_ours,
    parcel_of,
    preview_carry,
    ready_dataset,
)
from rabaska.steps.carry_over import complete, recover_inputs
from rabaska.steps.check_project import check_offline, check_there
from rabaska.steps.connect import ConnectedCluster, connect
from rabaska.steps.environment import collected, prepare, promised, resolve
from rabaska.steps.like_run import changed_spec, elsewhere, elsewhere_spec, project_now, project_of
from rabaska.steps.new_run import carry_checked
from rabaska.steps.prepare_data import locate
from rabaska.steps.progress import Reporter


@dataclass(frozen=True)
class EarlierRun:
    record: RunRecord
    plan: Plan
    cluster: ConnectedCluster


@dataclass(frozen=True)
class RerunOptions:
    """How the new run shall differ."""

    arguments: tuple[str, ...] = ()
    new_code: bool = False
    from_checkpoint: bool = False
    on: str = ""  # another cluster
    changes: Changes = field(default_factory=Changes)
    jobs: int | None = None
    labels: Labels = field(default_factory=Labels)
    checks: Checks = field(default_factory=Checks)


@dataclass(frozen=True)
class _Like:
    """The new run before anything of it is sent."""

    project: Project  # its datasets are those of rabaska.toml, for new code only
    job: JobSpec
    cluster: ConnectedCluster
    now: Project | None  # as rabaska.toml says now, where it can be read


def carry_like(
    earlier: EarlierRun, options: RerunOptions, home: Home, reporter: Reporter
) -> Carried:
    """Prepare and send; nothing is submitted."""
    like = _like(earlier, options, home, reporter)
    if options.new_code:
        if options.checks.wanted:
            check_offline(like.project, like.cluster.name, home, reporter, options.checks)
        return carry_checked(like.project, like.job, like.cluster, home, reporter, options.checks)
    plan = earlier.plan
    if like.cluster.name != earlier.cluster.name:
        recover_inputs(plan, earlier.cluster, home, reporter)
    setup, secrets = tuple(plan.request.setup), Secrets()
    if like.now:
        secrets = collected(like.now.environment, os.environ, reporter)
        setup = _prepared(plan, like, home, reporter, options.checks).setup
    complete(like.cluster, plan, home)
    carried = _carried(earlier, like, setup, secrets)
    if like.now and like.cluster.name != earlier.cluster.name:
        return replace(carried, datasets=_datasets_there(plan, like, like.now, home, reporter))
    return carried


def _prepared(
    plan: Plan, like: _Like, home: Home, reporter: Reporter, checks: Checks
) -> Environment:
    """The environment for code that was submitted before, which is checked as it was then."""
    recipe, nodes = like.project.environment, like.job.resources.nodes
    code = home.store / "code" / f"{plan.code}.tar"
    if not checks.wanted or not is_as_named(code):
        return prepare(recipe, like.cluster, reporter, nodes=nodes)
    check_offline(like.project, like.cluster.name, home, reporter, checks, code=plan.code)
    with unpacked(code) as folder:
        there = replace(like.project, folder=folder)
        checked = check_there(there, like.job, like.cluster, reporter, checks)
        environment = prepare(recipe, like.cluster, reporter, nodes=nodes)
        checked.check_environment(environment)
    return environment


def _datasets_there(
    plan: Plan, like: _Like, now: Project, home: Home, reporter: Reporter
) -> tuple[StagedData, ...]:
    """The run's packs; what it used in place is where rabaska.toml says for the other cluster."""
    if all(dataset.pack for dataset in plan.datasets):
        return tuple(plan.datasets)
    places, known = locate(now, like.cluster), {dataset.name: dataset for dataset in now.datasets}
    found = []
    for staged in plan.datasets:
        if staged.pack:
            found.append(staged)
            continue
        if staged.name not in known:
            raise SettingsError(
                f"data {staged.name} of {plan.run} is not in rabaska.toml any more",
                hint=f"add [data.{staged.name}] with where it is on {like.cluster.name}",
            )
        dataset, place = known[staged.name], places.get(staged.name, "")
        pack = ready_dataset(dataset, place, like.cluster, home, reporter)
        if is_ours(pack, like.cluster):
            like.cluster.place.deliver([parcel_of(pack.folder, like.cluster)], like.cluster)
        path = "" if pack.identity else str(pack.folder)
        found.append(StagedData(staged.name, pack.identity, dataset.mode, path))
    return tuple(found)


def preview_like(
    earlier: EarlierRun, options: RerunOptions, home: Home, reporter: Reporter
) -> Carried:
    """What `carry_like` would bring; nothing is packed, built or sent."""
    like = _like(earlier, options, home, reporter)
    if options.new_code:
        with tempfile.TemporaryDirectory() as scratch:
            return preview_carry(
                like.project, like.job, like.cluster, home, Path(scratch), reporter
            )
    setup, secrets = tuple(earlier.plan.request.setup), Secrets()
    if like.now:
        secrets = promised(like.now.environment)
        nodes = like.job.resources.nodes
        setup = resolve(like.project.environment, like.cluster, nodes=nodes).setup
    return _carried(earlier, like, setup, secrets)


def _like(earlier: EarlierRun, options: RerunOptions, home: Home, reporter: Reporter) -> _Like:
    record, plan = earlier.record, earlier.plan
    on = options.on or record.cluster
    cluster, now = connect(on, home, reporter), project_now(record, on)
    if now is None and options.new_code:
        raise _no_project(record, "its code as it is now")
    if now is None and (on != record.cluster or plan.secrets):
        raise _no_project(record, "its environment" if on != record.cluster else "its secrets")
    command = with_arguments(plan.command, options.arguments)
    plan = plan._replace(command=list(command), jobs=options.jobs or plan.jobs)
    if now is not None and on != record.cluster:
        project = elsewhere(plan, earlier.cluster, cluster, now)
        job = elsewhere_spec(project, cluster, options.changes, reporter)
    else:
        project = project_of(plan, cluster, now)
        job = changed_spec(plan, cluster, options.changes, jobs=plan.jobs, now=now)
    project = replace(project, resources=job.resources)
    if now is not None:
        check_command(replace(project, datasets=now.datasets))
    if now is not None and options.new_code:
        project = replace(project, datasets=now.datasets)
    return _Like(project, job, cluster, now)


def _carried(earlier: EarlierRun, like: _Like, setup: tuple[str, ...], secrets: Secrets) -> Carried:
    plan = earlier.plan
    return Carried(
        like.project,
        like.job,
        like.cluster,
        plan.code,
        (),
        setup,
        secrets,
        plan.resumes,
        Revision(plan.origin.commit, plan.origin.tree),
        datasets=tuple(plan.datasets),
    )


def _no_project(record: RunRecord, what: str) -> SettingsError:
    folder = record.project or "its folder, which this computer does not know"
    return SettingsError(
        f"{what} cannot be had for a run like {record.name}",
        why=f"there is no readable rabaska.toml in {folder}",
        hint="`cd` to the project and use `rabaska run`, or put the project back there",
    )
