"""A run like an earlier one: its project as its plan has it, its jobs with other requests."""

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from rabaska.domain.job_request import check_launch, with_site_defaults
from rabaska.domain.jobs import JobSpec
from rabaska.domain.projects import Chain, CheckpointSettings, EnvironmentRecipe, Project
from rabaska.domain.run_changes import Changes, Difference, differences
from rabaska.errors import SettingsError
from rabaska.node.record.plan import Plan
from rabaska.records.run_index import RunRecord
from rabaska.settings.project_file import load, own_resources, written_requests
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.pick_request import with_request
from rabaska.steps.plan_run import (
    growth,
    job_spec,
    launch_of,
    request_of,
    spec_of,
    usual_grace,
)
from rabaska.steps.progress import Reporter

_KEYS = {  # of rabaska.toml, by the words of `run_changes.requested`
    "walltime": {"walltime"},
    "GPUs": {"gpus", "gpu_model"},
    "nodes": {"nodes"},
    "processes per node": {"tasks"},
    "cores": {"cores"},
    "memory": {"memory"},
    "queue": {"queue"},
    "account": {"account"},
    "native": {"native"},
}
_REQUESTS = ("walltime", "gpus", "nodes", "tasks", "cores", "memory", "exclusive")


def project_now(record: RunRecord, on: str) -> Project | None:
    """The run's project as its rabaska.toml says now; None where there is none to read."""
    if not record.project or not Path(record.project).is_dir():
        return None
    with suppress(SettingsError):
        return load(Path(record.project), cluster=on)
    return None


def project_of(plan: Plan, cluster: ConnectedCluster, now: Project | None) -> Project:
    """The project as the run was submitted; its environment as rabaska.toml has it `now`.

    Datasets are those of the plan, see `Carried.datasets`.
    """
    spec = spec_of(plan, cluster, jobs=plan.jobs)
    recipe = now.environment if now else EnvironmentRecipe(variables=plan.variables)
    return Project(
        name=plan.origin.project or plan.run,
        folder=now.folder if now else Path(plan.origin.folder or "/"),
        command=tuple(plan.command),
        resources=spec.resources,
        launch=spec.launch,
        resume=tuple(plan.resume),
        environment=recipe,
        chain=Chain(
            plan.jobs,
            timedelta(seconds=plan.grace),
            plan.signal,
            requeue=spec.requeue,
            at_most=plan.growth.at_most,
        ),
        checkpoints=CheckpointSettings(tuple(plan.patterns)),
        keep=tuple(plan.keep),
        exclude=now.exclude if now else (),
        include=now.include if now else (),
        progress=plan.progress,
        watch=plan.watch,
        account=spec.account,
        queue=spec.queue,
        features=spec.features,
        mail=spec.mail,
        native=spec.native,
    )


def changed_spec(
    plan: Plan,
    cluster: ConnectedCluster,
    changes: Changes,
    *,
    jobs: int,
    now: Project | None = None,
) -> JobSpec:
    """Jobs for the same cluster with other requests; WrongUse for what it cannot start.

    With GPUs where it had none, or the other way round, the queue is chosen again.
    """
    spec = spec_of(plan, cluster, jobs=jobs)
    resources = changes.applied(spec.resources, launch=spec.launch)
    spec = replace(
        spec,
        resources=resources,
        account=changes.account or spec.account,
        warn_before=_grace(plan, resources.walltime),
    )
    if changes.queue or bool(resources.gpus) != bool(spec_gpus(plan)):
        spec = _in_queue(spec, plan, cluster, changes.queue, now)
    check_launch(spec, cluster.cluster, cluster.scheduler.capabilities)
    return spec


def spec_gpus(plan: Plan) -> int:
    return plan.request.resources.gpus


def _grace(plan: Plan, walltime: timedelta) -> timedelta:
    had, grace = plan.request.resources.walltime, timedelta(seconds=plan.grace)
    if walltime == timedelta(seconds=had):
        return grace
    usual = grace == usual_grace(timedelta(seconds=had))
    return usual_grace(walltime) if usual else min(grace, walltime / 4)


def _in_queue(
    spec: JobSpec, plan: Plan, cluster: ConnectedCluster, queue: str, now: Project | None
) -> JobSpec:
    base = replace(
        project_of(plan, cluster, now),
        resources=replace(spec.resources, gpu_model=""),
        queue=queue or (now.queue if now else ""),
        features=now.features if now else (),
        native=now.native if now else spec.native,
    )
    told = with_site_defaults(base, cluster.cluster)
    of_site = [one for one in cluster.cluster.native if one not in told.native]
    return replace(
        spec,
        resources=told.resources,
        queue=told.queue,
        features=told.features,
        native=(*of_site, *told.native),
    )


def changed_plan(plan: Plan, spec: JobSpec, cluster: ConnectedCluster) -> Plan:
    """The plan of a run whose next jobs are those of `spec`."""
    project = project_of(plan, cluster, None)
    return plan._replace(
        walltime=spec.resources.walltime.total_seconds(),
        grace=spec.warn_before.total_seconds(),
        request=request_of(spec, cluster, tuple(plan.request.setup)),
        launch=launch_of(spec, cluster),
        growth=growth(project, spec, cluster),
    )


def elsewhere(plan: Plan, old: ConnectedCluster, new: ConnectedCluster, now: Project) -> Project:
    """The project for another cluster: account, queue and environment as rabaska.toml has them.

    What a job requests stays as it was, but for what the cluster's own table says. What nobody ever
    said is left out, and picked for that cluster.
    """
    own = own_resources(now.folder, new.name)
    before = spec_of(plan, old, jobs=plan.jobs).resources
    kept = {
        name: getattr(before, name)
        for name in _REQUESTS
        if name not in own and getattr(before, name) != getattr(now.resources, name)
    }
    chain = replace(now.chain, jobs=plan.jobs, at_most=plan.growth.at_most, grace=None)
    return replace(
        project_of(plan, old, now),
        resources=replace(now.resources, **kept),
        chain=chain,
        account=now.account,
        queue=now.queue,
        features=now.features,
        mail=now.mail,
        native=now.native,
        left_out=now.left_out - {*kept},
        written_in=now.written_in,
    )


def elsewhere_spec(
    project: Project, cluster: ConnectedCluster, changes: Changes, reporter: Reporter
) -> JobSpec:
    """Jobs for another cluster than the run's; what is left out is picked for it."""
    changed = replace(
        project,
        resources=changes.applied(project.resources, launch=project.launch),
        queue=changes.queue or project.queue,
        account=changes.account or project.account,
        left_out=project.left_out - changes.given,
    )
    changed = with_request(changed, cluster.cluster, reporter)
    spec = job_spec(changed, cluster.cluster, cluster.store)
    check_launch(spec, cluster.cluster, cluster.scheduler.capabilities)
    return spec


def kept_though_changed(
    plan: Plan, cluster: ConnectedCluster, now: Project | None, changes: Changes
) -> list[Difference]:
    """What the run requests and rabaska.toml, as it is now, says otherwise.

    What somebody just changed by an option is as they want it.
    """
    if now is None:
        return []
    spec = job_spec(now, cluster.cluster, cluster.store)
    said = plan._replace(request=request_of(spec, cluster, tuple(plan.request.setup)))
    written = written_requests(now.folder, cluster.name) - changes.given
    return [one for one in differences(plan, said) if written & _KEYS.get(one.what, set())]
