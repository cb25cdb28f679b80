"""Checks of the software a cluster said it has: programs, wheels, environments of many files."""

import ast
import re
from collections.abc import Iterator

from rabaska.checkup.finding import Finding
from rabaska.checkup.pinned_packages import plain_name, read
from rabaska.checkup.subject import Subject, own_line, virtualenv_advice
from rabaska.domain import untrusted
from rabaska.domain.amounts import say_count
from rabaska.domain.gpus import parsed
from rabaska.domain.shell_words import expanding
from rabaska.sites.questions import MODULE

_NO_PROGRAM = "no such program"
_INSTEAD = "instead"
_OTHER = {"python": "python3", "python3": "python"}  # which the job runs where the first is missing
_MANY_FILES = 20_000  # that every job would look up on shared storage
_ONLY_IN_3 = ast.JoinedStr | ast.AnnAssign | ast.Nonlocal | ast.AsyncFunctionDef | ast.YieldFrom
_SOME = 5  # versions that are worth naming


def questions(subject: Subject) -> dict[str, str]:
    store, recipe = expanding(subject.cluster.store or "~/rabaska"), subject.project.environment
    commands = {
        "program": program_question(subject),
        "compiled": f'python3 "$(ls -t {store}/node/*.pyz | head -n 1)" compiled 2>/dev/null',
    }
    if recipe.kind == "virtualenv" and subject.cluster.wheelhouse:
        places = " ".join(expanding(place) for place in subject.cluster.wheelhouse)
        names = "|".join(_in_wheels(requirement.name) for requirement in read(recipe.requirements))
        commands["wheels"] = (
            f"ls {places} 2>/dev/null | grep -iE '^({names})-[0-9].*\\.whl$' | sort -u"
        )
    if recipe.kind == "activate" and "/" in recipe.path:
        commands["environment"] = f"find {expanding(recipe.path)} | wc -l"
    return commands


def _in_wheels(name: str) -> str:
    """A pattern of the name that a wheel begins with: it has underscores for what we dash."""
    return name.replace("-", "[-_.]")


def program_question(subject: Subject) -> str:
    """Whether the first word of the command is a program there, with the modules of a job."""
    names = (*subject.cluster.modules, *subject.project.environment.modules)
    words = " ".join(expanding(name) for name in names)
    load = f"{MODULE}module load {words} >/dev/null 2>&1; " if words else ""
    word = subject.project.command[0]
    other = _OTHER.get(word)
    lookup = f"command -v {expanding(word)}"
    if not other:
        return f"{load}{lookup} || echo {_NO_PROGRAM}"
    instead = f"{{ command -v {other} >/dev/null && echo {_INSTEAD} {other}; }}"
    return f"{load}{lookup} && {word} --version 2>&1 || {instead} || echo {_NO_PROGRAM}"


def missing_program(subject: Subject, output: str) -> Iterator[Finding]:
    """Where the program's Python is the site's own, it must be there under that name."""
    word = subject.project.command[0]
    if subject.project.environment.kind != "current" or "{" in word:
        return
    yield from _other_python(subject, output)
    if _NO_PROGRAM not in output:
        return
    other = "write `python3` in the command, or " if word == "python" else ""
    yield Finding(
        "environment.program",
        f"{subject.cluster.name} has no `{word}`",
        "command",
        'the kind of environment is "current", so the job uses what it finds there',
        f"{other}name `modules` under [environment] that provide it, or "
        f"{virtualenv_advice(subject, 'requirements.txt')}",
    )


def _other_python(subject: Subject, output: str) -> Iterator[Finding]:
    """A Python that is there under another name, or one that is too old for any program."""
    word, name = subject.project.command[0], subject.cluster.name
    if match := re.search(rf"^{_INSTEAD} (\w+)$", output, re.MULTILINE):
        yield Finding(
            "environment.program",
            f"{name} has no `{word}`, so the job runs `{match[1]}`",
            "command",
            "[environment] names nothing, so the job uses what it finds there",
            f"write `{match[1]}` in the command if that is what you want",
            serious=False,
        )
    elif old := re.search(r"^Python 2\.\S+", output, re.MULTILINE):
        yield Finding(
            "environment.program",
            f"`{word}` is {old[0]} on {name}",
            "command",
            "[environment] names nothing, so the job uses what it finds there",
            "write `python3` in the command, or name `requirements`, `modules` or a `path` under "
            "[environment]",
            serious=any(
                isinstance(node, _ONLY_IN_3) for each in subject.sources for node in each.nodes
            ),
            likely=True,
        )


def missing_wheels(subject: Subject, output: str) -> Iterator[Finding]:
    """Packages, or versions of them, that the site's wheelhouse does not have."""
    available: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([\w.-]+?)-(\d[\w.+!]*)-\S*\.whl$", output, re.MULTILINE):
        available.setdefault(plain_name(name), set()).add(version)
    for requirement in read(subject.project.environment.requirements) if available else ():
        versions = available.get(requirement.name, set())
        if requirement.version in {(), *(parsed(version) for version in versions)} and versions:
            continue
        pinned = ".".join(map(str, requirement.version)) if versions else ""
        newest = sorted(versions, key=parsed)[-_SOME:]
        wanted = f"{requirement.name} {pinned}".strip()
        yield Finding(
            "environment.wheelhouse",
            f"the wheelhouse of {subject.cluster.name} has no {wanted}",
            f"requirements, line {requirement.line}",
            "this computer would download and send it, and it may not run there",
            f"it has {', '.join(newest)}" if newest else "use a package that it has, if you can",
            serious=False,
        )


def many_files(subject: Subject, output: str) -> Iterator[Finding]:
    count = untrusted.count(output.strip()) or 0
    if count >= _MANY_FILES:
        yield Finding(
            "environment.files",
            f"the environment there has {say_count(count, 'file')}",
            "[environment] path",
            "every job reads them from shared storage, and they count against your quota",
            "pack it into one file, as `conda-pack` and `venv-pack` do, and write "
            f"{own_line(subject, 'environment', 'kind', 'packed')} with its `path`: it is unpacked "
            "on the node's own disk",
            serious=False,
        )


def python_only(subject: Subject, answer: str) -> Iterator[Finding]:
    """Before the first run our program is not there, and gives no answer."""
    try:
        why = untrusted.read(answer, {"why": str})["why"] if answer else ""
    except untrusted.Unexpected:
        return
    if why:
        yield Finding(
            "cluster.python-only",
            f"the compiled part of rabaska does not load on {subject.cluster.name}",
            f"--on {subject.cluster.name}",
            f"{why}; Python does its work, to the same result: packs are read and unpacked slower",
            "nothing has to be changed; a store on a file system that may hold programs (mounted "
            "without `noexec`) helps where that is the cause",
            serious=False,
        )
