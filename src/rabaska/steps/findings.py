"""Findings: what would go wrong with a project, as its checks and its cluster tell."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from rabaska.checkup import (
    check_builds,
    check_code,
    check_command,
    check_data,
    check_imports,
    check_network,
    check_packages,
    check_request,
    check_resolved,
    check_software,
    check_tables,
)
from rabaska.checkup.finding import Finding
from rabaska.checkup.subject import Subject, read_subject, sent_names
from rabaska.domain.amounts import say_count
from rabaska.domain.jobs import JobSpec
from rabaska.domain.projects import Project
from rabaska.environments.recipes import Environment
from rabaska.errors import CannotAdvance, SettingsError, StartsOver, SubmissionRefused, WouldFail
from rabaska.schedulers import recognition
from rabaska.sites.questions import NO_ANSWER, SiteAnswer
from rabaska.steps import chosen_packages
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.probe_site import ask_site, node_questions, read_site, with_node_answers
from rabaska.steps.progress import Reporter
from rabaska.steps.refused_account import refuse_account
from rabaska.steps.trial_jobs import TRIAL, refuse_early, trial_question

_SHOWN = 4  # findings; who wants more asks `doctor`
_PROGRAM = "program"  # the name of the question
_FAMILIES = (
    check_command,
    check_code,
    check_network,
    check_data,
    check_packages,
    check_builds,
    check_request,
    check_tables,
)


def examine(subject: Subject) -> tuple[Finding, ...]:
    """What was found, the serious first, each thing once."""
    found = [finding for family in _FAMILIES for finding in family.checks(subject)]
    return tuple(sorted(dict.fromkeys(found), key=lambda each: not each.serious))


def check_findings(
    project: Project,
    job: JobSpec,
    cluster: ConnectedCluster,
    reporter: Reporter,
    *,
    anyway: bool = False,
) -> Subject:
    """WouldFail where it certainly would, without reading data; what was read of the project.

    The cluster is asked two things at once: whether it has the program that no environment
    brings, and whether it would refuse the job, which is then refused here. With `anyway` all is
    only reported.
    """
    subject = read_subject(project, cluster.cluster, thorough=False)
    answers = _before_sending(subject, job, cluster)
    subject = replace(subject, cluster=with_node_answers(cluster.cluster, answers))
    subject = chosen_packages.with_chosen(subject, answers)
    missing = check_software.missing_program(subject, answers.get(_PROGRAM, NO_ANSWER).text)
    packages = answers.get(check_imports.QUESTION, NO_ANSWER).text
    lacking = check_imports.missing(subject, packages)
    trial = answers.get(TRIAL, NO_ANSWER).text
    found = (*examine(subject), *missing, *lacking)
    with reported_only(reporter, anyway=anyway):
        _refuse_request(subject, found, cluster, trial)
        refuse_account(subject, job, cluster, trial)
        refuse_early(trial, cluster)
    found = overruled(found) if TRIAL in answers else found
    told = [each for each in found if each.id != "cluster.gone"]
    report_findings(told, cluster, reporter, anyway=anyway)
    return subject


# What no job gets, however long it waits: the scheduler refuses it, or lets it wait forever.
_NEVER = ("queue", "model", "time", "gpus", "no-gpu", "gpu-count", "cores", "memory", "nodes")


def _refuse_request(
    subject: Subject, found: Sequence[Finding], cluster: ConnectedCluster, trial: str
) -> None:
    """SubmissionRefused where we know which limit the scheduler meant, and what to write."""
    said = cluster.scheduler.read_prospect(trial).refusal
    if not said:
        return
    if not cluster.cluster.partitions:
        found = [*check_request.checks(_with_queues(subject, cluster))]
    ids = {f"cluster.{word}" for word in _NEVER}
    never = [each for each in found if each.serious and each.id in ids]
    if never:
        first, *others = never
        more = "".join(f"; {each.what}: {each.fix}" for each in others)
        raise SubmissionRefused(
            f"{cluster.name} would refuse the job: {first.what}",
            why=f"{first.why}; its scheduler, to which it was only shown, said: {said}",
            hint=f"{first.fix}{more}; `--anyway` submits it all the same",
        )


def _with_queues(subject: Subject, cluster: ConnectedCluster) -> Subject:
    """The same with the queues as they are today, for a profile that does not know them."""
    answers = ask_site(cluster.place, {}, usual=recognition.questions_today())
    queues = read_site(answers).partitions
    return replace(subject, cluster=replace(subject.cluster, partitions=queues))


def overruled(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """The same, where the scheduler was shown the job: then what a profile says is not certain."""
    return tuple(
        replace(each, serious=False, likely=True)
        if each.serious and each.family == "cluster"
        else each
        for each in found
    )


def report_findings(
    found: Sequence[Finding], cluster: ConnectedCluster, reporter: Reporter, *, anyway: bool
) -> None:
    """Refuse what is certain, and report what is likely; of all else only how much it is."""
    errors = [each for each in found if each.serious]
    doctor = f"`rabaska doctor --on {cluster.name}`"
    if errors and not anyway:
        raise _would_fail(errors, doctor)
    shown = [*errors, *(each for each in found if each.likely and not each.serious)][:_SHOWN]
    for finding in shown:
        reporter.warn(_line(finding))
    rest = len(found) - len(shown)
    if shown and rest:
        reporter.warn(f"and {say_count(rest, 'note')}: {doctor}")


def _line(finding: Finding) -> str:
    return f"{finding.what} ({finding.where}): {finding.fix}"


def _would_fail(errors: Sequence[Finding], doctor: str) -> WouldFail:
    first = errors[0]
    if len(errors) == 1:
        return WouldFail(
            f"this run would fail: {first.what}",
            why=f"{first.why} ({first.where})",
            hint=f"{first.fix}; `--anyway` submits it all the same",
        )
    lines = [_line(each) for each in errors[:_SHOWN]]
    rest = len(errors) - len(lines)
    lines += [f"and {rest} more: {doctor}"] if rest else []
    return WouldFail(
        f"this run would fail, for {len(errors)} reasons",
        why="\n  ".join(lines),
        hint="correct them first; `--anyway` submits it all the same",
    )


@contextmanager
def reported_only(reporter: Reporter, *, anyway: bool) -> Iterator[None]:
    """With `anyway`, what a check refuses inside is reported, and the work goes on."""
    try:
        yield
    except (CannotAdvance, StartsOver, SubmissionRefused) as problem:
        if not anyway:
            raise
        reporter.warn(f"{problem.what}: {problem.why}")


def check_environment(
    subject: Subject,
    environment: Environment,
    cluster: ConnectedCluster,
    reporter: Reporter,
    *,
    anyway: bool,
) -> None:
    """WouldFail where what pip chose lacks a module or code for the GPU, or is too large."""
    built = environment.built
    if built:
        resolved = check_resolved.Resolved(built.packages, built.modules, built.unread, built.room)
        found = tuple(check_resolved.checks(subject, resolved))
        report_findings(found, cluster, reporter, anyway=anyway)


def _before_sending(
    subject: Subject, job: JobSpec, cluster: ConnectedCluster
) -> Mapping[str, SiteAnswer]:
    questions = {**trial_question(job, cluster.scheduler), **node_questions(cluster.cluster)}
    if subject.project.environment.kind == "current" and not cluster.cluster.is_here:
        questions[_PROGRAM] = check_software.program_question(subject)
    questions.update(check_imports.question(subject))
    questions.update(chosen_packages.question(subject.project, subject.cluster))
    return ask_site(cluster.place, questions, usual={}) if questions else {}


def check_script(project: Project) -> None:
    """Refuse a command whose script is not sent: its job would wait in the queue for nothing."""
    missing = check_command.missing_script(project, sent_names(project))
    if missing:
        raise SettingsError(missing.what, why=missing.why, hint=missing.fix)
