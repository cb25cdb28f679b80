"""The project's code as it is now: one tar named by its digest, never changed afterwards."""

import glob
import hashlib
import os
import posixpath
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from rabaska.domain.amounts import say_size
from rabaska.domain.projects import Project
from rabaska.domain.secrets import (
    Secrets,
    file_looks_secret,
    file_may_be_key,
    holds_private_key,
    is_private_key,
    without_secrets,
)
from rabaska.errors import DatasetError
from rabaska.node import files, partial_folder
from rabaska.node.data import pack_format
from rabaska.packing import tar_headers
from rabaska.packing.refusals import space_needed

MOST_BYTES = 200 * 10**6
MOST_FILES = 20_000

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
# What says "this folder can be made again": a virtual environment, a cache (bford.info/cachedir).
_MARKERS = ("pyvenv.cfg", "CACHEDIR.TAG")
_SETTINGS = "rabaska.toml"
_BEGINNING = 4096  # bytes that tell a private key from a certificate
_SMALL = 10**6  # bytes of a file that is looked through for secrets

Listed = Callable[[Path], Iterable[str] | None]


@dataclass(frozen=True)
class CodeSnapshot:
    digest: str
    path: Path
    files: int
    bytes: int
    withheld: tuple[str, ...] = ()  # files that may hold secrets, and did not come along


@dataclass(frozen=True)
class _Member:
    name: str  # relative, with /
    path: Path
    size: int
    mode: int
    target: str | None  # of a symbolic link that stays inside
    content: bytes | None = None  # what travels instead of what is in the file
    secret: bool = False  # whether it holds secrets that cannot be taken out


def snapshot(
    folder: Path,
    store_code: Path,
    *,
    exclude: Sequence[str] = (),
    include: Sequence[str] = (),
    listed: Listed | None = None,
    secrets: Secrets | None = None,
) -> CodeSnapshot:
    """Keep the code in `folder` as `<store_code>/<digest>.tar` and say what it holds.

    Times and owners are left out, so an untouched checkout always has the same digest.
    `exclude` holds patterns as in .gitignore: one that begins with `/` or has a `/` inside is
    meant from `folder` on, another one at any depth. `listed` gives the names that version control
    would keep, or None when it does not know this folder. What may hold secrets, and what holds one
    of `secrets`, comes along only if it fits a pattern of `include`.
    """
    found = sorted(_members(folder, exclude, listed), key=lambda member: os.fsencode(member.name))
    found = list(_without_secrets(found))
    asked_for = _patterns(folder, include)
    sought = secrets.sought() if secrets else ()
    others = (each for each in found if each.name not in asked_for)
    withheld = [each for each in others if _may_be_secret(each, sought)]
    withheld += [each for each in found if each.secret and each not in withheld]
    members = [member for member in found if member not in withheld]
    _refuse_too_much(folder, members)
    with space_needed(store_code, f"copy the code in {folder}"):
        digest = _keep(members, store_code)
    path = store_code / f"{digest}.tar"
    size, names = sum(member.size for member in members), tuple(each.name for each in withheld)
    return CodeSnapshot(digest, path, len(members), size, names)


def not_code(project: Project, *ours: Path) -> tuple[str, ...]:
    """Datasets travel as packs; fetched results, and what is `ours`, stay at home.

    All but what the user excludes is meant where it lies: `mypkg/results` is code.
    """
    apart = [*ours, *(path for dataset in project.datasets for path in dataset.paths)]
    inside = [
        path.relative_to(project.folder).as_posix()
        for path in apart
        if path.is_relative_to(project.folder)
    ]
    at_root = [f"/{posixpath.normpath(path)}" for path in (*inside, "results", *project.keep)]
    return (*project.exclude, *map(glob.escape, at_root))


def code_names(
    folder: Path, *, exclude: Sequence[str] = (), listed: Listed | None = None
) -> Iterator[str]:
    """The names of what a snapshot would hold, and of files that it would withhold."""
    unwanted = _patterns(folder, [*LEFT_OUT, *exclude])
    names = listed(folder) if listed else None
    return _walk(folder, "", unwanted) if names is None else _known(folder, names, unwanted)


def _without_secrets(members: Sequence[_Member]) -> Iterator[_Member]:
    """The same, with copies of settings that are free of secrets, for their variables travel apart.

    The job does not read settings. Where rabaska.toml is a link, they are in the file it leads to.
    """
    named = [each for each in members if PurePosixPath(each.name).name == _SETTINGS]
    settings = {os.path.realpath(each.path) for each in named}
    for member in members:
        if member.target is not None or os.path.realpath(member.path) not in settings:
            yield member
            continue
        copy = without_secrets(_content(member))
        size = member.size if copy is None else len(copy)
        yield replace(member, content=copy, size=size, secret=copy is None)


def _may_be_secret(member: _Member, sought: Sequence[bytes]) -> bool:
    """By its name, by the name of what it is a link to, or by what is in it."""
    if member.target is not None:
        return False  # what it leads to is a member itself
    if file_looks_secret(member.name) or file_looks_secret(member.path.name):
        return True
    content = _looked_through(member)
    if file_may_be_key(member.name) and is_private_key(content[:_BEGINNING]):
        return True
    return holds_private_key(content) or any(secret in content for secret in sought)


def _looked_through(member: _Member) -> bytes:
    """What travels of a small file, and the beginning of another that may be a key."""
    if member.content is not None:
        return member.content
    most = _SMALL if member.size <= _SMALL else _BEGINNING * file_may_be_key(member.name)
    with suppress(OSError), member.path.open("rb") as stream:
        return stream.read(most)
    return b""


def is_as_named(archive: Path) -> bool:
    """Whether a snapshot is there, and its digest is still its name."""
    return archive.is_file() and pack_format.sha256_of(str(archive)).startswith(archive.stem)


def _keep(members: Iterable[_Member], store_code: Path) -> str:
    """Write the tar under its digest, whole or not at all."""
    store_code.mkdir(parents=True, exist_ok=True)
    partial_folder.sweep(str(store_code))
    workplace = partial_folder.begin(str(store_code), "snapshot")
    try:
        made = Path(workplace.path) / "code.tar"
        digest = _write(made, members)
        made.replace(store_code / f"{digest}.tar")
        files.sync_folder(str(store_code))
    finally:
        partial_folder.abandon(workplace)
    return digest


def _write(path: Path, members: Iterable[_Member]) -> str:
    """Write the tar and return the digest of its bytes."""
    digest = hashlib.sha256()
    with path.open("wb") as stream:
        for member in members:
            for piece in _pieces(member):
                digest.update(piece)
                stream.write(piece)
        digest.update(tar_headers.END)
        stream.write(tar_headers.END)
        stream.flush()
        os.fsync(stream.fileno())
    return digest.hexdigest()[:32]


def _pieces(member: _Member) -> Iterator[bytes]:
    name = os.fsencode(member.name)
    if member.target is not None:
        yield tar_headers.header(
            name, kind=tar_headers.LINK, mode=0o777, target=os.fsencode(member.target)
        )
        return
    yield tar_headers.header(name, size=member.size, mode=member.mode)
    content = _content(member) if member.content is None else member.content
    yield content
    yield bytes(tar_headers.padding(len(content)))


def _content(member: _Member) -> bytes:
    try:
        # Not through a link that was put there since we looked.
        with open(os.open(member.path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as stream:
            content = stream.read(member.size + 1)
    except OSError as problem:
        raise DatasetError(
            f"{member.name} cannot be read",
            why=str(problem.strerror),
            hint="make it readable, or name it under `exclude` in rabaska.toml",
        ) from problem
    if len(content) != member.size:
        raise DatasetError(
            f"{member.name} changed while the code was copied",
            why=f"its size was {member.size} a moment ago",
            hint="run the command again; if a program writes this file, name it under `exclude`",
        )
    return content


def _members(folder: Path, exclude: Sequence[str], listed: Listed | None) -> Iterator[_Member]:
    for name in code_names(folder, exclude=exclude, listed=listed):
        member = _member(folder, name)
        if member is not None:
            yield member


@dataclass(frozen=True)
class _Patterns:
    """Files that are meant: by their name alone at any depth, or by their path in the project."""

    names: tuple[str, ...]
    paths: tuple[str, ...]

    def __contains__(self, name: object) -> bool:
        path = str(name)
        base = path.rpartition("/")[2]
        return any(fnmatchcase(base, pattern) for pattern in self.names) or any(
            fnmatchcase(path, pattern) for pattern in self.paths
        )


def _patterns(folder: Path, patterns: Sequence[str]) -> _Patterns:
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
    return _Patterns(tuple(names), tuple(paths))


def _known(folder: Path, names: Iterable[str], unwanted: _Patterns) -> Iterator[str]:
    """What version control lists, without what is left out at any depth."""
    for name in names:
        parts = name.split("/")
        outer = ("/".join(parts[: depth + 1]) for depth in range(len(parts)))
        if not any(part in unwanted for part in outer) and os.path.lexists(folder / name):
            if (folder / name).is_dir() and not (folder / name).is_symlink():
                yield from _walk(folder, name, unwanted)  # a submodule is listed as one name
            else:
                yield name


def _walk(folder: Path, below: str, unwanted: _Patterns) -> Iterator[str]:
    with os.scandir(folder / below) as entries:
        for entry in entries:
            name = f"{below}/{entry.name}" if below else entry.name
            if name in unwanted:
                continue
            if not entry.is_dir(follow_symlinks=False):
                yield name
            elif not any(os.path.exists(os.path.join(entry.path, mark)) for mark in _MARKERS):
                yield from _walk(folder, name, unwanted)


def _member(folder: Path, name: str) -> _Member | None:
    """`name` as it will travel; None for what is not code, such as a socket."""
    path = folder / name
    _refuse_outside(folder, name)
    if path.is_symlink():
        target = os.readlink(path)
        inside = os.path.normpath(os.path.join(os.path.dirname(name), target))
        if not os.path.isabs(target) and not inside.startswith(".."):
            return _Member(name, path, 0, 0o777, target)
        path = path.resolve()  # inside, as was found, though it is written as if outside
    try:
        found = path.stat()
    except OSError:
        return None  # a link to nothing: nothing travels
    if not stat.S_ISREG(found.st_mode):
        return None
    mode = 0o700 if found.st_mode & stat.S_IXUSR else 0o600
    return _Member(name, path, found.st_size, mode, None)


def _refuse_outside(folder: Path, name: str) -> None:
    """Refuse a link whose content lies elsewhere: nobody meant to send that with the code."""
    path = folder / name
    found = os.path.realpath(path)
    if Path(found).is_relative_to(os.path.realpath(folder)) or not os.path.lexists(found):
        return
    link = next(above for above in (path, *path.parents) if above.is_symlink())
    if Path(found).is_dir():
        hint = "name it under [data] or `exclude` in rabaska.toml"
    else:
        hint = "copy the file into the project, or name the link under `exclude` in rabaska.toml"
    raise DatasetError(
        f"{link.relative_to(folder)} is a link that points outside the project",
        why=f"it points to {os.readlink(link)}; only files in {folder} are sent",
        hint=hint,
    )


def _refuse_too_much(folder: Path, members: Sequence[_Member]) -> None:
    total = sum(member.size for member in members)
    if total <= MOST_BYTES and len(members) <= MOST_FILES:
        return
    raise DatasetError(
        f"the code in {folder} is too large to send with each run: "
        f"{len(members)} files, {say_size(total)}",
        why=_largest(members),
        hint="is a dataset inside? name it under [data] in rabaska.toml, or leave it out with "
        "`exclude`",
    )


def _largest(members: Sequence[_Member]) -> str:
    """Where the weight lies: `data holds 40000 files, 3.1 GB`, the heaviest three."""
    weights: dict[str, list[int]] = {}
    for member in members:
        top = member.name.split("/", 1)[0]
        weights.setdefault(top, []).append(member.size)
    heaviest = sorted(weights.items(), key=lambda item: (sum(item[1]), len(item[1])), reverse=True)
    return "; ".join(
        f"{top} holds {len(sizes)} files, {say_size(sum(sizes))}" for top, sizes in heaviest[:3]
    )
