"""Doctor: what would go wrong with a project, said before it waits a night in a queue."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rabaska.checkup import (
    check_code,
    check_command,
    check_data,
    check_imports,
    check_network,
    check_packages,
    check_request,
    check_site,
    check_software,
)
from rabaska.checkup.subject import Finding, SafeFix, Subject, read_subject
from rabaska.domain.projects import Project
from rabaska.errors import SettingsError
from rabaska.node import files
from rabaska.records.home import Home
from rabaska.sites.questions import NO_ANSWER, SiteAnswer
from rabaska.steps.connect import ConnectedCluster, cluster_named, place_of
from rabaska.steps.earlier_runs import foreseen
from rabaska.steps.probe_site import (
    SiteProbe,
    ask_site,
    node_questions,
    probe_site,
    with_node_answers,
)
from rabaska.steps.progress import Reporter, SilentReporter
from rabaska.steps.project_secrets import collected
from rabaska.steps.trial_jobs import TRIAL, read_trial, refuse_early, trial_question

_FAMILIES = (check_command, check_code, check_network, check_data, check_packages, check_request)


def examine(subject: Subject) -> tuple[Finding, ...]:
    """What was found, the serious first, each thing once."""
    found = [finding for family in _FAMILIES for finding in family.checks(subject)]
    return tuple(sorted(dict.fromkeys(found), key=lambda each: not each.serious))


_SETTINGS = "rabaska.toml"
_PROGRAM = "program"  # the name of the question


@dataclass(frozen=True)
class Diagnosis:
    found: tuple[Finding, ...]
    unasked: str = ""  # why the site itself was not asked, so that only its profile speaks


def diagnose(project: Project, on: str, home: Home, *, offline: bool = False) -> Diagnosis:
    """Everything that can be found, the cluster itself asked where there is one to ask."""
    cluster = cluster_named(on, home)
    subject = read_subject(project, cluster)
    if "{" in cluster.store.replace("${", ""):
        offline = True  # its user has not said yet where to store
    more = {**check_site.questions(subject), **trial_question(project, cluster)}
    visited = probe_site(cluster, home, more, offline=offline)
    subject = replace(subject, cluster=visited.cluster)
    asked = _asked(subject, visited)
    found = (*examine(subject), *asked, *_secrets(project), *_advance(project, on, home))
    return Diagnosis(_once(found), visited.unasked)


def _asked(subject: Subject, visited: SiteProbe) -> Iterator[Finding]:
    name, problem = subject.cluster.name, visited.problem
    if problem:
        yield Finding("cluster.ssh", problem.what, f"--on {name}", problem.why, problem.hint)
    asked = check_imports.question(subject) if subject.cluster.is_here else {}
    if asked:
        here = ask_site(place_of(subject.cluster), asked, usual={})
        yield from check_imports.missing(subject, here.get(check_imports.QUESTION, NO_ANSWER).text)
    if visited.answers:
        shown = visited.answers.get(TRIAL, NO_ANSWER).text
        said = check_site.SiteAnswers(visited.answers, read_trial(shown, subject.cluster))
        yield from check_site.checks(subject, said)


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


def warn(project: Project, there: ConnectedCluster, teller: Reporter) -> None:
    """What `run` should tell: the serious findings, without reading data.

    The cluster is asked two things at once: whether it has the program that no environment
    brings, and whether it would refuse the job, which is then refused here.
    """
    cluster = there.cluster
    subject = read_subject(project, cluster, thorough=False)
    said = _before_sending(subject, there)
    subject = replace(subject, cluster=with_node_answers(cluster, said))
    missing = check_software.missing_program(subject, said.get(_PROGRAM, NO_ANSWER).text)
    lacking = check_imports.missing(subject, said.get(check_imports.QUESTION, NO_ANSWER).text)
    found = (*examine(subject), *missing, *lacking)
    serious = [each for each in found if each.serious and each.id != "cluster.gone"]
    for each in serious:
        teller.warn(f"{each.what} ({each.where}): {each.fix}")
    rest = len(found) - len(serious)
    if serious and rest:
        teller.warn(f"`rabaska doctor --on {cluster.name}` tells {rest} more")
    refuse_early(said.get(TRIAL, NO_ANSWER).text, there)


def _before_sending(subject: Subject, there: ConnectedCluster) -> Mapping[str, SiteAnswer]:
    asked = {**trial_question(subject.project, there.cluster), **node_questions(there.cluster)}
    if subject.project.environment.kind == "current" and not there.cluster.is_here:
        asked[_PROGRAM] = check_software.program_question(subject)
    asked.update(check_imports.question(subject))
    return ask_site(there.place, asked, usual={}) if asked else {}


def repair(project: Project, found: tuple[Finding, ...]) -> tuple[str, ...]:
    """Do what is safe; a sentence for each thing that was done."""
    fixes = dict.fromkeys(each.safe_fix for each in found if each.safe_fix)
    return tuple(_mended(fix, project.folder) for fix in fixes)


def _mended(fix: SafeFix, folder: Path) -> str:
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
