"""The code snapshot, unpacked onto node-local storage; hostile archives are refused."""

import hashlib
import os
import tarfile
from typing import Dict, Tuple

from ..record.plan import Plan

_DIGITS = 32  # of the digest that an archive is called by


class WrongSnapshot(Exception):
    """The archive holds what no snapshot holds."""

    remedy = ""


class DamagedSnapshot(WrongSnapshot):
    """The archive is not what was sent."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.remedy = remedy


Listing = Dict[str, Tuple[int, int]]  # path → size and modification time, as unpacked


def refuse_damaged(archive: str, plan: Plan) -> None:
    """Raise DamagedSnapshot unless the archive has the digest of the plan.

    It is set aside then, so that whoever submits the run again finds it missing and sends it.
    """
    digest, room = hashlib.sha256(), memoryview(bytearray(2**18))
    with open(archive, "rb", buffering=0) as stream:
        for count in iter(lambda: stream.readinto(room), 0):
            digest.update(room[:count])
    if digest.hexdigest()[:_DIGITS] == plan.code:
        return
    try:
        os.rename(archive, archive + ".damaged")
    except OSError:
        pass  # another job of the run was quicker, or may not change the store
    here = plan.origin.cluster == "here"
    raise DamagedSnapshot(
        "the code archive {} is damaged: its digest does not match its name".format(archive),
        "`rabaska run` makes a new one" if here else "`rabaska resume` sends it again",
    )


def unpack(archive: str, folder: str) -> Listing:
    """Unpack `archive` into `folder`; what lay there when the program started, for `keep`."""
    os.makedirs(folder, exist_ok=True)
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                _unpack_one(tar, member, folder)
    except (tarfile.TarError, EOFError) as problem:
        raise WrongSnapshot("{} cannot be unpacked: {}".format(archive, problem))
    return listing(folder)


def _unpack_one(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: str) -> None:
    path = _inside(folder, member.name)
    if member.isdir():
        os.makedirs(path, exist_ok=True)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if member.issym():
        _inside(folder, os.path.join(os.path.dirname(member.name), member.linkname))
        os.symlink(member.linkname, path)
    elif member.isreg():
        _write(tar, member, path)
    else:
        raise WrongSnapshot("{!r} is not a file, folder or link".format(member.name))


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    source = tar.extractfile(member)
    if source is None:
        raise WrongSnapshot("{!r} holds no data".format(member.name))
    with source, open(path, "xb") as target:
        for block in iter(lambda: source.read(1 << 20), b""):
            target.write(block)
    os.chmod(path, (member.mode & 0o777) | 0o600)


def _inside(folder: str, name: str) -> str:
    """Where `name` goes in `folder`; refused when that is outside, through links too."""
    plain = os.path.normpath(name)
    path = os.path.join(folder, plain)
    root = os.path.realpath(folder)
    # The parent is resolved, so that no link unpacked before leads the way out.
    parent = os.path.realpath(os.path.dirname(path))
    climbs = os.path.isabs(name) or plain == ".." or plain.startswith("../")
    if climbs or os.path.commonpath([root, parent]) != root:
        raise WrongSnapshot("{!r} points outside the code folder".format(name))
    return path


def listing(folder: str) -> Listing:
    """Every file and link below `folder`; folders reached through a link are not entered."""
    found = {}  # type: Listing
    for parent, folders, names in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        for name in names + links:
            path = os.path.join(parent, name)
            try:
                status = os.lstat(path)
            except FileNotFoundError:
                continue  # a program that runs has removed it
            found[os.path.relpath(path, folder)] = (status.st_size, status.st_mtime_ns)
    return found
