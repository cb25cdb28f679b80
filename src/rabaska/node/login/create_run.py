"""Make a run folder, complete or not at all, and never in the place of another run.

`create RUNFOLDER` reads the folder as a tar from standard input. A folder of that name that holds
the same plan is this run, for a plan holds its id: the asker lost our answer and asks again. Any
other one is left alone, and the exit code is TAKEN.
"""

import os
import sys
import tarfile
from typing import BinaryIO, List

from .. import files, partial_folder
from ..record.run_folder import RunFolder

TAKEN = 73  # "can't create", as sysexits.h spells it


def main(argv: List[str]) -> int:
    run = RunFolder(argv[0])
    try:
        made = create(run, sys.stdin.buffer)
    except OSError as problem:
        sys.stderr.write("{}\n".format(problem))
        return 1
    if not made:
        sys.stderr.write("{} already exists and is another run\n".format(run.path))
    return 0 if made else TAKEN


def create(run: RunFolder, tar: BinaryIO) -> bool:
    """Whether the folder is this run's now; False when another run has it."""
    parent = os.path.dirname(run.path)
    os.makedirs(parent, exist_ok=True)
    partial_folder.sweep(parent)
    new = partial_folder.begin(parent, run.name)
    try:
        _unpack(tar, new.path)
        lead_to_carried(RunFolder(new.path))
        plan = _read(RunFolder(new.path))
    except BaseException:
        partial_folder.abandon(new)
        raise
    # The rename fails where there is anything already, whoever else tries at this moment.
    return partial_folder.finish(new, run.path) or _read(run) == plan


def _unpack(tar: BinaryIO, folder: str) -> None:
    """Our own tar: plain files and folders."""
    with tarfile.open(fileobj=tar, mode="r|") as archive:
        for member in archive:
            path = os.path.join(folder, member.name)
            if member.isdir():
                os.makedirs(path, member.mode, exist_ok=True)
                continue
            content = archive.extractfile(member)
            assert content is not None
            # Less the umask: who shares a store with a group has another one.
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, member.mode)
            with open(made, "wb") as stream:
                stream.write(content.read())
                stream.flush()
                os.fsync(stream.fileno())
    files.sync_folder(folder)


def lead_to_carried(run: RunFolder) -> None:
    """What is carried lies where its path need not change from job to job (see `lease`)."""
    for folder in (run.carried(0), os.path.dirname(run.kept(0))):
        os.makedirs(folder, exist_ok=True)
    os.rename(run.carried(0), run.kept(0))
    os.symlink(os.path.relpath(run.kept(0), os.path.dirname(run.carried(0))), run.carried(0))


def _read(run: RunFolder) -> bytes:
    """The plan to the byte; nothing where there is none."""
    try:
        with open(run.plan, "rb") as stream:
            return stream.read()
    except FileNotFoundError:
        return b""
