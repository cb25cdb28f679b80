"""Prospect: show a cluster's scheduler the job that a project would become, and submit nothing."""

import re
from pathlib import Path

from rabaska.domain.asking import completed
from rabaska.domain.clusters import Cluster
from rabaska.domain.jobs import Prospect
from rabaska.domain.projects import Project
from rabaska.domain.runs import new_name
from rabaska.errors import SubmissionRefused
from rabaska.journeys.station import Station, place_of
from rabaska.journeys.submit import job_spec
from rabaska.remote.place import quoted

PROSPECT = "prospect"  # the name of the question
# Slurm says that no node can give it also when all that could are down or drained just now, and
# takes the job then; seen with 22.05.
_PASSING = re.compile(
    r"not available now|drained|busy|contact|timed out|try again"
    r"|node configuration is not available",
    re.IGNORECASE,
)


def prospect_question(project: Project, cluster: Cluster) -> dict[str, str]:
    """The question by name; none where this scheduler cannot be asked."""
    there = sketch(cluster)
    spec = job_spec(completed(project, cluster), new_name(project.name), there)
    command = there.scheduler.prospect_command(spec)
    if not command:
        return {}
    script = "\n".join(["#!/bin/bash", *there.scheduler.directives(spec), "true", ""])
    return {PROSPECT: f"printf %s {quoted([script])} | {quoted(command)}"}


def read_prospect(said: str, cluster: Cluster) -> Prospect:
    return sketch(cluster).scheduler.read_prospect(said)


def refuse_early(answer: str, there: Station) -> None:
    """SubmissionRefused when the scheduler's answer is a refusal for a reason that is known.

    Before the first byte moves: a dataset may take hours to send. What may pass by itself, and
    what nobody foresaw, is left to the submission.
    """
    said = read_prospect(answer, there.cluster).refusal
    if not said or _PASSING.search(said):
        return
    from rabaska.knowledge.failures import explain

    known = explain(said, stage="submit", scheduler=there.scheduler.name)
    if known:
        raise SubmissionRefused(
            f"{there.cluster.name} would refuse the job: {known[0].meaning}",
            why=f"its scheduler, to which it was only shown, said: {said}",
            hint=f"{known[0].fix}; `--no-doctor` submits it all the same",
        )


def sketch(cluster: Cluster) -> Station:
    """The cluster with a store that nobody has resolved: what is shown is not run."""
    return Station(cluster, place_of(cluster), cluster.store or "~/rabaska", "python3", Path())
