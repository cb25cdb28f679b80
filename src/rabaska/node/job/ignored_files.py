"""What lies beside the code and is no result: caches, a repository of git, dumps, half-made copies.

A name alone proves little: a package may be called `core`, and a folder of results anything at all.
What is passed over is told by its content wherever that tells.
"""

import fnmatch
import os
import re
import stat
import struct
from typing import Optional

from .. import partial_folder
from ..checkpoints.folder_kinds import UNRENAMED

_CACHES = {
    "__pycache__",
    ".ipynb_checkpoints",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
}
_BYTE_CODE = ("*.pyc", "*.pyo")
_UNFINISHED = "*.partial"
_DELETED = re.compile(r"\.nfs[0-9a-f]{12,}\Z")  # on NFS, while somebody still reads it
_ELF, _ET_CORE = b"\x7fELF", 4  # elf(5)


def passed_over(code: str, path: str) -> Optional[str]:
    """The file or folder, relative to `code`, for which `path` is no result; None if it is one."""
    parts = path.split("/")
    for depth in range(1, len(parts)):
        above = "/".join(parts[:depth])
        if _is_no_result(os.path.join(code, above)):
            return above
    name = parts[-1]
    if is_byte_code(name) or fnmatch.fnmatchcase(name, _UNFINISHED) or _DELETED.match(name):
        return path
    if name == "core" or fnmatch.fnmatchcase(name, "core.[0-9]*"):
        return path if _is_core_dump(os.path.join(code, path)) else None
    return None


def _is_no_result(folder: str) -> bool:
    name = os.path.basename(folder)
    if name == ".git":
        return os.path.isfile(os.path.join(folder, "HEAD"))
    # Unfinished checkpoints: of rabaska's own sessions, and of Orbax.
    return name in _CACHES or partial_folder.is_temporary(name) or UNRENAMED in name


def is_byte_code(path: str) -> bool:
    """Whether nobody needs to be told: every Python program leaves it."""
    name = os.path.basename(path)
    return name == "__pycache__" or any(fnmatch.fnmatchcase(name, one) for one in _BYTE_CODE)


def _is_core_dump(path: str) -> bool:
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return False
        with open(path, "rb") as stream:
            head = stream.read(18)
    except OSError:
        return False
    kind = struct.unpack(">H" if head[5:6] == b"\x02" else "<H", head[16:18].ljust(2, b"\0"))[0]
    return head.startswith(_ELF) and bool(kind == _ET_CORE)
