"""A computer that has few programs: a PATH that holds links to those alone."""

import os
import shutil
from pathlib import Path

# What any Linux has, and our own scripts use.
BASICS = (
    "bash", "sh", "cat", "cp", "mv", "rm", "mkdir", "mktemp", "ls", "ln", "chmod", "touch", "find",
    "date", "dirname", "basename", "env", "sed", "grep", "wc", "head", "tail", "sleep", "id",
    "uname", "tr", "sort", "tar", "gzip", "sha256sum", "base64", "ps", "kill", "hostname", "true",
)  # fmt: skip


def bare_path(folder: Path, *programs: str, **others: str) -> str:
    """A PATH with the basics and `programs`; `others` are programs under other names."""
    folder.mkdir()
    found = {name: shutil.which(name) for name in (*BASICS, *programs)}
    for name, program in {**found, **others}.items():
        if program:
            os.symlink(program, folder / name)
    return str(folder)
