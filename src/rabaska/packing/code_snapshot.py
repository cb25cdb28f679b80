"""The project's code as it is now: one tar named by its digest, never changed afterwards."""

import hashlib
import os
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from rabaska.domain.amounts import say_size
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
from rabaska.node.data import pack_format, tar_headers
from rabaska.node.job import unpacked_code
from rabaska.packing.code_files import CodeFile, Listed, code_files, patterns_in
from rabaska.packing.refusals import space_needed

MOST_BYTES = 200 * 10**6
MOST_FILES = 20_000

_SETTINGS = "rabaska.toml"
_BEGINNING = 4096  # bytes that tell a private key from a certificate
_SMALL = 10**6  # bytes of a file that is looked through for secrets


@dataclass(frozen=True)
class CodeSnapshot:
    digest: str
    path: Path
    files: int
    bytes: int
    withheld: tuple[str, ...] = ()  # files that may hold secrets, and were not sent


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
    of `secrets`, is sent only if it matches a pattern of `include`.
    """
    code = sorted(code_files(folder, exclude, listed), key=lambda member: os.fsencode(member.name))
    code = list(_without_secrets(code))
    included = patterns_in(folder, include)
    sought = secrets.sought() if secrets else ()
    others = (member for member in code if member.name not in included)
    withheld = [member for member in others if _may_be_secret(member, sought)]
    withheld += [member for member in code if member.secret and member not in withheld]
    members = [member for member in code if member not in withheld]
    _refuse_too_much(folder, members)
    with space_needed(store_code, f"copy the code in {folder}"):
        digest = _keep(members, store_code)
    path = store_code / f"{digest}.tar"
    size = sum(member.size for member in members)
    names = tuple(member.name for member in withheld)
    return CodeSnapshot(digest, path, len(members), size, names)


def _without_secrets(members: Sequence[CodeFile]) -> Iterator[CodeFile]:
    """The same, with copies of settings that are free of secrets: variables are sent apart.

    The job does not read settings. Where rabaska.toml is a link, they are in the file it points to.
    """
    settings = {
        os.path.realpath(member.path)
        for member in members
        if PurePosixPath(member.name).name == _SETTINGS
    }
    for member in members:
        if member.target is not None or os.path.realpath(member.path) not in settings:
            yield member
            continue
        copy = without_secrets(_content(member))
        size = member.size if copy is None else len(copy)
        yield replace(member, content=copy, size=size, secret=copy is None)


def _may_be_secret(member: CodeFile, sought: Sequence[bytes]) -> bool:
    """By its name, by the name of what it is a link to, or by what is in it."""
    if member.target is not None:
        return False  # what it points to is a member itself
    if file_looks_secret(member.name) or file_looks_secret(member.path.name):
        return True
    content = _searched_content(member)
    if file_may_be_key(member.name) and is_private_key(content[:_BEGINNING]):
        return True
    return holds_private_key(content) or any(secret in content for secret in sought)


def _searched_content(member: CodeFile) -> bytes:
    """What is sent of a small file, and the beginning of another that may be a key."""
    if member.content is not None:
        return member.content
    most = _SMALL if member.size <= _SMALL else _BEGINNING * file_may_be_key(member.name)
    with suppress(OSError), member.path.open("rb") as stream:
        return stream.read(most)
    return b""


def changed_files(before: Path, after: Path) -> list[str]:
    """The files in which two snapshots differ, each with what became of it."""
    old, new = _contents(before), _contents(after)
    return [
        f"{name} {'new' if name not in old else 'gone' if name not in new else 'changed'}"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]


def contents(archive: Path) -> dict[str, bytes]:
    """The files of a snapshot; of a link, where it leads."""
    with tarfile.open(archive) as tar:
        return {
            member.name: member.linkname.encode() if member.linkname else _bytes(tar, member)
            for member in tar
        }


def _contents(archive: Path) -> dict[str, str]:
    with tarfile.open(archive) as tar:
        return {
            member.name: member.linkname or hashlib.sha256(_bytes(tar, member)).hexdigest()
            for member in tar
        }


def _bytes(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = tar.extractfile(member) if member.isfile() else None
    return stream.read() if stream else b""


@contextmanager
def unpacked(archive: Path) -> Iterator[Path]:
    """A folder with the code of a snapshot, for as long as it is needed."""
    with tempfile.TemporaryDirectory() as folder:
        unpacked_code.unpack(str(archive), folder)
        yield Path(folder)


def is_as_named(archive: Path) -> bool:
    """Whether a snapshot is there, and its digest is still its name."""
    return archive.is_file() and pack_format.sha256_of(str(archive)).startswith(archive.stem)


def _keep(members: Iterable[CodeFile], store_code: Path) -> str:
    """Write the tar under its digest, complete or not at all."""
    store_code.mkdir(parents=True, exist_ok=True)
    partial_folder.sweep(str(store_code))
    workplace = partial_folder.begin(str(store_code), "snapshot")
    try:
        archive = Path(workplace.path) / "code.tar"
        digest = _write(archive, members)
        archive.replace(store_code / f"{digest}.tar")
        files.sync_folder(str(store_code))
    finally:
        partial_folder.abandon(workplace)
    return digest


def _write(path: Path, members: Iterable[CodeFile]) -> str:
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


def _pieces(member: CodeFile) -> Iterator[bytes]:
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


def _content(member: CodeFile) -> bytes:
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


def _refuse_too_much(folder: Path, members: Sequence[CodeFile]) -> None:
    total = sum(member.size for member in members)
    if total <= MOST_BYTES and len(members) <= MOST_FILES:
        return
    raise DatasetError(
        f"the code in {folder} is too large to send with each run: "
        f"{_count(len(members))}, {say_size(total)}",
        why=_largest(members),
        hint="is a dataset inside? name it under [data] in rabaska.toml, or leave it out with "
        "`exclude`",
    )


def _largest(members: Sequence[CodeFile]) -> str:
    """The three largest folders: `data has 40000 files, 3.1 GB`."""
    sizes_by_folder: dict[str, list[int]] = {}
    for member in members:
        top = member.name.split("/", 1)[0]
        sizes_by_folder.setdefault(top, []).append(member.size)
    largest = sorted(
        sizes_by_folder.items(), key=lambda item: (sum(item[1]), len(item[1])), reverse=True
    )
    return "; ".join(
        f"{top} has {_count(len(sizes))}, {say_size(sum(sizes))}" for top, sizes in largest[:3]
    )


def _count(files: int) -> str:
    return "1 file" if files == 1 else f"{files} files"
