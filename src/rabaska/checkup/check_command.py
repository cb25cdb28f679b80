"""Checks of the command: whether the files that it names are among those that are sent."""

import difflib
import os
import posixpath
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from rabaska.checkup.finding import Finding
from rabaska.checkup.subject import Subject
from rabaska.domain.projects import Project
from rabaska.domain.started_script import started_script
from rabaska.scouting.source import is_file


def checks(subject: Subject) -> Iterator[Finding]:
    missing = missing_script(subject.project, subject.sent)
    if missing:
        yield missing
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
        inside = not name.startswith("..") and is_file(project.folder / name)
        written = any(PurePosixPath(name).is_relative_to(kept) for kept in project.keep)
        is_sent = name in sent or _is_link_into_code(project, name, sent) or _is_data(project, name)
        if inside and not written and not is_sent:
            yield Finding(
                "code.left-out",
                f"the command names `{word}`, a file that is not sent",
                "`command`",
                "the program would stop, or train without it",
                f"{_how_to_send(project, name)}; a large one goes under [data]",
                serious=False,
                likely=True,
            )


def missing_script(project: Project, sent: Collection[str] | None) -> Finding | None:
    """What a command lacks whose script is not in `sent`; None where that is not certain."""
    started = started_script(project.command)
    if started is None or sent is None:
        return None
    if started.is_module:
        return _missing_module(started.word, sent)
    name = posixpath.normpath(started.word)
    if name in sent or _is_link_into_code(project, name, sent) or _is_data(project, name):
        return None
    if is_file(project.folder / name):
        return _finding(started.word, _how_to_send(project, name))
    return _finding(started.word, _nearest(name, sent))


def _missing_module(module: str, sent: Collection[str]) -> Finding | None:
    """Only of a package that is the project's own: another may be installed there."""
    path = module.replace(".", "/")
    package, _, _ = path.partition("/")
    if package == path or any(name.startswith((f"{path}.", f"{path}/")) for name in sent):
        return None
    modules = [name.removesuffix(".py").replace("/", ".") for name in sent if name.endswith(".py")]
    own = [name for name in modules if name.startswith(f"{package}.")]
    close = difflib.get_close_matches(module, own, n=1)
    # Without __init__.py, an installed package of the same name would come first.
    if not own or not (close or f"{package}/__init__.py" in sent):
        return None
    return _finding(module, f"did you mean `{close[0]}`?" if close else _WRITE_PATH)


_WRITE_PATH = "write its path from the folder of rabaska.toml"


def _is_link_into_code(project: Project, name: str, sent: Collection[str]) -> bool:
    """Whether a link on the way leads to a file that is sent."""
    folder = os.path.realpath(project.folder)
    return os.path.relpath(os.path.realpath(project.folder / name), folder) in sent


def _is_data(project: Project, name: str) -> bool:
    """A dataset may be linked to its place before the script is started."""
    path = project.folder / name
    return any(
        path.is_relative_to(folder) for dataset in project.datasets for folder in dataset.paths
    )


def _how_to_send(project: Project, name: str) -> str:
    if name.startswith(".."):
        return "it is outside the project: move it into the folder of rabaska.toml"
    if name.startswith("results/"):
        return "copy it to another folder: `results` holds fetched files, and is not sent"
    return (
        f"the file exists but is left out: take `{name}` out of .gitignore (write `!{name}` at "
        "its end), or out of `exclude` under [code]"
    )


def _nearest(name: str, sent: Collection[str]) -> str:
    suffix, base = posixpath.splitext(name)[1], posixpath.basename(name)
    names = sorted(path for path in sent if path.endswith(suffix))
    elsewhere = [path for path in names if posixpath.basename(path) == base]
    bases = {posixpath.basename(path): path for path in reversed(names)}
    close = [bases[path] for path in difflib.get_close_matches(base, list(bases), n=1)]
    candidates = [*elsewhere, *difflib.get_close_matches(name, names, n=1), *close]
    return f"did you mean `{candidates[0]}`?" if candidates else _WRITE_PATH


def _finding(word: str, fix: str) -> Finding:
    return Finding(
        "code.script",
        f"the command starts `{word}`, which is not among the files that are sent",
        "`command`",
        "each job would fail at once",
        fix,
    )
