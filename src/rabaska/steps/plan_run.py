"""Check and plan a run: everything about its jobs decided, nothing done."""

import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta

from rabaska.domain.clusters import Cluster
from rabaska.domain.data_placement import memory_folder, shared_folder
from rabaska.domain.job_request import check_launch, with_site_defaults
from rabaska.domain.jobs import InJob, JobId, JobSpec, Resources
from rabaska.domain.projects import Project
from rabaska.domain.runs import Labels
from rabaska.domain.secrets import Secrets, parted
from rabaska.errors import SettingsError
from rabaska.jobscript.script import Agent, render
from rabaska.node.record.plan import (
    Growth,
    JobRequest,
    Launch,
    LongestQueue,
    Nearby,
    Origin,
    Plan,
    PlannedInterruption,
    RequestedResources,
    StagedData,
)
from rabaska.remote.place import Nowhere
from rabaska.schedulers.spelling import job_name
from rabaska.settings.project_file import check_data
from rabaska.sites.questions import OUTSIDE
from rabaska.steps.carry import Carried
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.prepare_data import path_remedy_of
from rabaska.steps.progress import Reporter

SCRIPT = "job.sh"
MORE = "job-more.sh"  # the script of a job that the run itself adds


@dataclass(frozen=True)
class PlannedRun:
    """A run that is ready to be submitted: the plan, and the script that will carry it out."""

    spec: JobSpec
    plan: Plan
    script: str
    submit: tuple[str, ...] = ()  # the words that submit it
    more: str = ""  # the script of a job that the run itself adds, where it may
    # What the program is handed and nobody is shown.
    secrets: Secrets = field(default_factory=Secrets)


def grace(project: Project) -> timedelta:
    """Time to save before the limit: as requested, or as usual."""
    asked = project.chain.grace
    return usual_grace(project.resources.walltime) if asked is None else asked


def usual_grace(walltime: timedelta) -> timedelta:
    """A twentieth of the limit, 10 s to 5 min."""
    return min(max(walltime / 20, timedelta(seconds=10)), timedelta(minutes=5), walltime / 4)


def job_spec(project: Project, cluster: Cluster, store: str) -> JobSpec:
    """The jobs of a project on a cluster, under the project's name until a run has one."""
    project = with_site_defaults(project, cluster)
    return JobSpec(
        name=project.name,
        resources=project.resources,
        folder=_log_folder(store, project.name),
        jobs=project.chain.jobs,
        warn_before=grace(project),
        account=project.account,
        queue=project.queue,
        features=project.features,
        mail=project.mail,
        requeue=project.chain.requeue,
        native=(*cluster.native, *project.native),
        launch=project.launch,
    )


def check_job(
    project: Project, job: JobSpec, cluster: ConnectedCluster, reporter: Reporter
) -> None:
    """Refuse what cannot run there; report what its scheduler cannot do, and was not asked."""
    _check_data(project, cluster)
    check_launch(job, cluster.cluster, cluster.scheduler.capabilities)
    if isinstance(cluster.place, Nowhere):
        reporter.warn(f"{cluster.place.why}; paths are shown as the profile spells them")
    for sentence in cluster.scheduler.unmet(job):
        reporter.warn(sentence)


def _check_data(project: Project, cluster: ConnectedCluster) -> None:
    """Refuse a dataset that is not on this computer; the cluster may have it."""
    try:
        check_data(project)
    except SettingsError as problem:
        raise SettingsError(
            problem.what, why=problem.why, hint=problem.hint or path_remedy_of(project, cluster)
        ) from None


def _log_folder(store: str, run: str) -> str:
    return f"{store}/runs/{run}/logs"


def plan_run(
    carried: Carried,
    run: str,
    interruptions: Sequence[PlannedInterruption] = (),
    labels: Labels | None = None,
) -> PlannedRun:
    """The run of that name; `interruptions` are those of a rehearsal."""
    project, cluster, setup = carried.project, carried.cluster, carried.setup
    spec = replace(carried.job, name=run, folder=_log_folder(cluster.store, run))
    variables, of_site = parted(cluster.cluster.variables)
    secrets = of_site | carried.secrets
    plan = Plan(
        run=run,
        command=list(project.command),
        resume=list(project.resume),
        code=carried.code,
        datasets=_datasets(carried),
        patterns=list(project.checkpoints.patterns),
        keep=list(project.keep),
        variables={**_offline(cluster.cluster), **variables, **project.environment.variables},
        secrets=[*secrets.names],
        walltime=spec.resources.walltime.total_seconds(),
        grace=spec.warn_before.total_seconds(),
        signal=project.chain.signal,
        jobs=spec.jobs,
        progress=project.progress,
        origin=_origin(carried, labels or Labels()),
        request=request_of(spec, cluster, setup),
        launch=launch_of(spec, cluster),
        nearby=Nearby(memory_folder(cluster.cluster), shared_folder(cluster.cluster)),
        watch=project.watch,
        cuts=interruptions,
        growth=growth(project, spec, cluster),
        tries=_tries(cluster.cluster),
        id=uuid.uuid4().hex,
        resumes=carried.resumes,
    )
    more = more_script(spec, cluster, setup) if plan.growth.words else ""
    text = script(spec, cluster, setup)
    words = tuple(cluster.scheduler.submit_command(f"{cluster.run_folder(run)}/{SCRIPT}", spec))
    return PlannedRun(spec, plan, text, submit=words, more=more, secrets=secrets)


def _datasets(carried: Carried) -> list[StagedData]:
    if carried.datasets is not None:
        return list(carried.datasets)
    return [
        StagedData(
            name=dataset.name,
            pack=pack.identity,
            mode=dataset.mode,
            path="" if pack.identity else str(pack.folder),
        )
        for dataset, pack in zip(carried.project.datasets, carried.packs, strict=True)
    ]


def _offline(cluster: Cluster) -> dict[str, str]:
    """W&B would wait for its server; what it notes instead is synced after `fetch`."""
    return {"WANDB_MODE": "offline"} if cluster.internet is False else {}


def _tries(cluster: Cluster) -> str:
    """This computer need not find out what its user knows."""
    return "" if cluster.is_here or not cluster.internet_is_unsure else OUTSIDE


def launch_of(spec: JobSpec, cluster: ConnectedCluster) -> Launch:
    requested = spec.resources
    return Launch(
        spec.launch,
        requested.nodes,
        requested.tasks,
        requested.cores,
        cluster.cluster.mpi,
        cluster.scheduler.capabilities.reach,
    )


def growth(project: Project, spec: JobSpec, cluster: ConnectedCluster) -> Growth:
    """How the run may add jobs to its chain by itself; no words where it may not."""
    at_most, profile = project.chain.at_most, cluster.cluster
    if at_most is not None and at_most <= spec.jobs == 1:
        return Growth(at_most=at_most)
    if not profile.inside_jobs or profile.submit_from:
        return Growth(at_most, why_not=f"no job may submit another on {profile.name}")
    path, one = f"{cluster.run_folder(spec.name)}/{MORE}", replace(spec, jobs=1)
    words = cluster.scheduler.submit_command(path, one, after=JobId("{after}"))
    return Growth(at_most, words, cluster.find_command(spec.name))


def longest(cluster: Cluster, requested: Resources) -> LongestQueue:
    """The queue of that kind whose jobs may take longest, where the profile knows all limits."""
    fitting = [queue for queue in cluster.partitions if queue.takes(requested.gpus)]
    limits = [(queue.walltime, queue.name) for queue in fitting if queue.walltime]
    if not limits or len(limits) < len(fitting):
        return LongestQueue()
    limit, name = max(limits)
    return LongestQueue(name, limit.total_seconds())


def script(spec: JobSpec, cluster: ConnectedCluster, setup: tuple[str, ...]) -> str:
    python, program = cluster.node
    agent = Agent(python=python, program=program, run=cluster.run_folder(spec.name))
    variables = in_job(cluster, spec.name)
    return render(spec, cluster.scheduler.directives(spec), variables, setup, agent)


def more_script(spec: JobSpec, cluster: ConnectedCluster, setup: tuple[str, ...]) -> str:
    """The script of a job that the run itself adds."""
    return script(replace(spec, jobs=1), cluster, setup)


def in_job(cluster: ConnectedCluster, run: str) -> InJob:
    """What a job of `run` tells our node side; the profile knows its node-local space best."""
    usual, name = cluster.scheduler.in_job(), job_name(run)
    return replace(
        usual,
        local_space=cluster.cluster.local_space or usual.local_space,
        umask=cluster.cluster.umask,
        cancel_rest=usual.cancel_rest.replace("{name}", name),
        waiting=usual.waiting.replace("{name}", name),
    )


def _origin(carried: Carried, labels: Labels) -> Origin:
    project, cluster = carried.project, carried.cluster
    return Origin(
        project=project.name,
        folder=str(project.folder),
        cluster=cluster.name,
        scheduler=cluster.cluster.scheduler,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=carried.revision.commit,
        tree=carried.revision.tree,
        note=labels.note,
        tags=labels.tags,
        like=labels.like,
    )


def request_of(spec: JobSpec, cluster: ConnectedCluster, setup: tuple[str, ...]) -> JobRequest:
    """What `spec_of` reads when the run is submitted again."""
    requested = asdict(spec.resources)
    requested["walltime"] = spec.resources.walltime.total_seconds()
    return JobRequest(
        resources=RequestedResources(**requested),
        account=spec.account,
        queue=spec.queue,
        features=spec.features,
        mail=spec.mail,
        native=spec.native,
        requeue=spec.requeue,
        setup=setup,
        local=in_job(cluster, spec.name).local_space,
        longest=longest(cluster.cluster, spec.resources),
        unmet=cluster.scheduler.unmet(spec),
    )


def spec_of(plan: Plan, cluster: ConnectedCluster, *, jobs: int) -> JobSpec:
    """Another round of jobs, for a plan that was submitted before."""
    request = plan.request
    requested = request.resources._asdict()
    requested["walltime"] = timedelta(seconds=request.resources.walltime)
    return JobSpec(
        name=plan.run,
        resources=Resources(**requested),
        folder=_log_folder(cluster.store, plan.run),
        jobs=jobs,
        warn_before=timedelta(seconds=plan.grace),
        account=request.account,
        queue=request.queue,
        features=tuple(request.features),
        mail=request.mail,
        native=tuple(request.native),
        requeue=request.requeue,
        launch=plan.launch.form,
    )
