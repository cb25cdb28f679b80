"""Run: connect to the cluster, check the project, carry it there, plan the run, submit it."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rabaska.domain.jobs import JobId
from rabaska.domain.projects import Project
from rabaska.domain.runs import Draw, names_for, new_name
from rabaska.environments.recipes import Environment
from rabaska.node.record.plan import PlannedInterruption
from rabaska.packing.node_bundle import bundle
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord, enter, forget, remember
from rabaska.settings.project_file import check_filled
from rabaska.steps.carry import Carried, carry, preview_carry
from rabaska.steps.connect import ConnectedCluster, connect, connect_for_preview
from rabaska.steps.plan_run import PlannedRun, check_job, job_spec, plan_run
from rabaska.steps.progress import Reporter, SilentReporter
from rabaska.steps.submit import NameTaken, create, submit


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
    reporter: Reporter | None = None,
    *,
    advise: bool = True,
    anyway: bool = False,
    draw: Draw | None = None,
) -> Submitted:
    """Start a run; names are made of what `draw` gives.

    WouldFail where a check of `advise` says so; with `anyway` that is only reported.
    """
    reporter = reporter or SilentReporter()
    check_filled(project)
    if advise:
        from rabaska.steps.earlier_runs import check_advance
        from rabaska.steps.findings import check_script, reported_only

        check_script(project)
        with reported_only(reporter, anyway=anyway):
            check_advance(project, on, home, reporter)
    cluster = connect(on, home, reporter)
    job = job_spec(project, cluster.cluster, cluster.store)
    resumes, check = "", None
    if advise:
        from rabaska.steps.findings import check_environment, check_findings

        subject = check_findings(project, job, cluster, reporter, anyway=anyway)
        resumes = subject.resumption.kind

        def check(environment: Environment) -> None:
            check_environment(subject, environment, cluster, reporter, anyway=anyway)

    check_job(project, job, cluster, reporter)
    carried = carry(project, job, cluster, home, reporter, resumes=resumes, check=check)
    planned, record = create_run(carried, names_for(project.name, draw), home)
    if advise:
        from rabaska.steps.earlier_runs import tell_if_alone

        tell_if_alone(project, on, home, planned.plan, reporter)
    return submit_run(planned, record, cluster, home, reporter)


def create_run(
    carried: Carried,
    names: Iterator[str],
    home: Home,
    interruptions: Sequence[PlannedInterruption] = (),
) -> tuple[PlannedRun, RunRecord]:
    """Plan a run under the first name that no other run has, here or there, and make its folder."""
    for name in names:
        planned = plan_run(carried, name, interruptions)
        # Remembered first: whatever happens to this computer, no job runs that it does not know.
        record = enter(home.runs, _record(planned, carried))
        if record is None:
            continue  # another run of this computer is called so
        try:
            create(planned, carried.cluster, record.path)
        except NameTaken:
            forget(home.runs, record)
            continue
        return planned, record
    raise AssertionError("names never end")


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
    )


def submit_run(
    planned: PlannedRun,
    record: RunRecord,
    cluster: ConnectedCluster,
    home: Home,
    reporter: Reporter,
) -> Submitted:
    """Submit a run whose folder is there, and remember the id of its job."""
    try:
        job = submit(planned.spec, cluster, reporter=reporter)
    except KeyboardInterrupt:
        hint = f"`rabaska status {record.name}` shows what became of it"
        reporter.warn(f"run {record.name} was being submitted; {hint}")
        raise
    remember(home.runs, replace(record, job_id=job.native))
    reporter.step(f"run {record.name}: submitted to {record.cluster}, id {job}")
    return Submitted(run=record.name, job_id=job, cluster=record.cluster, path=record.path)


def preview(
    project: Project, on: str, home: Home, reporter: Reporter | None = None, *, advise: bool = True
) -> PlannedRun:
    """What `run` would submit, with nothing packed, sent or written outside a temporary folder."""
    reporter = reporter or SilentReporter()
    check_filled(project)
    if advise:
        from rabaska.steps.findings import check_script

        check_script(project)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        cluster = connect_for_preview(on, home, program=bundle(scratch))
        job = job_spec(project, cluster.cluster, cluster.store)
        check_job(project, job, cluster, reporter)
        carried = preview_carry(project, job, cluster, home, scratch, reporter)
        return plan_run(carried, new_name(project.name))
