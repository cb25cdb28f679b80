"""A job shown to the scheduler and not submitted, and a short one that probes the nodes."""

import re
from datetime import timedelta

from rabaska.domain.clusters import Cluster
from rabaska.domain.jobs import JobSpec, Resources
from rabaska.errors import SubmissionRefused
from rabaska.remote.place import quoted
from rabaska.schedulers.protocol import Scheduler
from rabaska.sites import questions
from rabaska.sites.questions import PROBE_NAME, SiteAnswer
from rabaska.steps.connect import ConnectedCluster, place_of, scheduler_of
from rabaska.steps.probe_site import ask_site

TRIAL = "prospect"  # the name of the question
# Slurm says that no node can give it also when all that could are down or drained just now, and
# takes the job then; seen with 22.05.
_PASSING = re.compile(
    r"not available now|drained|busy|contact|timed out|try again"
    r"|node configuration is not available",
    re.IGNORECASE,
)


def trial_question(job: JobSpec, scheduler: Scheduler) -> dict[str, str]:
    """The question by name; none where this scheduler cannot be asked."""
    command = scheduler.prospect_command(job)
    if not command:
        return {}
    script = "\n".join(["#!/bin/bash", *scheduler.directives(job), "true", ""])
    return {TRIAL: f"printf %s {quoted([script])} | {quoted(command)}"}


def refuse_early(answer: str, cluster: ConnectedCluster) -> None:
    """SubmissionRefused when the scheduler's answer is a refusal for a reason that is known.

    Before the first byte moves: a dataset may take hours to send. What may pass by itself, and
    what nobody foresaw, is left to the submission.
    """
    refusal = cluster.scheduler.read_prospect(answer).refusal
    if not refusal or _PASSING.search(refusal):
        return
    from rabaska.knowledge.failures import explain

    known = explain(refusal, stage="submit", scheduler=cluster.scheduler.name, cluster=cluster.name)
    if known:
        raise SubmissionRefused(
            f"{cluster.name} would refuse the job: {known[0].meaning}",
            why=f"its scheduler, to which it was only shown, said: {refusal}",
            hint=f"{known[0].fix.rstrip('.')}; `--anyway` submits it all the same",
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
    place, scheduler = place_of(cluster), scheduler_of(cluster)
    answers = ask_site(place, {PROBE_NAME: probe_question(cluster, account)}, usual={})
    answer = answers[PROBE_NAME]
    if answer.ok or _SUBMITTED not in answer.text:
        return answers
    job = scheduler.read_job_id(answer.text.partition(_SUBMITTED)[2])
    if job:
        place.run(quoted(scheduler.cancel_command([job])))
    return answers


def probe_question(cluster: Cluster, account: str = "") -> str:
    """What is asked: by a job that the scheduler waits for itself, or by one that writes a file."""
    scheduler = scheduler_of(cluster)
    ask = questions.job_question(scheduler.site.local_variables)
    if waited := scheduler.waited_command(["bash", "-c", ask], account=account):
        return quoted(waited)
    usual = [queue for queue in cluster.partitions if queue.default]
    shortest = [queue.shortest or _MINUTE for queue in usual]
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
