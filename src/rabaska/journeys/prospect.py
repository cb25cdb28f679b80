"""Prospect: show a cluster's scheduler the job that a project would become, and submit nothing."""

from pathlib import Path

from rabaska.domain.asking import completed
from rabaska.domain.clusters import Cluster
from rabaska.domain.jobs import Prospect
from rabaska.domain.projects import Project
from rabaska.domain.runs import new_name
from rabaska.journeys.station import Station, place_of
from rabaska.journeys.submit import job_spec
from rabaska.remote.place import quoted

PROSPECT = "prospect"  # the name of the question


def prospect_question(project: Project, cluster: Cluster) -> dict[str, str]:
    """The question by name; none where this scheduler cannot be asked."""
    there = _sketch(cluster)
    spec = job_spec(completed(project, cluster), new_name(project.name), there)
    command = there.scheduler.prospect_command(spec)
    if not command:
        return {}
    script = "\n".join(["#!/bin/bash", *there.scheduler.directives(spec), "true", ""])
    return {PROSPECT: f"printf %s {quoted([script])} | {quoted(command)}"}


def read_prospect(said: str, cluster: Cluster) -> Prospect:
    return _sketch(cluster).scheduler.read_prospect(said)


def _sketch(cluster: Cluster) -> Station:
    """The cluster with a store that nobody has resolved: what is shown is not run."""
    return Station(cluster, place_of(cluster), cluster.store or "~/rabaska", "python3", Path())
