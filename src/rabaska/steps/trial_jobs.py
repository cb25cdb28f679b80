"""A job shown to the scheduler and not submitted, and a short one that probes the nodes."""

import re
from datetime import timedelta
from pathlib import Path

from rabaska.domain.clusters import Cluster
from rabaska.domain.job_request import with_site_defaults
from rabaska.domain.jobs import JobSpec, Resources, TrialAnswer
from rabaska.domain.projects import Project
from rabaska.domain.runs import new_name
from rabaska.errors import SubmissionRefused
from rabaska.remote.place import quoted
from rabaska.sites import questions
from rabaska.sites.questions import PROBE_NAME, SiteAnswer
from rabaska.steps.connect import ConnectedCluster, place_of
from rabaska.steps.probe_site import ask_site
from rabaska.steps.submit import job_spec

TRIAL = "prospect"  # the name of the question
# Slurm says that no node can give it also when all that could are down or drained just now, and
# takes the job then; seen with 22.05.
_PASSING = re.compile(
    r"not available now|drained|busy|contact|timed out|try again"
    r"|node configuration is not available",
    re.IGNORECASE,
)


def trial_question(project: Project, cluster: Cluster) -> dict[str, str]:
    """The question by name; none where this scheduler cannot be asked."""
    there = unresolved_cluster(cluster)
    spec = job_spec(with_site_defaults(project, cluster), new_name(project.name), there)
    command = there.scheduler.prospect_command(spec)
    if not command:
        return {}
    script = "\n".join(["#!/bin/bash", *there.scheduler.directives(spec), "true", ""])
    return {TRIAL: f"printf %s {quoted([script])} | {quoted(command)}"}


def read_trial(said: str, cluster: Cluster) -> TrialAnswer:
    return unresolved_cluster(cluster).scheduler.read_prospect(said)


def refuse_early(answer: str, there: ConnectedCluster) -> None:
    """SubmissionRefused when the scheduler's answer is a refusal for a reason that is known.

    Before the first byte moves: a dataset may take hours to send. What may pass by itself, and
    what nobody foresaw, is left to the submission.
    """
    said = read_trial(answer, there.cluster).refusal
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


def unresolved_cluster(cluster: Cluster) -> ConnectedCluster:
    """The cluster with a store that nobody has resolved: what is shown is not run."""
    return ConnectedCluster(
        cluster, place_of(cluster), cluster.store or "~/rabaska", "python3", Path()
    )


_MINUTE = timedelta(minutes=1)
_SUBMITTED = "submitted="

# A job has no terminal, and its output may come late or elsewhere: it writes into a folder of ours.
# `$1` is the top of its script, `$2` its body, the rest submits `job.sh`.
_WAIT = """\
top=$1 body=$2; shift 2
folder=$(mktemp -d "$HOME/.rabaska-probe.XXXXXX") && cd "$folder" || exit
trap 'cd /; rm -rf "$folder"' EXIT
{ printf '%s\\n' "$top"; printf 'folder=%q\\n' "$folder"; printf '%s\\n' "$body"; } > job.sh
told=$("$@" 2>&1) || { printf '%s\\n' "$told"; exit 1; }
printf 'submitted=%s\\n' "$told"
for second in $(seq 270); do [ -e said ] && exec cat said; sleep 1; done
exit 124
"""
_TELL = """\
{{ {ask}; }} > "$folder/said.partial" 2>&1
mv "$folder/said.partial" "$folder/said"
"""


def probe(cluster: Cluster, account: str = "") -> dict[str, SiteAnswer]:
    """The answer of a compute node under the name `probe`; a job that never began is cancelled."""
    there = unresolved_cluster(cluster)
    answers = ask_site(there.place, {PROBE_NAME: probe_question(cluster, account)}, usual={})
    said = answers[PROBE_NAME]
    if said.ok or _SUBMITTED not in said.text:
        return answers
    job = there.scheduler.read_job_id(said.text.partition(_SUBMITTED)[2])
    if job:
        there.place.run(quoted(there.scheduler.cancel_command([job])))
    return answers


def probe_question(cluster: Cluster, account: str = "") -> str:
    """What is asked: by a job that the scheduler waits for itself, or by one that writes a file."""
    scheduler = unresolved_cluster(cluster).scheduler
    ask = questions.job_question(scheduler.site.local_variables)
    if waited := scheduler.waited_command(["bash", "-c", ask], account=account):
        return quoted(waited)
    shortest = [each.shortest or _MINUTE for each in cluster.partitions if each.default]
    spec = JobSpec(
        name="rabaska-probe",
        resources=Resources(walltime=max([_MINUTE, *shortest, cluster.shortest or _MINUTE])),
        folder="",
        account=account,
        requeue=False,
        native=cluster.native,
    )
    top = "\n".join(["#!/bin/bash", *scheduler.directives(spec)])
    return quoted(
        [
            "bash",
            "-c",
            _WAIT,
            "probe",
            top,
            _TELL.format(ask=ask),
            *scheduler.submit_command("job.sh", spec),
        ]
    )
