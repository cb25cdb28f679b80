"""Probe: a job of a minute, in the words of its scheduler, that tells what compute nodes have."""

from datetime import timedelta

from rabaska.domain.clusters import Cluster
from rabaska.domain.jobs import JobSpec, Resources
from rabaska.journeys.prospect import sketch
from rabaska.journeys.visit import ask
from rabaska.remote.place import quoted
from rabaska.scouting import questions
from rabaska.scouting.questions import PROBE_NAME, Answer

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
_TELL = f"""\
{{ {questions.PROBE}; }} > "$folder/said.partial" 2>&1
mv "$folder/said.partial" "$folder/said"
"""


def probe(cluster: Cluster, account: str = "") -> dict[str, Answer]:
    """The answer of a compute node under the name `probe`; a job that never began is cancelled."""
    there = sketch(cluster)
    answers = ask(there.place, {PROBE_NAME: probe_question(cluster, account)}, usual={})
    said = answers[PROBE_NAME]
    if said.ok or _SUBMITTED not in said.text:
        return answers
    job = there.scheduler.read_job_id(said.text.partition(_SUBMITTED)[2])
    if job:
        there.place.run(quoted(there.scheduler.cancel_command([job])))
    return answers


def probe_question(cluster: Cluster, account: str = "") -> str:
    """What is asked; on this computer it is asked at once, and Slurm has a word for it."""
    if cluster.scheduler in ("slurm", "local"):
        return (
            questions.probe_question(account) if cluster.scheduler == "slurm" else questions.PROBE
        )
    scheduler = sketch(cluster).scheduler
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
        ["bash", "-c", _WAIT, "probe", top, _TELL, *scheduler.submit_command("job.sh", spec)]
    )
