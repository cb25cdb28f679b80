"""Run: connect to the cluster, check the project, carry it there, plan the run, submit it."""

import tempfile
from pathlib import Path

from rabaska.domain.projects import Project
from rabaska.domain.runs import Checks, Draw, Labels, names_for, new_name
from rabaska.packing.node_bundle import bundle
from rabaska.records.home import Home
from rabaska.settings.project_file import check_filled
from rabaska.steps.carry import Carried, preview_carry
from rabaska.steps.connect import cluster_named, connect, connect_for_preview
from rabaska.steps.new_run import (
    Submitted,
    carry_checked,
    create_run,
    report_if_stopped,
    submit_run,
)
from rabaska.steps.pick_request import with_request
from rabaska.steps.plan_run import PlannedRun, check_job, job_spec, plan_run
from rabaska.steps.progress import Reporter, SilentReporter

__all__ = ["Submitted", "carried_project", "preview", "run"]


def run(
    project: Project,
    on: str,
    home: Home,
    reporter: Reporter | None = None,
    *,
    checks: Checks | None = None,
    draw: Draw | None = None,
    labels: Labels | None = None,
) -> Submitted:
    """Start a run; names are made of what `draw` gives. WouldFail where a check says so."""
    reporter, checks = reporter or SilentReporter(), checks or Checks()
    with report_if_stopped("nothing was submitted, and no run was made", reporter):
        carried = carried_project(project, on, home, reporter, checks)
        if checks.wanted:
            from rabaska.steps.earlier_runs import tell_if_alone

            plan = plan_run(carried, project.name).plan
            tell_if_alone(carried.project, on, home, plan, reporter)
    names = names_for(project.name, draw)
    planned, record = create_run(carried, names, home, reporter, labels=labels)
    submitted = submit_run(planned, record, carried.cluster, home, reporter)
    if checks.wanted:
        from rabaska.steps.earlier_runs import tell_if_twice

        tell_if_twice(record, home, reporter)
    return submitted


def carried_project(
    project: Project, on: str, home: Home, reporter: Reporter, checks: Checks
) -> Carried:
    """The project checked, and all of it on its cluster."""
    check_filled(project)
    profile = cluster_named(on, home)
    project = with_request(project, profile, reporter)
    if checks.wanted:
        from rabaska.steps.check_project import check_offline

        check_offline(project, on, home, reporter, checks)
    cluster = connect(on, home, reporter, profile=profile)
    job = job_spec(project, cluster.cluster, cluster.store)
    return carry_checked(project, job, cluster, home, reporter, checks)


def preview(
    project: Project,
    on: str,
    home: Home,
    reporter: Reporter | None = None,
    *,
    checks: Checks | None = None,
) -> PlannedRun:
    """What `run` would submit, with nothing packed, sent or written outside a temporary folder."""
    reporter, checks = reporter or SilentReporter(), checks or Checks()
    check_filled(project)
    if checks.wanted:
        from rabaska.steps.findings import check_script

        check_script(project)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        project = with_request(project, cluster_named(on, home), reporter)
        cluster = connect_for_preview(on, home, program=bundle(scratch))
        job = job_spec(project, cluster.cluster, cluster.store)
        check_job(project, job, cluster, reporter)
        carried = preview_carry(project, job, cluster, home, scratch, reporter)
        return plan_run(carried, new_name(project.name))
