"""Findings: what would go wrong with a project, as its checks and its cluster tell."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rabaska.checkup import (
    check_code,
    check_command,
    check_data,
    check_imports,
    check_network,
    check_packages,
    check_request,
    check_software,
)
from rabaska.checkup.subject import Finding, Subject, read_subject, sent_names
from rabaska.domain.jobs import JobSpec
from rabaska.domain.projects import Project
from rabaska.errors import SettingsError, SubmissionRefused
from rabaska.sites.questions import NO_ANSWER, SiteAnswer
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.probe_site import ask_site, node_questions, with_node_answers
from rabaska.steps.progress import Reporter
from rabaska.steps.trial_jobs import TRIAL, refuse_early, trial_question

_PROGRAM = "program"  # the name of the question
_FAMILIES = (check_command, check_code, check_network, check_data, check_packages, check_request)


def examine(subject: Subject) -> tuple[Finding, ...]:
    """What was found, the serious first, each thing once."""
    found = [finding for family in _FAMILIES for finding in family.checks(subject)]
    return tuple(sorted(dict.fromkeys(found), key=lambda each: not each.serious))


def warn_of_findings(
    project: Project, job: JobSpec, cluster: ConnectedCluster, reporter: Reporter
) -> Subject:
    """Report the serious findings, without reading data; what was read of the project.

    The cluster is asked two things at once: whether it has the program that no environment
    brings, and whether it would refuse the job, which is then refused here.
    """
    subject = read_subject(project, cluster.cluster, thorough=False)
    answers = _before_sending(subject, job, cluster)
    subject = replace(subject, cluster=with_node_answers(cluster.cluster, answers))
    missing = check_software.missing_program(subject, answers.get(_PROGRAM, NO_ANSWER).text)
    packages = answers.get(check_imports.QUESTION, NO_ANSWER).text
    lacking = check_imports.missing(subject, packages)
    found = (*examine(subject), *missing, *lacking)
    serious = [finding for finding in found if finding.serious and finding.id != "cluster.gone"]
    _refuse_request(serious, cluster)
    for finding in serious:
        reporter.warn(f"{finding.what} ({finding.where}): {finding.fix}")
    rest = len(found) - len(serious)
    if serious and rest:
        reporter.warn(f"`rabaska doctor --on {cluster.name}` tells {rest} more")
    refuse_early(answers.get(TRIAL, NO_ANSWER).text, cluster)
    return subject


# What no job gets, however long it waits: the scheduler refuses it, or lets it wait forever.
_NEVER = ("queue", "model", "time", "gpus", "no-gpu", "gpu-count", "cores", "memory", "nodes")


def _refuse_request(serious: Sequence[Finding], cluster: ConnectedCluster) -> None:
    """SubmissionRefused when the job asks for what its queue does not grant."""
    never = [each for each in serious if each.id in {f"cluster.{word}" for word in _NEVER}]
    if not never:
        return
    first, *others = never
    more = "".join(f"; {each.what}: {each.fix}" for each in others)
    raise SubmissionRefused(
        f"{cluster.name} does not grant this: {first.what}",
        why=first.why,
        hint=f"{first.fix}{more}; `--no-doctor` submits it all the same",
    )


def _before_sending(
    subject: Subject, job: JobSpec, cluster: ConnectedCluster
) -> Mapping[str, SiteAnswer]:
    questions = {**trial_question(job, cluster.scheduler), **node_questions(cluster.cluster)}
    if subject.project.environment.kind == "current" and not cluster.cluster.is_here:
        questions[_PROGRAM] = check_software.program_question(subject)
    questions.update(check_imports.question(subject))
    return ask_site(cluster.place, questions, usual={}) if questions else {}


def check_script(project: Project) -> None:
    """Refuse a command whose script is not sent: its job would wait in the queue for nothing."""
    missing = check_command.missing_script(project, sent_names(project))
    if missing:
        raise SettingsError(missing.what, why=missing.why, hint=missing.fix)
