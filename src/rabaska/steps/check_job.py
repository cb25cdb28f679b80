"""Check a job before anything is sent: its script, its data, and what its cluster can do."""

from rabaska.checkup.check_command import missing_script
from rabaska.checkup.subject import sent_names
from rabaska.domain.job_request import check_launch
from rabaska.domain.jobs import JobSpec
from rabaska.domain.projects import Project
from rabaska.errors import SettingsError
from rabaska.remote.place import Nowhere
from rabaska.settings.project_file import check_data
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.progress import Reporter


def check_script(project: Project) -> None:
    """Refuse a command whose script is not sent: its job would wait in the queue for nothing."""
    missing = missing_script(project, sent_names(project))
    if missing:
        raise SettingsError(missing.what, why=missing.why, hint=missing.fix)


def check_job(
    project: Project, job: JobSpec, cluster: ConnectedCluster, reporter: Reporter
) -> None:
    """Refuse what cannot run there; report what its scheduler cannot do, and was not asked."""
    check_data(project)
    check_launch(job, cluster.cluster, cluster.scheduler.capabilities)
    if isinstance(cluster.place, Nowhere):
        reporter.warn(f"{cluster.place.why}; paths are shown as the profile spells them")
    for sentence in cluster.scheduler.unmet(job):
        reporter.warn(sentence)
