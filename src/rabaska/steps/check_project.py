"""Check a project before it is sent: as `doctor` does, and by what its earlier runs have shown."""

from dataclasses import dataclass

from rabaska.checkup.subject import Subject
from rabaska.domain.jobs import JobSpec
from rabaska.domain.projects import Project
from rabaska.domain.runs import Checks
from rabaska.environments.recipes import Environment
from rabaska.records.home import Home
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.earlier_runs import check_advance
from rabaska.steps.findings import check_environment, check_findings, check_script, reported_only
from rabaska.steps.progress import Reporter


def check_offline(
    project: Project, on: str, home: Home, reporter: Reporter, checks: Checks, *, code: str = ""
) -> None:
    """What needs no connection; `code` is the digest of a snapshot that is used again."""
    if not code:
        check_script(project)
    with reported_only(reporter, anyway=checks.anyway):
        check_advance(project, on, home, reporter, code=code)


@dataclass(frozen=True)
class CheckedProject:
    """A project of which no error was found; its environment can be checked once it is known."""

    subject: Subject
    cluster: ConnectedCluster
    reporter: Reporter
    anyway: bool

    @property
    def resumes(self) -> str:
        """See `Plan.resumes`."""
        return self.subject.resumption.kind

    def check_environment(self, environment: Environment) -> None:
        check_environment(
            self.subject, environment, self.cluster, self.reporter, anyway=self.anyway
        )


def check_there(
    project: Project, job: JobSpec, cluster: ConnectedCluster, reporter: Reporter, checks: Checks
) -> CheckedProject:
    """WouldFail or SubmissionRefused, unless `checks` says anyway."""
    subject = check_findings(project, job, cluster, reporter, anyway=checks.anyway)
    return CheckedProject(subject, cluster, reporter, checks.anyway)
