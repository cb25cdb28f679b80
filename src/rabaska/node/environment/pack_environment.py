"""The word `freeze`: an environment as one file, that a job unpacks on its own disk."""

import hashlib
import json
import os
import sys
import tarfile
from typing import Any, Dict, Iterator, List

from .. import files

_LEFT_OUT = ("__pycache__",)
_UNPACKER = "bin/conda-unpack"  # what conda-pack leaves in its archives


class NotAnEnvironment(Exception):
    """What was named is neither an environment nor an archive of one."""


def main(argv: List[str]) -> int:
    if len(argv) != 2:
        sys.stderr.write("usage: freeze PATH ENVS\n")
        return 2
    source, envs = os.path.abspath(argv[0]), argv[1]
    try:
        os.makedirs(envs, exist_ok=True)
        name = fingerprint(source)
        record_file = os.path.join(envs, name + ".json")
        record = files.read_json(record_file) if files.is_still_there(record_file) else None
        sys.stdout.write(json.dumps(record or freeze(source, envs, name), sort_keys=True) + "\n")
    except (OSError, tarfile.TarError, NotAnEnvironment) as problem:
        sys.stderr.write("{}\n".format(problem))
        return 1
    return 0


def fingerprint(source: str) -> str:
    """One name for one state of a folder or an archive, by names, sizes and times."""
    digest = hashlib.sha256(os.path.basename(source).encode("utf-8", "surrogateescape"))
    for path in below(source) if os.path.isdir(source) else [source]:
        status = os.lstat(path)
        fact = [os.path.relpath(path, source), status.st_size, status.st_mtime_ns]
        digest.update(json.dumps(fact).encode("utf-8"))
    return digest.hexdigest()[:16]


def freeze(source: str, envs: str, name: str) -> Dict[str, Any]:
    """Pack the folder `source` into `envs`, or survey an archive where it lies."""
    if os.path.isdir(source):
        archive = os.path.join(envs, name + ".tar")
        pack(source, archive)
    else:
        archive = source
    record = survey(archive)
    record.update(digest=name, archive=archive)
    files.write_json(os.path.join(envs, name + ".json"), record)
    return record


def pack(folder: str, archive: str) -> None:
    """The content of `folder` as a plain tar, whole or not at all."""
    if not os.path.exists(os.path.join(folder, "bin", "python")):
        raise NotAnEnvironment("{} has no bin/python, so it is not an environment".format(folder))
    partial = files.partial_name(archive)
    try:
        with tarfile.open(partial, "w", format=tarfile.PAX_FORMAT) as tar:
            for path in below(folder):
                tar.add(path, os.path.relpath(path, folder), recursive=False)
        os.replace(partial, archive)
    finally:
        files.remove_if_there(partial)


def below(folder: str) -> Iterator[str]:
    """Everything in `folder`, in order; links are kept as links."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        for name in sorted(names + links):
            yield os.path.join(parent, name)


def survey(archive: str) -> Dict[str, Any]:
    """How many files and bytes are in there, and whether conda-pack made it."""
    count, room, by_conda, python = 0, 0, False, False
    with tarfile.open(archive, "r|*") as tar:
        for entry in tar:
            name = os.path.normpath(entry.name)
            count += 1
            room += entry.size
            by_conda = by_conda or name == _UNPACKER
            python = python or name == "bin/python"
    if not python:
        raise NotAnEnvironment(
            "{} has no bin/python at its top, so it is not a packed environment".format(archive)
        )
    return {"files": count, "room": room, "conda": by_conda}
