"""Growth: what a run needs to know to add jobs to its chain by itself."""

from dataclasses import replace

from rabaska.domain.clusters import Cluster
from rabaska.domain.jobs import JobId, JobSpec, Resources
from rabaska.domain.projects import Project
from rabaska.node.record.plan import Growth
from rabaska.steps.connect import ConnectedCluster

MORE = "job-more.sh"  # the script of such a job


def growth(project: Project, spec: JobSpec, station: ConnectedCluster) -> Growth:
    """How the run may do so; no words where it may not."""
    at_most, cluster = project.chain.at_most, station.cluster
    if at_most is not None and at_most <= spec.jobs == 1:
        return Growth(at_most=at_most)
    if not cluster.inside_jobs or cluster.submit_from:
        return Growth(at_most, why_not=f"no job may submit another on {cluster.name}")
    path, one = f"{station.run_folder(spec.name)}/{MORE}", replace(spec, jobs=1)
    words = station.scheduler.submit_command(path, one, after=JobId("{after}"))
    return Growth(at_most, words, station.find_command(spec.name))


def longest(cluster: Cluster, asked: Resources) -> dict[str, object] | None:
    """The queue of that kind whose jobs may take longest, where the profile knows all limits."""
    fitting = [each for each in cluster.partitions if each.takes(asked.gpus)]
    known = [(each.walltime, each.name) for each in fitting if each.walltime]
    if not known or len(known) < len(fitting):
        return None
    limit, name = max(known)
    return {"queue": name, "walltime": limit.total_seconds()}
