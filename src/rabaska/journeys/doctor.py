"""Doctor: what would go wrong with a project, said before it waits a night in a queue."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rabaska.checkup import check_data_places, check_imports, check_resolved, check_site
from rabaska.checkup.finding import Finding, SafeFix
from rabaska.checkup.subject import Subject, read_subject
from rabaska.domain.projects import Project
from rabaska.errors import SettingsError
from rabaska.node import files
from rabaska.records.home import Home
from rabaska.sites.questions import NO_ANSWER
from rabaska.steps import chosen_packages
from rabaska.steps.connect import cluster_named, place_of, scheduler_of
from rabaska.steps.earlier_runs import foreseen
from rabaska.steps.environment import collected
from rabaska.steps.findings import examine, overruled
from rabaska.steps.pick_request import pick_request
from rabaska.steps.plan_run import job_spec
from rabaska.steps.probe_site import SiteProbe, ask_site, probe_site
from rabaska.steps.progress import SilentReporter
from rabaska.steps.store import USUAL
from rabaska.steps.trial_jobs import TRIAL, trial_question

_SETTINGS = "rabaska.toml"


@dataclass(frozen=True)
class Diagnosis:
    found: tuple[Finding, ...]
    unasked: str = ""  # why the site itself was not asked, so that only its profile speaks


def diagnose(project: Project, on: str, home: Home, *, offline: bool = False) -> Diagnosis:
    """Everything that can be found, the cluster itself asked where there is one to ask."""
    cluster = cluster_named(on, home)
    project = pick_request(project, cluster).project
    subject = read_subject(project, cluster)
    if "{" in cluster.store.replace("${", ""):
        offline = True  # its user has not said yet where to store
    job = job_spec(project, cluster, cluster.store or USUAL)
    trial = trial_question(job, scheduler_of(cluster))
    places = check_data_places.question(project, cluster)
    packages = chosen_packages.question(project, cluster)
    asked = {**check_site.questions(subject), **trial, **places, **packages}
    site = probe_site(cluster, home, asked, offline=offline)
    subject = replace(subject, cluster=site.cluster)
    subject = subject if offline else chosen_packages.with_chosen(subject, site.answers)
    resolved = tuple(_resolved(subject, site))
    by_site = (*_data(subject, site, places), *_of_site(subject, site), *resolved)
    shown = site.answers.get(TRIAL, NO_ANSWER)
    accepted = shown.ok and not scheduler_of(cluster).read_prospect(shown.text).refusal
    own = overruled(examine(subject)) if accepted else examine(subject)
    # What pip chose says more than what we guessed of it.
    own = tuple(each for each in own if each.id not in {better.id for better in resolved})
    found = (*own, *by_site, *_secrets(project), *_advance(project, on, home))
    return Diagnosis(_once(found), site.unasked)


def _data(subject: Subject, site: SiteProbe, places: dict[str, str]) -> Iterator[Finding]:
    """Whether data is where it is said to be."""
    answers = site.answers
    if subject.cluster.is_here and places:
        answers = ask_site(place_of(subject.cluster), places, usual={})
    told = answers.get(check_data_places.QUESTION, NO_ANSWER).text
    yield from check_data_places.checks(subject.project, subject.cluster, told)


def _of_site(subject: Subject, site: SiteProbe) -> Iterator[Finding]:
    name, problem = subject.cluster.name, site.problem
    if problem:
        yield Finding("cluster.ssh", problem.what, f"--on {name}", problem.why, problem.hint)
    question = check_imports.question(subject) if subject.cluster.is_here else {}
    if question:
        here = ask_site(place_of(subject.cluster), question, usual={})
        yield from check_imports.missing(subject, here.get(check_imports.QUESTION, NO_ANSWER).text)
    if site.answers:
        trial = scheduler_of(subject.cluster).read_prospect(site.answers.get(TRIAL, NO_ANSWER).text)
        yield from check_site.checks(subject, check_site.SiteAnswers(site.answers, trial))


def _resolved(subject: Subject, site: SiteProbe) -> Iterator[Finding]:
    """What is wrong with the packages that an earlier run was given."""
    resolved = chosen_packages.read(site.answers)
    if resolved:
        yield from check_resolved.checks(subject, resolved)


def _secrets(project: Project) -> Iterator[Finding]:
    """What `run` would refuse, for want of a value in this shell or in a file."""
    try:
        collected(project.environment, os.environ, SilentReporter())
    except SettingsError as problem:
        where = "[environment] secrets"
        yield Finding("environment.secrets", problem.what, where, problem.why, problem.hint)


def _advance(project: Project, on: str, home: Home) -> Iterator[Finding]:
    """What earlier runs say of jobs that are over before anything is saved."""
    found = foreseen(project, on, home)
    if found:
        what = "no job would save anything"
        what = what if found.certain else "a job may be over before anything is saved"
        what = "each job would begin the training again" if found.over else what
        where = f"[resources] walltime for {on}"
        yield Finding(
            "chain.standstill", what, where, found.why, found.remedy, serious=found.certain
        )


def _once(found: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """What a check of ours explains, the scheduler's refusal need not say again."""
    ours = [each for each in found if each.serious and each.id != "cluster.refused"]
    explained = any(each.family == "cluster" for each in ours)
    return tuple(each for each in found if each.id != "cluster.refused" or not explained)


def repair(project: Project, found: tuple[Finding, ...]) -> tuple[str, ...]:
    """Do what is safe; a sentence for each thing that was done."""
    fixes = dict.fromkeys(each.safe_fix for each in found if each.safe_fix)
    return tuple(_repaired(fix, project.folder) for fix in fixes)


def _repaired(fix: SafeFix, folder: Path) -> str:
    if fix.kind == "variable":
        _set_variable(folder / _SETTINGS, fix.target, fix.value)
        return f"set {fix.target}={fix.value} in {_SETTINGS}"
    path = folder / fix.target
    content = path.read_bytes().removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    mode = path.stat().st_mode
    files.write_whole(str(path), content)
    path.chmod(mode)
    return f"gave {fix.target} Unix line ends"


def _set_variable(path: Path, name: str, value: str) -> None:
    """Into [environment.variables], with all else in the file as it was."""
    import tomlkit  # `run` asks for warnings only, and should not wait for this

    written = tomlkit.parse(path.read_text("utf-8"))
    environment = written.setdefault("environment", tomlkit.table(is_super_table=True))
    variables = environment.setdefault("variables", tomlkit.table())
    variables[name] = value
    mode = path.stat().st_mode
    files.write_whole(str(path), tomlkit.dumps(written))
    path.chmod(mode)
