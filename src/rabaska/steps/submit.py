"""Submit: one run, from its plan to the cluster's job id."""

import io
import json
import tarfile
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta

from rabaska.checkup.subject import resumption_of, started_by
from rabaska.domain.clusters import Cluster
from rabaska.domain.data_placement import memory_folder, shared_folder
from rabaska.domain.job_request import with_site_defaults
from rabaska.domain.jobs import InJob, JobId, JobSpec, Resources, together
from rabaska.domain.projects import Project
from rabaska.domain.secrets import Secrets, parted
from rabaska.errors import CommandFailed, SubmissionRefused, Unreachable, WrongUse
from rabaska.jobscript.script import Agent, render
from rabaska.node.login.create_run import TAKEN
from rabaska.node.login.submit_job import OTHERS
from rabaska.node.record import plan as plans
from rabaska.node.record.plan import Launch, Nearby, Plan, StagedData
from rabaska.node.record.submissions import NOT_KNOWN
from rabaska.packing.make_pack import Pack
from rabaska.remote.place import Outcome, quoted, surely
from rabaska.remote.ssh_errors import refuse_full_disk
from rabaska.schedulers.spelling import job_name
from rabaska.scouting.scripts import find
from rabaska.sites.questions import OUTSIDE
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.plan_run import MORE, growth, longest
from rabaska.steps.progress import Reporter, SilentReporter, report_if_slow

_PATIENCE = 5.0  # seconds with a scheduler, before it is said that it is waited for


@dataclass(frozen=True)
class PlannedRun:
    """A run that is ready to be submitted: the plan, and the script that will carry it out."""

    spec: JobSpec
    plan: Plan
    script: str
    more: str = ""  # the script of a job that the run itself adds, where it may
    # What the program is handed and nobody is shown.
    secrets: Secrets = field(default_factory=Secrets)


PlanNamed = Callable[
    [str], PlannedRun
]  # the same voyage under a name that may turn out to be taken


def grace(project: Project) -> timedelta:
    """Time to save before the limit: asked for, or a twentieth of it, 10 s to 5 min."""
    if project.chain.grace is not None:
        return project.chain.grace
    walltime = project.resources.walltime
    return min(max(walltime / 20, timedelta(seconds=10)), timedelta(minutes=5), walltime / 4)


def job_spec(project: Project, run: str, station: ConnectedCluster) -> JobSpec:
    return JobSpec(
        name=run,
        resources=project.resources,
        folder=f"{station.run_folder(run)}/logs",
        jobs=project.chain.jobs,
        warn_before=grace(project),
        account=project.account,
        queue=project.queue,
        features=project.features,
        mail=project.mail,
        requeue=project.chain.requeue,
        native=(*station.cluster.native, *project.native),
        launch=project.launch,
    )


def plan_run(
    project: Project,
    run: str,
    station: ConnectedCluster,
    code: str,
    packs: tuple[Pack, ...],
    setup: tuple[str, ...],
    secrets: Secrets | None = None,
) -> PlannedRun:
    """Everything about the run decided, nothing done."""
    project = with_site_defaults(project, station.cluster)
    spec = job_spec(project, run, station)
    variables, of_site = parted(station.cluster.variables)
    secrets = of_site | (secrets or project.environment.hidden)
    plan = Plan(
        run=run,
        command=list(project.command),
        resume=list(project.resume),
        code=code,
        datasets=[
            StagedData(name=dataset.name, pack=pack.identity, mode=dataset.mode)
            for dataset, pack in zip(project.datasets, packs, strict=True)
        ],
        patterns=list(project.checkpoints.patterns),
        keep=list(project.keep),
        variables={**variables, **project.environment.variables},
        secrets=[*secrets.names],
        walltime=project.resources.walltime.total_seconds(),
        grace=spec.warn_before.total_seconds(),
        signal=project.chain.signal,
        jobs=project.chain.jobs,
        progress=project.progress,
        about=_about(project, spec, station, setup),
        launch=_launch(spec, station),
        nearby=Nearby(memory_folder(station.cluster), shared_folder(station.cluster)),
        watch=project.watch,
        growth=growth(project, spec, station),
        tries=_tries(station.cluster),
        id=uuid.uuid4().hex,
        resumes=resumption_of(project, started_by(project, find(project.folder))).kind,
    )
    more = more_script(spec, station, setup) if plan.growth.words else ""
    text = script(spec, station, setup)
    return PlannedRun(spec=spec, plan=plan, script=text, more=more, secrets=secrets)


def _tries(cluster: Cluster) -> str:
    """This computer need not find out what its user knows."""
    return "" if cluster.is_here or not cluster.internet_is_unsure else OUTSIDE


def _launch(spec: JobSpec, station: ConnectedCluster) -> Launch:
    asked = spec.resources
    reach = station.scheduler.capabilities.reach
    return Launch(spec.launch, asked.nodes, asked.tasks, asked.cores, station.cluster.mpi, reach)


def script(spec: JobSpec, station: ConnectedCluster, setup: tuple[str, ...]) -> str:
    python, program = station.node
    agent = Agent(python=python, program=program, run=station.run_folder(spec.name))
    told = in_job(station, spec.name)
    return render(spec, station.scheduler.directives(spec), told, setup, agent)


def more_script(spec: JobSpec, station: ConnectedCluster, setup: tuple[str, ...]) -> str:
    """The script of a job that the run itself adds."""
    return script(replace(spec, jobs=1), station, setup)


def in_job(station: ConnectedCluster, run: str) -> InJob:
    """What a job of `run` tells our node side; the profile knows its node-local space best."""
    told, name = station.scheduler.in_job(), job_name(run)
    return replace(
        told,
        local_space=station.cluster.local_space or told.local_space,
        umask=station.cluster.umask,
        cancel_rest=told.cancel_rest.replace("{name}", name),
        waiting=told.waiting.replace("{name}", name),
    )


def _about(
    project: Project, spec: JobSpec, station: ConnectedCluster, setup: tuple[str, ...]
) -> dict[str, object]:
    """What people and a later `resume` want to know, though no job reads it."""
    asked = spec.resources
    return {
        "project": project.name,
        "folder": str(project.folder),
        "cluster": station.cluster.name,
        "scheduler": station.cluster.scheduler,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "setup": list(setup),
        "resources": {
            "walltime": asked.walltime.total_seconds(),
            "gpus": asked.gpus,
            "gpu_model": asked.gpu_model,
            "nodes": asked.nodes,
            "cores": asked.cores,
            "memory": asked.memory,
            "tasks": asked.tasks,
            "exclusive": asked.exclusive,
        },
        "account": spec.account,
        "queue": spec.queue,
        "features": list(spec.features),
        "mail": spec.mail,
        "native": list(spec.native),
        "requeue": spec.requeue,
        "local": in_job(station, spec.name).local_space,
        "longest": longest(station.cluster, asked),
        "unmet": station.scheduler.unmet(spec),
    }


def spec_of(plan: Plan, station: ConnectedCluster, *, jobs: int) -> JobSpec:
    """Another round of jobs, for a plan that was submitted before."""
    about = plan.about
    known = {each.name for each in fields(Resources)}
    asked = {name: value for name, value in about["resources"].items() if name in known}
    asked["walltime"] = timedelta(seconds=asked["walltime"])
    return JobSpec(
        name=plan.run,
        resources=Resources(**asked),
        folder=f"{station.run_folder(plan.run)}/logs",
        jobs=jobs,
        warn_before=timedelta(seconds=plan.grace),
        account=about["account"],
        queue=about["queue"],
        features=tuple(about["features"]),
        mail=about["mail"],
        native=tuple(about["native"]),
        requeue=about.get("requeue", True),
        launch=plan.launch.form,
    )


class NameTaken(Exception):
    """Another run has this folder."""


def create(ready: PlannedRun, station: ConnectedCluster, folder: str) -> None:
    """Make the run folder, complete or not at all; NameTaken when another run has that name."""
    script, content = quoted([*station.node, "create", folder]), _run_folder_tar(ready)
    outcome = surely(lambda: station.run(script, feed=content))
    if outcome.exit_code == TAKEN:
        raise NameTaken(folder)
    if outcome.exit_code != 0:
        refuse_full_disk(outcome.complaint)
        raise CommandFailed(
            f"the run folder could not be made on {station.cluster.name}", why=outcome.complaint
        )


def _run_folder_tar(ready: PlannedRun) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name in ("logs", "jobs", "carried/000/output", "carried/000/checkpoints"):
            _add(archive, name, None)
        _add(archive, "run.json", plans.dumps(ready.plan).encode())
        _add(archive, "job.sh", ready.script.encode())
        if ready.secrets:
            # Its own mode: who shares a store with a group shares no secrets.
            values = json.dumps(ready.secrets.reveal()).encode()
            _add(archive, "secrets.json", values, mode=0o600)
        if ready.more:
            _add(archive, MORE, ready.more.encode())
    return content.getvalue()


def _add(archive: tarfile.TarFile, name: str, data: bytes | None, *, mode: int = 0o666) -> None:
    entry = tarfile.TarInfo(name)
    entry.mtime = int(time.time())
    if data is None:
        entry.type, entry.mode = tarfile.DIRTYPE, 0o777  # less the umask there
        archive.addfile(entry)
        return
    entry.size, entry.mode = len(data), mode
    archive.addfile(entry, io.BytesIO(data))


def submit(
    spec: JobSpec,
    station: ConnectedCluster,
    *,
    script_name: str = "job.sh",
    resume: bool = False,
    since: str = "",
    teller: Reporter | None = None,
) -> JobId:
    """Hand the run's script to the scheduler: at once as an array, or each job after another.

    `since` is the last submission of the run that we know of; if it is not the last one any
    more, somebody else submitted the run, and nothing is submitted.
    """
    teller = teller or SilentReporter()
    words = ["--since", since, *(["--resume"] if resume else [])]
    if spec.jobs == 1 or station.scheduler.capabilities.array:
        return _submitted(spec, station, script_name, ["--jobs", str(spec.jobs), *words], teller)
    chain = [_submitted(spec, station, script_name, words, teller)]
    for number in range(2, spec.jobs + 1):
        try:
            chain.append(_job_after(chain[-1], spec, station, script_name, teller))
        except (SubmissionRefused, Unreachable) as refusal:
            # What was taken runs, and goes as far as it goes; `resume` adds jobs later.
            teller.warn(f"job {number} of {spec.jobs} was not taken: {refusal.why}")
            break
    return together(chain)


def _job_after(
    before: JobId, spec: JobSpec, station: ConnectedCluster, script_name: str, teller: Reporter
) -> JobId:
    words = ["--after", before.native]
    try:
        return _submitted(spec, station, script_name, words, teller, after=before)
    except SubmissionRefused as refusal:
        # Torque takes no job after one that is over already. Two jobs that begin together do
        # no harm: one of them claims the run.
        if "dependency" not in refusal.why.lower():
            raise
        return _submitted(spec, station, script_name, words, teller)


def _submitted(
    spec: JobSpec,
    station: ConnectedCluster,
    script_name: str,
    words: Sequence[str],
    teller: Reporter,
    *,
    after: JobId | None = None,
) -> JobId:
    """One submission; the run folder remembers it before we do."""
    run, folder = spec.name, station.run_folder(spec.name)
    command = station.scheduler.submit_command(f"{folder}/{script_name}", spec, after=after)
    find = station.find_command(run)
    asking = ["--find", quoted(find)] if find else []
    # Under the same mark it may be said twice: the second gets the answer of the first.
    submit = [*station.node, "submit", folder, "--mark", uuid.uuid4().hex, *words, *asking]
    waiting = (
        f"run {run}: waiting for {station.cluster.name} to answer its submission; Ctrl-C does not "
        f"end it, and `rabaska status {run}` shows what becomes of it"
    )
    with report_if_slow(_PATIENCE, waiting, teller):
        outcome = surely(lambda: station.run(quoted([*submit, "--", *command])))
    _refuse_unanswered(outcome, run, station)
    if outcome.exit_code != 0:
        raise refused(run, station, f"{command[0]} said: {outcome.complaint}")
    job = station.scheduler.read_job_id(outcome.output)
    if job is None:
        raise SubmissionRefused(
            f"{station.cluster.name} took run {run} but gave no job id",
            why=f"{command[0]} said: {outcome.output.strip()!r}",
            hint=f"`rabaska status {run}` asks again",
        )
    return job


def _refuse_unanswered(outcome: Outcome, run: str, station: ConnectedCluster) -> None:
    if outcome.exit_code == NOT_KNOWN:
        raise Unreachable(
            f"{station.cluster.name} did not answer whether it took run {run}",
            why=outcome.complaint,
            hint=f"`rabaska wait {run}` goes on asking; nothing is submitted twice",
        )
    if outcome.exit_code == OTHERS:
        raise WrongUse(
            f"run {run} was submitted by another command meanwhile",
            hint=f"`rabaska status {run}` shows how it stands",
        )


def refused(run: str, station: ConnectedCluster, said: str) -> SubmissionRefused:
    """The scheduler's own words, what they mean, and what to do about it."""
    from rabaska.knowledge.failures import explain

    known = explain(said, stage="submit", scheduler=station.scheduler.name)
    if not known:
        hint = f"`rabaska show {run}` prints the script that was sent"
        return SubmissionRefused(f"{station.cluster.name} refused run {run}", why=said, hint=hint)
    return SubmissionRefused(
        f"{station.cluster.name} refused run {run}: {known[0].meaning}",
        why=said,
        hint=f"{known[0].fix}",
    )
