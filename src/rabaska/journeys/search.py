"""Search: many runs of one program with other values, started, followed, stopped and continued."""

import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rabaska.domain.amounts import say_count
from rabaska.domain.jobs import JobId
from rabaska.domain.projects import Project
from rabaska.domain.repeats import mean_text, repeated, rivals
from rabaska.domain.runs import Checks, Draw, names_for
from rabaska.domain.search import Search, SearchState, SearchStatus, Trial
from rabaska.errors import (
    NoSuchRun,
    NoWinner,
    RabaskaError,
    SettingsError,
    SubmissionRefused,
    WrongUse,
)
from rabaska.journeys.run import carried_project
from rabaska.node.record import plan as plans
from rabaska.packing.node_bundle import bundle
from rabaska.records.home import Home
from rabaska.records.search_index import SearchRecord, enter, forget, remembered
from rabaska.settings.project_file import check_filled, load
from rabaska.steps import submit_search
from rabaska.steps.carry import Carried, preview_carry
from rabaska.steps.carry_over import complete
from rabaska.steps.connect import ConnectedCluster, cluster_named, connect_for_preview
from rabaska.steps.new_run import report_if_stopped
from rabaska.steps.pick_request import with_request
from rabaska.steps.plan_run import check_job, job_spec
from rabaska.steps.plan_search import PlannedSearch, plan_search, workers_of
from rabaska.steps.progress import Reporter, SilentReporter
from rabaska.steps.search_options import (
    Spelled,
    check_values,
    options_of,
    optuna_setup,
    search_of,
    spelled,
)
from rabaska.steps.submit import NameTaken

_PAUSE = 1.0  # seconds between two questions while a search is waited for


@dataclass(frozen=True)
class StartedSearch:
    search: str
    cluster: str
    path: str
    jobs: tuple[str, ...]  # as the scheduler calls those of its workers
    trials: int
    at_once: int


def run(
    project: Project,
    on: str,
    home: Home,
    reporter: Reporter | None = None,
    *,
    name: str = "",
    checks: Checks | None = None,
    draw: Draw | None = None,
) -> StartedSearch:
    """Send the project, make the search and submit its workers; or continue one called `name`."""
    reporter, checks = reporter or SilentReporter(), checks or Checks()
    search, styles = _checked(project, reporter)
    _refuse_second(project, on, home, name)
    with report_if_stopped("nothing was submitted, and no search was made", reporter):
        carried = carried_project(project, on, home, reporter, checks)
    optuna = optuna_setup(search, carried.cluster, reporter)
    names = iter([name]) if name else names_for(project.name, draw)
    planned, record = _created(carried, (search, styles, optuna), names, home)
    jobs = []
    try:
        for job in _submitted(planned, carried.cluster, record):
            jobs.append(str(job))
    except SubmissionRefused:
        if not jobs:
            forget(home.searches, record)
        raise
    reporter.step(
        f"search {planned.name}: {planned.search.trials} trials, {planned.at_once} at once, "
        f"submitted to {on}, id {' '.join(jobs)}"
    )
    return StartedSearch(
        planned.name, on, record.path, tuple(jobs), planned.search.trials or 0, planned.at_once
    )


def _checked(project: Project, reporter: Reporter) -> tuple[Search, Spelled]:
    check_filled(project)
    search = search_of(project, reporter)
    styles = spelled(project, search, reporter)
    problems = check_values(search, options_of(project), styles)
    if problems:
        raise SettingsError(
            "the program would refuse a value of [search.space]",
            why="; ".join(problems),
            hint="remove it from the list",
        )
    return search, styles


def _refuse_second(project: Project, on: str, home: Home, name: str) -> None:
    """One search at a time for one project on one cluster, unless somebody names another."""
    if name:
        return
    for record in reversed(remembered(home.searches)):
        if record.project == str(project.folder) and record.cluster == on:
            try:
                status = submit_search.ask(record, home)
            except (NoSuchRun, RabaskaError):
                return
            if not status.state.over or status.state == SearchState.INTERRUPTED:
                raise WrongUse(
                    f"search {record.name} of this project is {status.state.value} on {on}",
                    hint="`rabaska search status` shows it, `rabaska search more 0` adds workers, "
                    "`rabaska search stop` ends it; `--name OTHER` starts a second one",
                )
            return


def _created(
    carried: Carried,
    wanted: tuple[Search, Spelled, tuple[str, ...]],
    names: Iterator[str],
    home: Home,
) -> tuple[PlannedSearch, SearchRecord]:
    """The search under the first name that no other has."""
    cluster = carried.cluster
    for name in names:
        search, styles, optuna = wanted
        planned = plan_search(carried, search, styles, name, optuna)
        path = f"{cluster.store}/searches/{name}"
        record = SearchRecord(name, cluster.name, path, str(carried.project.folder), time.time())
        if not enter(home.searches, record):
            continue
        try:
            submit_search.create(planned, cluster, path)
        except NameTaken:
            forget(home.searches, record)
            continue
        except RabaskaError:
            forget(home.searches, record)
            raise
        return planned, record
    raise WrongUse(
        "another search has that name",
        hint="`rabaska search more` continues it; or give another `--name`",
    )


def preview(
    project: Project, on: str, home: Home, reporter: Reporter | None = None, *, name: str = ""
) -> PlannedSearch:
    """What `run` would submit, with nothing sent or written outside a temporary folder."""
    reporter = reporter or SilentReporter()
    search, styles = _checked(project, reporter)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        project = with_request(project, cluster_named(on, home), reporter)
        cluster = connect_for_preview(on, home, program=bundle(scratch))
        job = job_spec(project, cluster.cluster, cluster.store)
        check_job(project, job, cluster, reporter)
        carried = preview_carry(project, job, cluster, home, scratch, reporter)
        return plan_search(carried, search, styles, name or next(names_for(project.name)))


def status(record: SearchRecord, home: Home, *, curves: bool = False) -> SearchStatus:
    return submit_search.ask(record, home, curves=curves)


def stop(record: SearchRecord, home: Home) -> SearchStatus:
    """Begin no more trials; those that run save and leave."""
    return submit_search.ask(record, home, "stop")


def more(
    record: SearchRecord, count: int, home: Home, reporter: Reporter | None = None
) -> StartedSearch:
    """Add trials to a search, and submit workers for them and for what is left."""
    reporter = reporter or SilentReporter()
    before = submit_search.ask(record, home)
    project = _project_of(record)
    if project is not None:
        _refuse_changed(project, before)
    grid_is_full = before.method == "grid" and count > 0
    if grid_is_full:
        raise WrongUse(
            f"search {record.name} is a grid, which has no more points",
            hint="extend [search.space], and start another one with `rabaska search run`",
        )
    added = ("more", "--trials", str(count), "--mark", uuid.uuid4().hex)
    words = added if count else ("go-on",)
    after = submit_search.ask(record, home, *words)
    if after.state == SearchState.FINISHED:
        raise WrongUse(
            f"search {record.name} is finished", hint="`rabaska search more 20` adds 20 trials"
        )
    cluster = submit_search.connected(record, home)
    complete(cluster, plans.from_json(dict(after.plan)), home)
    spec, count_of = workers_of(after.workers)
    submitted = submit_search.submit_workers(spec, count_of, cluster, record.path)
    jobs = tuple(str(job) for job in submitted)
    left = after.total - sum(one.ended is not None for one in after.trials)
    reporter.step(
        f"search {record.name}: {say_count(left, 'trial')} to go, submitted, id {' '.join(jobs)}"
    )
    return StartedSearch(record.name, record.cluster, record.path, jobs, after.total, after.at_once)


def _submitted(
    planned: PlannedSearch, cluster: ConnectedCluster, record: SearchRecord
) -> Iterator[JobId]:
    return submit_search.submit_workers(planned.spec, planned.submissions, cluster, record.path)


def _project_of(record: SearchRecord) -> Project | None:
    """As rabaska.toml says now; None where it cannot be read any more."""
    try:
        return load(Path(record.project), cluster=record.cluster)
    except (RabaskaError, OSError):
        return None


def _refuse_changed(project: Project, before: SearchStatus) -> None:
    """What was learnt holds for the space in which it was learnt."""
    now = dict(project.search.space) if project.search else {}
    if not now or now == dict(before.space):
        return
    names = [name for name in {**now, **before.space} if now.get(name) != before.space.get(name)]
    raise WrongUse(
        f"the space of search {before.name} is not that of rabaska.toml any more",
        why=f"`{names[0]}` was {before.space.get(names[0], 'not varied')} and is "
        f"{now.get(names[0], 'not varied')} now",
        hint="put it back to add trials to this search, or start another one with "
        "`rabaska search run --name OTHER`",
    )


def wait(
    record: SearchRecord, home: Home, tell: Callable[[SearchStatus], None] | None = None
) -> SearchStatus:
    """Ask until no worker is left."""
    while True:
        found = submit_search.ask(record, home)
        if tell:
            tell(found)
        # A worker that has just ended may have been the last, or have submitted another.
        if found.state.over and not found.workers_running:
            return found
        time.sleep(_PAUSE)


def best(record: SearchRecord, home: Home) -> tuple[SearchStatus, Trial]:
    """The best trial that finished; NoSuchRun where there is none yet."""
    found = submit_search.ask(record, home)
    if found.best is None:
        raise NoSuchRun(
            f"no trial of search {record.name} has finished yet",
            why=found.halted or f"{len(found.trials)} of {found.total} have begun",
            hint="`rabaska search status` shows how far it is",
        )
    ranked = repeated(found)
    close = rivals(ranked)
    if close:
        told = [f"trial {one.trial.number}: {mean_text(one)}" for one in (ranked[0], *close)]
        seeds = say_count(len(ranked[0].values), "seed")
        raise NoWinner(
            f"no trial of search {record.name} is better than all others by more than chance",
            why=f"with {seeds} each, {found.metric} is " + ", ".join(told),
            hint="take the cheapest of them, as `rabaska run --trial "
            f"{ranked[0].trial.number} --of {record.name}`; or raise `repeats` under [search] in "
            "another search",
        )
    return found, ranked[0].trial if ranked else found.best
