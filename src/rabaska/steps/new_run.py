"""A new run: checked and carried, its folder made under a name of its own, its jobs submitted."""

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from rabaska.domain.jobs import JobId, JobSpec
from rabaska.domain.projects import Project
from rabaska.domain.runs import Checks, Labels
from rabaska.errors import CommandFailed, NoSpace, RabaskaError
from rabaska.node.record.plan import Plan, PlannedInterruption
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord, enter, forget, remember
from rabaska.steps.carry import Carried, carry
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.delete_folder import delete_folder
from rabaska.steps.plan_run import PlannedRun, check_job, plan_run
from rabaska.steps.progress import Reporter
from rabaska.steps.submit import NameTaken, NothingTaken, create, submit

_ARRIVED = "nothing was submitted; what arrived of code, data and environment is not sent again"


@dataclass(frozen=True)
class Submitted:
    run: str
    job_id: JobId
    cluster: str
    path: str  # the run folder on its cluster


class _Told(KeyboardInterrupt):
    """A Ctrl-C of which was told what it interrupted."""

    told = True  # for whoever catches it, and need not say more


@contextmanager
def report_if_stopped(what: str, reporter: Reporter) -> Iterator[None]:
    """Report `what` is the case if Ctrl-C comes meanwhile; once, by whoever knows most."""
    try:
        yield
    except _Told:
        raise
    except KeyboardInterrupt as problem:
        reporter.warn(what)
        raise _Told from problem


def create_run(
    carried: Carried,
    names: Iterator[str],
    home: Home,
    reporter: Reporter,
    interruptions: Sequence[PlannedInterruption] = (),
    labels: Labels | None = None,
    *,
    incomplete: bool = False,
) -> tuple[PlannedRun, RunRecord]:
    """Plan a run under the first name that no other run has, here or there, and make its folder.

    For `incomplete` see `submit.create`.
    """
    for name in names:
        planned = plan_run(carried, name, interruptions, labels)
        made = f"run {name} was being made and is not submitted; `rabaska delete {name}` removes it"
        with report_if_stopped(made, reporter):
            record = _made(planned, carried, home, incomplete=incomplete)
        if record:
            return planned, record
    raise AssertionError("names never end")


def _made(
    planned: PlannedRun, carried: Carried, home: Home, *, incomplete: bool
) -> RunRecord | None:
    """The record of a run whose folder is there; None where another run has its name."""
    # Remembered first: whatever happens to this computer, no job runs that it does not know.
    record = enter(home.runs, _record(planned, carried))
    if record is None:
        return None  # another run of this computer is called so
    try:
        create(planned, carried.cluster, record.path, incomplete=incomplete)
    except NameTaken:
        forget(home.runs, record)
        return None
    except (CommandFailed, NoSpace):  # it is made completely or not at all
        forget(home.runs, record)
        raise
    return record


def _record(planned: PlannedRun, carried: Carried) -> RunRecord:
    name, project, cluster = planned.plan.run, carried.project, carried.cluster
    return RunRecord(
        name,
        cluster.name,
        cluster.run_folder(name),
        str(project.folder),
        time.time(),
        id=planned.plan.id,
        called=project.name,
        note=planned.plan.origin.note,
        tags=tuple(planned.plan.origin.tags),
        work=_work(planned.plan),
    )


def _work(plan: Plan) -> str:
    done = [
        plan.code,
        *plan.command,
        *(f"{one.name} {one.pack} {one.path}" for one in plan.datasets),
    ]
    return hashlib.sha256("\0".join(done).encode()).hexdigest()[:16]


def submit_run(
    planned: PlannedRun,
    record: RunRecord,
    cluster: ConnectedCluster,
    home: Home,
    reporter: Reporter,
) -> Submitted:
    """Submit a run whose folder is there, and remember the id of its job.

    A run that the scheduler refuses never was one: nothing is left of it.
    """
    hint = f"`rabaska status {record.name}` shows what became of it"
    with report_if_stopped(f"run {record.name} was being submitted; {hint}", reporter):
        try:
            job = submit(planned.spec, cluster, reporter=reporter)
        except NothingTaken:
            # Where it cannot be removed now, `status` says what became of it.
            with suppress(RabaskaError):
                delete_folder(record, cluster)
                forget(home.runs, record)
            raise
    remember(home.runs, replace(record, job_id=job.native))
    reporter.step(f"run {record.name}: submitted to {record.cluster}, id {job}")
    return Submitted(run=record.name, job_id=job, cluster=record.cluster, path=record.path)


def carry_checked(
    project: Project,
    job: JobSpec,
    cluster: ConnectedCluster,
    home: Home,
    reporter: Reporter,
    checks: Checks,
) -> Carried:
    """WouldFail or SubmissionRefused before anything is sent, where a check says so."""
    resumes, check = "", None
    if checks.wanted:
        from rabaska.steps.check_project import check_there

        checked = check_there(project, job, cluster, reporter, checks)
        resumes, check = checked.resumes, checked.check_environment
    check_job(project, job, cluster, reporter)
    with report_if_stopped(_ARRIVED, reporter):
        return carry(project, job, cluster, home, reporter, resumes=resumes, check=check)
