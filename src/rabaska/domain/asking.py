"""What a job asks, completed by what its cluster demands of every job."""

from dataclasses import replace

from rabaska.domain.clusters import Cluster, Partition
from rabaska.domain.projects import Project


def completed(project: Project, cluster: Cluster) -> Project:
    """The project with the queue, the GPU model and the options that the cluster wants to hear.

    What the project says itself is never changed, only spelled as the cluster spells it.
    """
    meant = meant_partition(project, cluster)
    if meant is None:
        return project
    return replace(
        project,
        queue=meant.called if cluster.names_queue or project.queue else "",
        features=project.features or meant.features,
        native=(*meant.native, *(word for word in project.native if word not in meant.native)),
        resources=replace(project.resources, gpu_model=_spelled(project, meant, cluster)),
    )


def meant_partition(project: Project, cluster: Cluster) -> Partition | None:
    """The queue that is named, or the only one with the GPU that is, or the usual one.

    None when the profile does not know it, or it is not of the kind that is asked for.
    """
    asked = project.resources
    if project.queue:
        return cluster.partition(project.queue)
    if asked.gpus and asked.gpu_model:
        fitting = [each for each in cluster.partitions if asked.gpu_model in _names(each)]
        unnamed = [each for each in fitting if not each.called]
        alike = len({each.called for each in fitting}) == 1
        return next(iter(unnamed or (fitting if alike else ())), None)
    usual = cluster.partition("")
    return usual if usual and usual.takes(asked.gpus) else None


def _names(partition: Partition) -> tuple[str, str]:
    return partition.gpu_model, partition.kind


def _spelled(project: Project, meant: Partition, cluster: Cluster) -> str:
    """The model as this scheduler knows it; nothing where its queues or features tell it."""
    asked = project.resources
    if asked.gpu_model:
        return meant.gpu_model if asked.gpu_model == meant.kind else asked.gpu_model
    return meant.gpu_model if asked.gpus and cluster.names_model else ""
