"""secrets.json: what the program of a run was promised, and nobody else may read."""

import os
import stat
from typing import Dict, List

from .. import files
from .run_folder import RunFolder


class SecretsMissing(OSError):
    """The program cannot have what it was promised."""


def load_secrets(run: RunFolder, names: List[str]) -> Dict[str, str]:
    """The values of `names`; SecretsMissing where they cannot be had, or not be trusted."""
    if not names:
        return {}
    try:
        found = os.lstat(run.secrets)
    except OSError as problem:
        raise SecretsMissing("{} cannot be read: {}".format(run.secrets, problem.strerror))
    private = stat.S_ISREG(found.st_mode) and not stat.S_IMODE(found.st_mode) & 0o077
    if not private or found.st_uid != os.getuid():
        raise SecretsMissing("{} is not private to you, so it is not used".format(run.secrets))
    try:
        values = files.read_json(run.secrets) or {}
    except ValueError:
        values = {}
    missing = [name for name in names if name not in values]
    if missing:
        raise SecretsMissing("{} has no {}".format(run.secrets, ", ".join(missing)))
    return {name: files.native(str(values[name])) for name in names}


def remove_secrets(run: RunFolder) -> None:
    """Remove the file: no job will need it any more."""
    files.remove_if_there(run.secrets)
