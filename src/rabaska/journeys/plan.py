"""Plan: which queue, which GPU, how many jobs, where the data goes, what it costs."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from rabaska.domain.amounts import duration, say_duration, write_duration
from rabaska.domain.clusters import Cluster
from rabaska.domain.data_placement import Placement, place
from rabaska.domain.projects import Project
from rabaska.domain.queue_choice import Choice, Need, Outlook, outlook
from rabaska.domain.queue_limits import write_size
from rabaska.domain.runs import Checks
from rabaska.errors import RabaskaError, Unreachable, WrongUse
from rabaska.journeys.run import run
from rabaska.journeys.wait import wait
from rabaska.knowledge.gpu_facts import gpus
from rabaska.node.record.plan import UNREAD
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord, find
from rabaska.scouting import dataset_contents
from rabaska.scouting.resume_support import Resumption
from rabaska.settings.profile_files import names
from rabaska.settings.project_file import FILE, check_command, load
from rabaska.settings.write_choice import shown, write_choice
from rabaska.steps.carry import read_resumption
from rabaska.steps.connect import cluster_named, place_of, scheduler_of
from rabaska.steps.earlier_runs import longest_stretch
from rabaska.steps.measured_speed import EPOCH, STEP, Measured, measured, of_project, of_run
from rabaska.steps.pick_request import gpu_line, unfit_gpus
from rabaska.steps.plan_run import job_spec
from rabaska.steps.probe_site import SiteProbe, ask_site, probe_site
from rabaska.steps.progress import Reporter, SilentReporter
from rabaska.steps.query_status import status
from rabaska.steps.store import USUAL
from rabaska.steps.trial_jobs import TRIAL, trial_question


def measure(
    folder: Path, on: Sequence[str], span: timedelta, home: Home, reporter: Reporter
) -> None:
    """Run the project for `span`, here and on each cluster at once; `measured` tells the rest."""
    started = [
        _start_short_run(folder, name, span, home, reporter)
        for name in dict.fromkeys(("here", *on))
    ]
    for record in started:
        wait(record, home)
        ended = status(record, home)  # its last words may have come after the end was seen
        if not of_run(record, home):
            reporter.warn(
                f"{record.name} did not show its pace on {record.cluster}: "
                f"{ended.reason or 'it printed no steps'}; `rabaska logs {record.name}`"
            )


def _start_short_run(
    folder: Path, name: str, span: timedelta, home: Home, reporter: Reporter
) -> RunRecord:
    shortest = cluster_named(name, home).shortest or span
    limit = f"{max(span, shortest).total_seconds():.0f}s"
    brief = {"resources.walltime": limit, "chain.jobs": 1}
    project = load(folder, cluster=name, overrides=brief)
    check_command(project)
    return find(home.runs, run(project, name, home, reporter, checks=Checks(wanted=False)).run)


@dataclass(frozen=True)
class PlanOptions:
    """What the command line says; the rest comes from rabaska.toml."""

    total: str | None = None
    steps: int | None = None
    epochs: int | None = None
    gpus: int | None = None
    gpu: str = ""
    offline: bool = False
    write: bool = False  # put the choice into rabaska.toml
    measure: str | None = None  # how long to run it here and there, to see how fast it goes


@dataclass(frozen=True)
class OnePlan:
    outlook: Outlook
    title: str
    data: tuple[Placement, ...] = ()
    start: str = ""  # when a job might start, in the cluster's own words; a guess
    retirement: str = ""
    unasked: str = ""  # why only its profile speaks


@dataclass(frozen=True)
class Plans:
    need: Need
    basis: str  # where the total time comes from
    plans: tuple[OnePlan, ...]
    measured: tuple[Measured, ...] = ()  # how fast this project went, and where
    written: str = ""  # what was put into rabaska.toml


def plan(
    folder: Path,
    on: Sequence[str],
    options: PlanOptions,
    home: Home,
    reporter: Reporter | None = None,
) -> Plans:
    """One outlook for each cluster; those that are named are asked how they are today."""
    if options.write and len(set(on)) != 1:
        raise WrongUse(
            "--write needs one cluster",
            why="what is chosen goes into its table in rabaska.toml",
            hint="name it with --on",
        )
    chosen = [cluster_named(name, home) for name in on] or _live(home)
    project = load(folder, cluster=chosen[0].name if len(chosen) == 1 else "here")
    if options.measure:
        span = _span("--measure", options.measure)
        measure(folder, on, span, home, reporter or SilentReporter())
    speeds = _speeds(project, options, home)
    total, basis = _total(project, options, speeds)
    sizes = [
        (each.name, dataset_contents.read_contents(*each.paths).size)
        for each in project.datasets
        if each.paths  # what is on the cluster already is not measured from here
    ]
    stretch = longest_stretch(project, [each.name for each in chosen], home)
    need = replace(_need(project, options, total), stretch=stretch)
    offline = options.offline or not on
    plans = tuple(
        _one(need, probe_site(each, home, offline=offline), sizes, project) for each in chosen
    )
    choice = plans[0].outlook.choice
    written = _write(project, choice, chosen[0]) if options.write and choice else ""
    return Plans(need, basis, plans, speeds, written)


def _write(project: Project, choice: Choice, cluster: Cluster) -> str:
    """Put the choice into the table of its cluster; what was written, in a line."""
    chosen = _with_choice(project, choice, cluster)
    resources, written = chosen.resources, project.written_in
    lines = {
        "queue": chosen.queue or None,
        "resources": {
            "walltime": write_duration(resources.walltime),
            "gpus": resources.gpus,
            "gpu_model": resources.gpu_model or None,
            "nodes": resources.nodes if resources.nodes > 1 or "nodes" in written else None,
            "cores": resources.cores,
            "memory": write_size(resources.memory) if resources.memory else None,
        },
        "chain": {"jobs": chosen.chain.jobs},
    }
    write_choice(project.folder / FILE, cluster.name, lines)
    return f"wrote to {FILE} under [cluster.{cluster.name}]: {shown(lines)}"


def _speeds(project: Project, options: PlanOptions, home: Home) -> tuple[Measured, ...]:
    """What is known of its pace; its last run is asked, where nobody has looked at it yet."""
    found, runs = measured(project, home), of_project(project, home)
    if runs and not options.offline and not of_run(runs[-1], home):
        with suppress(RabaskaError):  # then the older ones must do
            status(runs[-1], home)
            found = measured(project, home)
    return found


def _live(home: Home) -> list[Cluster]:
    known = [cluster_named(name, home) for name in names(home.profiles)]
    return [each for each in known if each.status == "live" and each.partitions]


def _one(need: Need, site: SiteProbe, sizes: list[tuple[str, int]], project: Project) -> OnePlan:
    cluster = site.cluster
    found = outlook(need, cluster, gpus())
    told = OnePlan(found, cluster.title, retirement=cluster.retirement, unasked=_unasked(site))
    if found.choice is None:
        return told
    queue = cluster.partition(found.choice.queue)
    return replace(
        told,
        data=place(sizes, cluster, queue, found.choice.memory),
        start=_start(found.choice, site, project),
    )


def _unasked(site: SiteProbe) -> str:
    """A cluster that is gone says so by itself."""
    return "" if site.cluster.retirement else site.unasked


def _start(choice: Choice, site: SiteProbe, project: Project) -> str:
    """What the scheduler says to the job of this choice, which is not submitted."""
    if not site.answers:
        return ""
    cluster, scheduler = site.cluster, scheduler_of(site.cluster)
    job = job_spec(_with_choice(project, choice, cluster), cluster, cluster.store or USUAL)
    question = trial_question(job, scheduler)
    if not question:
        return "this scheduler does not tell"
    try:
        answer = ask_site(place_of(cluster), question, usual={})[TRIAL].text
    except Unreachable as problem:
        return f"not known: {problem.what}"
    trial = scheduler.read_prospect(answer)
    if trial.refusal:
        return f"never as it is: {trial.refusal}"
    if not trial.start:
        return "not told"
    return f"perhaps {_moment(trial.start)} (a guess of the scheduler)"


def _moment(start: str) -> str:
    return f"at {start}" if start[:1].isdigit() else start


def _with_choice(project: Project, choice: Choice, cluster: Cluster) -> Project:
    """The project with what was chosen in place of what it asks."""
    queue = cluster.partition(choice.queue)
    resources = replace(
        project.resources,
        walltime=choice.walltime,
        gpus=choice.gpus,
        nodes=choice.nodes,
        gpu_model=queue.gpu_model if queue and choice.gpus and cluster.names_model else "",
        cores=choice.cores // project.resources.tasks or None,
        memory=choice.memory or None,
    )
    called = queue.called if queue and cluster.names_queue else ""
    chain = replace(project.chain, jobs=choice.jobs)
    return replace(project, resources=resources, queue=called, chain=chain)


def _need(project: Project, options: PlanOptions, total: timedelta) -> Need:
    asked = project.resources
    wanted = options.gpus if options.gpus is not None else _gpus(project, options) * asked.nodes
    return Need(
        total=total,
        gpus=wanted,
        gpu=options.gpu or asked.gpu_model,
        resumes=_resumes(project),
        spreads=project.launch != "program",
        cores=asked.cores or 0,
        memory=(asked.memory or 0) * asked.nodes,
        unfit=unfit_gpus(project.environment.requirements),
    )


def _resumes(project: Project) -> bool:
    """As its source shows; where that does not tell, or several jobs are asked for, as written."""
    shown = Resumption(read_resumption(project))
    unsure = shown.kind == UNREAD or project.chain.jobs > 1
    return project.continues if unsure else shown.resumes


def _gpus(project: Project, options: PlanOptions) -> int:
    """As in rabaska.toml; where it does not say, one for a program that uses GPUs."""
    wants = options.gpu or project.resources.gpu_model or gpu_line(project)
    return 1 if "gpus" in project.left_out and wants else project.resources.gpus


def _total(
    project: Project, options: PlanOptions, speeds: Sequence[Measured]
) -> tuple[timedelta, str]:
    if options.total:
        span = _span("--total", options.total)
        return span, f"training takes {say_duration(span)}"
    for unit, count in ((STEP, options.steps), (EPOCH, options.epochs)):
        if count:
            return _at_pace(count, unit, speeds)
    known = [each for each in speeds if each.total]
    if known:
        return _at_pace(known[0].total or 0, known[0].unit, known)
    span = project.resources.walltime * project.chain.jobs
    return span, f"training takes {say_duration(span)}: `walltime` times `jobs` of rabaska.toml"


def _span(option: str, text: str) -> timedelta:
    try:
        return duration(text)
    except ValueError as problem:
        raise WrongUse(f"{option} is not a duration", why=str(problem)) from None


def _at_pace(count: float, unit: str, speeds: Sequence[Measured]) -> tuple[timedelta, str]:
    """By the slowest that was measured: no cluster was chosen yet, and jobs end early for free."""
    fitting = [each for each in speeds if each.unit == unit]
    if not fitting:
        raise WrongUse(
            f"no {unit} was measured yet",
            why=f"no run of this project has told its {unit}s",
            hint="`--measure 2m` runs it briefly, here and there; or give --total",
        )
    slowest = max(fitting, key=lambda each: each.seconds)
    span = timedelta(seconds=count * slowest.seconds)
    how = f"{count:,.0f} {unit}s take {say_duration(span)} at the pace of {slowest.run}"
    return span, f"{how} on {slowest.cluster}"
