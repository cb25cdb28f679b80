"""Checks of the command: whether the files that it names are among those that are sent."""

import ast
import difflib
import os
import posixpath
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TypeVar

from rabaska.checkup.finding import Finding
from rabaska.checkup.subject import Subject
from rabaska.domain.projects import Project
from rabaska.domain.started_script import started_script
from rabaska.packing.code_files import LEFT_OUT
from rabaska.scouting.script_writes import writes
from rabaska.scouting.source import is_file

_FOLDERS_NAMED = 3
_MOST_LOOKED_AT = 50_000  # files
_STATES = (".pt", ".pth", ".ckpt", ".safetensors")  # of earlier trainings, more often than data

Node = TypeVar("Node", bound=ast.AST)


def checks(subject: Subject) -> Iterator[Finding]:
    missing = missing_script(subject.project, subject.sent)
    if missing:
        yield missing
        return
    yield from _left_out(subject.project, subject.sent)
    yield from _unsent_data(subject)
    yield from _paths_of_data(subject)


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


def _unsent_data(subject: Subject) -> Iterator[Finding]:
    """Files that the source names and that stay here, such as data that .gitignore names."""
    if subject.sent is None:
        return
    written = {posixpath.basename(one.path) for source in subject.sources for one in writes(source)}
    texts = [node.value for node in _nodes(subject, ast.Constant) if isinstance(node.value, str)]
    named = {posixpath.basename(text) for text in texts if "." in text} - written
    folders: dict[str, str] = {}
    for name in _unsent_files(subject.project, subject.sent):
        folder, base = posixpath.split(name)
        if folder and base in named and posixpath.splitext(base)[1] not in _STATES:
            folders.setdefault(folder, base)
    for folder, base in list(folders.items())[:_FOLDERS_NAMED]:
        yield Finding(
            "data.left-out",
            f"the program reads `{base}`, and {folder}/{base} is not sent",
            folder,
            ".gitignore or `exclude` names it, and it is in no dataset",
            f"`rabaska init --force --data {folder}` makes it a dataset; a small file goes with "
            f"the code if .gitignore ends with the line `!{folder}/{base}`",
            serious=False,
            likely=True,
        )


def _unsent_files(project: Project, sent: Collection[str]) -> Iterator[str]:
    """Of the project's own folders, but datasets, results and what it writes; the first of many."""
    apart = {path.resolve() for dataset in project.datasets for path in dataset.paths}
    apart |= {(project.folder / name).resolve() for name in (*project.keep, "results")}
    seen = 0
    for folder, folders, names in os.walk(project.folder):
        here = Path(folder)
        folders[:] = [
            name for name in folders
            if not name.startswith(".") and name not in LEFT_OUT
            and (here / name).resolve() not in apart
            and not (here / name / "pyvenv.cfg").exists()
        ]  # fmt: skip
        for name in names:
            seen += 1
            relative = (here / name).relative_to(project.folder).as_posix()
            if relative not in sent:
                yield relative
        if seen > _MOST_LOOKED_AT:
            return


def _paths_of_data(subject: Subject) -> Iterator[Finding]:
    """A dataset that the program is to find at its path here: jobs have it at another one."""
    project = subject.project
    several = len(project.datasets) > 1
    words = (*project.command, *project.resume)
    for dataset in () if _finds_data_itself(subject) else project.datasets:
        placeholder = f"{{data.{dataset.name}}}" if several else "{data}"
        if any("{data}" in word or f"{{data.{dataset.name}}}" in word for word in words):
            continue
        for folder in dataset.paths:
            yield from _given_path(project, words, folder, placeholder)
            yield from _default_path(subject, words, folder, placeholder)


def _finds_data_itself(subject: Subject) -> bool:
    """By our variables, or by our package."""
    if any(b"RABASKA_" in text for text in subject.shell_scripts.values()):
        return True
    words = (*subject.project.command, *subject.project.resume)
    names = [getattr(node, "module", "") or "" for node in _nodes(subject, ast.ImportFrom)]
    names += [each.name for node in _nodes(subject, ast.Import) for each in node.names]
    texts = [str(node.value) for node in _nodes(subject, ast.Constant)]
    return any("RABASKA_" in text for text in (*words, *texts)) or any(
        name.partition(".")[0] == "rabaska" for name in names
    )


def _nodes(subject: Subject, kind: type[Node]) -> Iterator[Node]:
    return (node for source in subject.sources for node in source.nodes if isinstance(node, kind))


def _given_path(
    project: Project, words: Sequence[str], folder: Path, placeholder: str
) -> Iterator[Finding]:
    for word in dict.fromkeys(word.partition("=")[2] or word for word in words):
        if "{" in word or posixpath.isabs(word) or not word:
            continue
        path = project.folder / posixpath.normpath(word)
        if not path.is_relative_to(folder) or not os.path.exists(path):  # noqa: PTH110 - no error
            continue
        below = path.relative_to(folder).as_posix()
        meant = placeholder if below == "." else f"{placeholder}/{below}"
        yield Finding(
            "code.data",
            f"the command names `{word}`, which a job does not have there",
            "`command`",
            "a dataset is not sent with the code: each job gets it in a folder of its own",
            f"write `{meant}` in place of `{word}` in the command",
        )


def _default_path(
    subject: Subject, words: Sequence[str], folder: Path, placeholder: str
) -> Iterator[Finding]:
    script = subject.script
    for option in script.options if script else ():
        given = any(word.partition("=")[0] == option.spelled for word in words)
        path = subject.project.folder / posixpath.normpath(option.default or ".")
        if option.default and not given and path == folder:
            yield Finding(
                "code.data",
                f"the program reads its data from {option.default}, which a job does not have",
                str(option.place),
                "a dataset is not sent with the code: each job gets it in a folder of its own",
                f"add `{option.spelled} {placeholder}` to the command",
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
