"""The packages that pip chose or would choose for a project, before they are fetched."""

import re
from collections.abc import Mapping
from dataclasses import replace

from rabaska.checkup.check_builds import framework_lines, is_in_doubt
from rabaska.checkup.check_resolved import Resolved
from rabaska.checkup.subject import Subject
from rabaska.domain import untrusted
from rabaska.domain.clusters import Cluster
from rabaska.domain.projects import Project
from rabaska.environments import recipes
from rabaska.environments.job_lines import BuildSite
from rabaska.environments.recipes import BuiltEnvironment
from rabaska.sites.questions import NO_ANSWER, SiteAnswer
from rabaska.steps.pip_here import chosen_here, usual_target
from rabaska.steps.store import store_word
from rabaska.steps.wheels import WHEELS

_QUESTION = "packages"
_INSTALLED = "installed"


def question(project: Project, cluster: Cluster) -> dict[str, str]:
    """What an earlier run with the same list of packages was given."""
    if project.environment.kind != "virtualenv":
        return {}
    here = cluster.is_here
    site = BuildSite("", modules=cluster.modules, wheelhouse=cluster.wheelhouse, here=here)
    found = f"{store_word(cluster)}/envs/{recipes.digest(project.environment, site)}"
    if here:  # where nobody writes down what pip chose, but it is installed
        return {_INSTALLED: f"ls {found}/lib/python*/site-packages"}
    return {_QUESTION: f"cat {found}.json"}


def read(answers: Mapping[str, SiteAnswer]) -> Resolved | None:
    """None where there was no such run, or nobody can read what is there."""
    answer = answers.get(_QUESTION, NO_ANSWER)
    try:
        record = untrusted.read(answer.text.strip(), WHEELS) if answer.ok else None
    except untrusted.Unexpected:
        return None
    if record is None:
        return None
    built = BuiltEnvironment.read(record, "")
    return Resolved(built.packages, built.modules, built.unread, built.room)


def with_chosen(subject: Subject, answers: Mapping[str, SiteAnswer]) -> Subject:
    """The same, with what is known of the builds that pip would take.

    Where no run has asked before, pip on this computer is asked, if it makes a difference.
    """
    resolved = read(answers)
    if resolved is not None:
        return replace(subject, chosen=tuple(resolved.packages))
    installed = answers.get(_INSTALLED, NO_ANSWER).text
    pins = re.findall(r"^([\w.]+)-([\w.+!]+)\.dist-info$", installed, re.MULTILINE)
    if pins:
        return replace(subject, chosen=tuple(f"{name}=={version}" for name, version in pins))
    if not is_in_doubt(subject):
        return subject
    text = subject.project.environment.requirements
    target = usual_target(subject.cluster.processor)
    return replace(subject, chosen=chosen_here(text, framework_lines(text), target))
