"""Checks of the command: whether the files that it names are among those that are sent."""

import difflib
import os
import posixpath
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from rabaska.checkup.subject import Finding, Subject
from rabaska.domain.projects import Project
from rabaska.domain.started_script import started_script


def checks(subject: Subject) -> Iterator[Finding]:
    found = missing_script(subject.project, subject.sent)
    if found:
        yield found
        return
    yield from _left_out(subject.project, subject.sent)


def _left_out(project: Project, sent: Collection[str] | None) -> Iterator[Finding]:
    """Files that are given to the program and stay here, such as weights that .gitignore names.

    Many programs look whether such a file is there, and train from nothing if it is not.
    """
    words = [word.partition("=")[2] or word for word in (*project.command, *project.resume)]
    for word in dict.fromkeys(words):
        if sent is None or not word or "{" in word or posixpath.isabs(word):
            continue
        name = posixpath.normpath(word)
        inside = not name.startswith("..") and (project.folder / name).is_file()
        written = any(PurePosixPath(name).is_relative_to(kept) for kept in project.keep)
        there = name in sent or _leads_inside(project, name, sent) or _is_data(project, name)
        if inside and not written and not there:
            yield Finding(
                "code.left-out",
                f"the command names `{word}`, a file that is not sent",
                "`command`",
                "a program that does not find it stops, or trains without it",
                f"{_how_it_is_sent(project, name)}; a large one goes under [data]",
            )


def missing_script(project: Project, sent: Collection[str] | None) -> Finding | None:
    """What a command lacks whose script is not in `sent`; None where that is not certain."""
    started = started_script(project.command)
    if started is None or sent is None:
        return None
    if started.is_module:
        return _missing_module(started.word, sent)
    name = posixpath.normpath(started.word)
    if name in sent or _leads_inside(project, name, sent) or _is_data(project, name):
        return None
    if (project.folder / name).is_file():
        return _finding(started.word, _how_it_is_sent(project, name))
    return _finding(started.word, _nearest(name, sent))


def _missing_module(module: str, sent: Collection[str]) -> Finding | None:
    """Only of a package that is the project's own: another may be installed there."""
    path = module.replace(".", "/")
    package, _, _ = path.partition("/")
    if package == path or any(each.startswith((f"{path}.", f"{path}/")) for each in sent):
        return None
    modules = [each.removesuffix(".py").replace("/", ".") for each in sent if each.endswith(".py")]
    own = [each for each in modules if each.startswith(f"{package}.")]
    close = difflib.get_close_matches(module, own, n=1)
    # Without __init__.py, an installed package of the same name would come first.
    if not own or not (close or f"{package}/__init__.py" in sent):
        return None
    return _finding(module, f"did you mean `{close[0]}`?" if close else _WRITE)


_WRITE = "write its name as it is below the folder of rabaska.toml"


def _leads_inside(project: Project, name: str, sent: Collection[str]) -> bool:
    """Whether a link on the way leads to a file that is sent."""
    folder = os.path.realpath(project.folder)
    return os.path.relpath(os.path.realpath(project.folder / name), folder) in sent


def _is_data(project: Project, name: str) -> bool:
    """A dataset may be linked to its place before the script is started."""
    path = project.folder / name
    return any(path.is_relative_to(own) for each in project.datasets for own in each.paths)


def _how_it_is_sent(project: Project, name: str) -> str:
    if name.startswith(".."):
        return "it is outside of the project: move it to the folder of rabaska.toml or below"
    if name.startswith("results/"):
        return "copy it to another folder: what is in `results` was fetched, and stays here"
    return (
        f"the file is there and is left out: take `{name}` out of .gitignore (write `!{name}` at "
        "its end), or out of `exclude` under [code]"
    )


def _nearest(name: str, sent: Collection[str]) -> str:
    suffix, base = posixpath.splitext(name)[1], posixpath.basename(name)
    names = sorted(each for each in sent if each.endswith(suffix))
    elsewhere = [each for each in names if posixpath.basename(each) == base]
    bases = {posixpath.basename(each): each for each in reversed(names)}
    close = [bases[each] for each in difflib.get_close_matches(base, list(bases), n=1)]
    found = [*elsewhere, *difflib.get_close_matches(name, names, n=1), *close]
    return f"did you mean `{found[0]}`?" if found else _WRITE


def _finding(word: str, fix: str) -> Finding:
    return Finding(
        "code.script",
        f"the command starts `{word}`, which is not among the files that are sent",
        "`command`",
        "each job would stop at once",
        fix,
    )
