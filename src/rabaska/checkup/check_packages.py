"""Checks of the packages that the program's Python gets: lists, versions, processors."""

import re
import sys
from collections.abc import Iterator

from rabaska.checkup.check_imports import not_listed
from rabaska.checkup.finding import Finding
from rabaska.checkup.subject import Subject, virtualenv_advice
from rabaska.domain.gpus import parsed

_OLDEST_IN_WHEELHOUSE = (3, 10)


def checks(subject: Subject) -> Iterator[Finding]:
    text = subject.project.environment.requirements
    yield from _unused_list(subject)
    yield from _other_computers(subject, text)
    yield from not_listed(subject, text)
    yield from _old_python(subject)
    yield from _other_processor(subject)


def _unused_list(subject: Subject) -> Iterator[Finding]:
    recipe, listed = subject.project.environment, subject.packages
    if subject.cluster.is_here or recipe.kind != "current" or listed is None or recipe.modules:
        return
    if listed.kind == "conda":
        yield Finding(
            "environment.conda",
            f"no package of {listed.file} is installed for the job",
            "[environment]",
            'the kind of its environment is "current": on '
            f"{subject.cluster.name} the program gets the Python it finds",
            f'write `kind = "conda"` and `file = "{listed.file}"` under '
            f"[cluster.{subject.cluster.name}.environment]",
            serious=False,
            likely=True,
        )
    elif listed.builds_virtualenv:
        yield Finding(
            "environment.unused",
            f"no package of {listed.file} is installed for the job",
            "[environment]",
            'the kind of its environment is "current": on '
            f"{subject.cluster.name} the program gets the Python it finds",
            virtualenv_advice(subject, listed.file),
            serious=False,
            likely=True,
        )


def _other_computers(subject: Subject, text: str) -> Iterator[Finding]:
    for number, line in enumerate("" if subject.cluster.is_here else text.splitlines(), 1):
        if re.search(r"@ file://|^\s*(-e\s+)?(/|file:)", line):
            yield Finding(
                "environment.local",
                f"a package comes from this computer: {line.strip()}",
                f"requirements, line {number}",
                "the cluster cannot see that folder",
                "name it with a version, as in `numpy==1.26.4` (`pip list --format=freeze`)",
            )


def _old_python(subject: Subject) -> Iterator[Finding]:
    recipe = subject.project.environment
    if not subject.cluster.wheelhouse or recipe.kind != "virtualenv":
        return
    words = [recipe.python, *recipe.modules]
    versions = [
        parsed(found[1]) for word in words if (found := re.search(r"python/?(3\.\d+)", word))
    ]
    if versions and min(versions) < _OLDEST_IN_WHEELHOUSE and subject.cluster.status == "live":
        spelled = ".".join(map(str, min(versions)))
        yield Finding(
            "environment.python",
            f"Python {spelled} is too old for the site's wheels",
            "[environment]",
            f"the wheelhouse of {subject.cluster.name} has only the three newest versions",
            "use Python 3.10 or newer",
            serious=False,
        )


def _other_processor(subject: Subject) -> Iterator[Finding]:
    gpu = subject.gpu
    kind = subject.cluster.processor or (gpu.processor if gpu else "")
    travels = subject.project.environment.kind == "packed" and subject.project.environment.here
    if travels and kind not in ("", "x86_64") and sys.platform == "linux":
        yield Finding(
            "environment.processor",
            f"the packed environment does not run on {kind}",
            "[environment]",
            f"the nodes of {subject.cluster.name} have a different processor",
            "build it there, or use the site's container",
        )
