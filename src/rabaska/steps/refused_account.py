"""A job that is refused for its account: which of the user's accounts would be accepted."""

from collections.abc import Sequence
from dataclasses import replace

from rabaska.checkup.subject import Subject
from rabaska.domain.job_request import plain_accounts
from rabaska.domain.jobs import JobSpec
from rabaska.domain.queue_limits import cluster_line
from rabaska.errors import SubmissionRefused
from rabaska.schedulers import recognition
from rabaska.sites.questions import NO_ANSWER
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.probe_site import ask_site
from rabaska.steps.trial_jobs import TRIAL, trial_question

_OF_ACCOUNTS = ("slurm-invalid-account", "slurm-multiple-accounts")
_ACCOUNTS = "accounts"  # the name of the question
_MOST_TRIED = 10  # accounts, each with a question to the scheduler


def refuse_account(subject: Subject, job: JobSpec, cluster: ConnectedCluster, trial: str) -> None:
    """SubmissionRefused where the account is at fault, with the line that names another.

    The scheduler is shown the job once more for each account of the user: only those that it
    accepts are named.
    """
    said = cluster.scheduler.read_prospect(trial).refusal
    if not said or not _speaks_of_account(said, cluster):
        return
    theirs = ask_site(cluster.place, {}, usual=recognition.questions_today()).get(
        _ACCOUNTS, NO_ANSWER
    )
    if not theirs.ok:
        return  # nobody can say; the scheduler's own words must do
    known = plain_accounts(theirs.text.split())
    accepted = _accepted(known, job, cluster)
    raise SubmissionRefused(
        f"{cluster.name} would refuse the job: {_what(known, job, cluster)}",
        why=f"its scheduler, to which it was only shown, said: {said}",
        hint=f"{_remedy(known, accepted, subject)}; `--anyway` submits it all the same",
    )


def _speaks_of_account(said: str, cluster: ConnectedCluster) -> bool:
    from rabaska.knowledge.failures import explain

    known = explain(said, stage="submit", scheduler=cluster.scheduler.name)
    return bool(known) and known[0].id in _OF_ACCOUNTS


def _accepted(names: Sequence[str], job: JobSpec, cluster: ConnectedCluster) -> list[str]:
    asked = {
        name: trial_question(replace(job, account=name), cluster.scheduler)[TRIAL]
        for name in names[:_MOST_TRIED]
        if name != job.account
    }
    answers = ask_site(cluster.place, asked, usual={}) if asked else {}
    read = cluster.scheduler.read_prospect
    return [name for name in asked if name in answers and not read(answers[name].text).refusal]


def _what(known: Sequence[str], job: JobSpec, cluster: ConnectedCluster) -> str:
    if not known:
        return f"you have no account on {cluster.name}"
    if not job.account:
        return "it names no account, and the one it would be charged to is not accepted"
    if job.account not in known:
        return f"you have no account `{job.account}` on {cluster.name}"
    return f"your account `{job.account}` may not use this queue"


def _remedy(known: Sequence[str], accepted: Sequence[str], subject: Subject) -> str:
    if not known:
        return "ask the site, or who leads your project, to add you to an account"
    if not accepted:
        yours = f"yours are {', '.join(known)}, and none of them is accepted"
        return f"{yours}: name another `queue`, or ask the site"
    others = f" (or {', '.join(accepted[1:])})" if accepted[1:] else ""
    line = cluster_line("account", accepted[0], subject.project, subject.cluster.name)
    return f"write {line}{others}"
