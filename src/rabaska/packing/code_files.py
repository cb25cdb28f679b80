"""Which files of a project are its code, and how each is sent."""

import glob
import os
import posixpath
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from rabaska.domain.projects import Project
from rabaska.errors import DatasetError

LEFT_OUT = (
    ".git",
    ".hg",
    ".svn",
    ".venv",
    "venv",
    "__pycache__",
    "*.pyc",
    "node_modules",
    ".tox",
    ".nox",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
    ".ipynb_checkpoints",
    ".eggs",
    "*.egg-info",
    ".DS_Store",
    ".idea",
    ".vscode",
)
# Marks of a folder that can be made again: a virtual environment, a cache (bford.info/cachedir).
_MARKERS = ("pyvenv.cfg", "CACHEDIR.TAG")
_RESULTS = "/results/[!.]*"  # where `fetch` puts them

Listed = Callable[[Path], Iterable[str] | None]


@dataclass(frozen=True)
class CodeFile:
    name: str  # relative, with /
    path: Path
    size: int
    mode: int
    target: str | None  # of a symbolic link that stays inside
    content: bytes | None = None  # what is sent instead of the file's content
    secret: bool = False  # whether it holds secrets that cannot be taken out


def not_code(project: Project, *ours: Path) -> tuple[str, ...]:
    """Patterns of what is no code: datasets, which are sent as packs, results, and what is `ours`.

    All but what the user excludes is meant at the project's root: `mypkg/results` is code, and so
    is a `.gitignore` in `results`, which is there so that a program finds the folder.
    """
    apart = [*ours, *(path for dataset in project.datasets for path in dataset.paths)]
    inside = [
        path.relative_to(project.folder).as_posix()
        for path in apart
        if path.is_relative_to(project.folder)
    ]
    at_root = [f"/{posixpath.normpath(path)}" for path in (*inside, *project.keep)]
    return (*project.exclude, *map(glob.escape, at_root), _RESULTS)


def code_names(
    folder: Path, *, exclude: Sequence[str] = (), listed: Listed | None = None
) -> Iterator[str]:
    """The names of what a snapshot would hold, and of files that it would withhold."""
    unwanted = patterns_in(folder, [*LEFT_OUT, *exclude])
    names = listed(folder) if listed else None
    return _walk(folder, "", unwanted) if names is None else _listed_names(folder, names, unwanted)


def code_files(folder: Path, exclude: Sequence[str], listed: Listed | None) -> Iterator[CodeFile]:
    for name in code_names(folder, exclude=exclude, listed=listed):
        file = _code_file(folder, name)
        if file is not None:
            yield file


@dataclass(frozen=True)
class Patterns:
    """Files that are meant: by their name alone at any depth, or by their path in the project."""

    names: tuple[str, ...]
    paths: tuple[str, ...]

    def __contains__(self, name: object) -> bool:
        path = str(name)
        base = path.rpartition("/")[2]
        return any(fnmatchcase(base, pattern) for pattern in self.names) or any(
            fnmatchcase(path, pattern) for pattern in self.paths
        )


def patterns_in(folder: Path, patterns: Sequence[str]) -> Patterns:
    names: list[str] = []
    paths: list[str] = []
    for pattern in patterns:
        path = PurePosixPath(pattern)
        if path.is_relative_to(folder.absolute()):
            paths.append(path.relative_to(folder.absolute()).as_posix())
        elif path.is_absolute():
            paths.append(path.relative_to("/").as_posix())
        else:
            (paths if len(path.parts) > 1 else names).append(path.as_posix())
    return Patterns(tuple(names), tuple(paths))


def _listed_names(folder: Path, names: Iterable[str], unwanted: Patterns) -> Iterator[str]:
    """What version control lists, without what is left out at any depth."""
    for name in names:
        parts = name.split("/")
        outer = ("/".join(parts[: depth + 1]) for depth in range(len(parts)))
        if not any(part in unwanted for part in outer) and os.path.lexists(folder / name):
            if (folder / name).is_dir() and not (folder / name).is_symlink():
                yield from _walk(folder, name, unwanted)  # a submodule is listed as one name
            else:
                yield name


def _walk(folder: Path, below: str, unwanted: Patterns) -> Iterator[str]:
    with os.scandir(folder / below) as entries:
        for entry in entries:
            name = f"{below}/{entry.name}" if below else entry.name
            if name in unwanted:
                continue
            if not entry.is_dir(follow_symlinks=False):
                yield name
            elif not any(os.path.exists(os.path.join(entry.path, mark)) for mark in _MARKERS):
                yield from _walk(folder, name, unwanted)


def _code_file(folder: Path, name: str) -> CodeFile | None:
    """`name` as it is sent; None for what is not code, such as a socket."""
    path = folder / name
    _refuse_outside(folder, name)
    if path.is_symlink():
        target = os.readlink(path)
        inside = os.path.normpath(os.path.join(os.path.dirname(name), target))
        if not os.path.isabs(target) and not inside.startswith(".."):
            return CodeFile(name, path, 0, 0o777, target)
        path = path.resolve()  # inside, as was found, though it is written as if outside
    try:
        status = path.stat()
    except OSError:
        return None  # a broken link: nothing is sent
    if not stat.S_ISREG(status.st_mode):
        return None
    mode = 0o700 if status.st_mode & stat.S_IXUSR else 0o600
    return CodeFile(name, path, status.st_size, mode, None)


def _refuse_outside(folder: Path, name: str) -> None:
    """Refuse a link whose content is elsewhere: nobody meant to send that with the code."""
    path = folder / name
    real = os.path.realpath(path)
    if Path(real).is_relative_to(os.path.realpath(folder)) or not os.path.lexists(real):
        return
    link = next(above for above in (path, *path.parents) if above.is_symlink())
    if Path(real).is_dir():
        hint = "name it under [data] or `exclude` in rabaska.toml"
    else:
        hint = "copy the file into the project, or name the link under `exclude` in rabaska.toml"
    raise DatasetError(
        f"{link.relative_to(folder)} is a link that points outside the project",
        why=f"it points to {os.readlink(link)}; only files in {folder} are sent",
        hint=hint,
    )
