"""Bring a project to its cluster once it was checked there."""

from rabaska.domain.jobs import JobSpec
from rabaska.domain.projects import Project
from rabaska.domain.runs import Checks
from rabaska.records.home import Home
from rabaska.steps.carry import Carried, carry
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.new_run import report_if_stopped
from rabaska.steps.plan_run import check_job
from rabaska.steps.progress import Reporter

_ARRIVED = "nothing was submitted; what arrived of code, data and environment is not sent again"


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
