"""The modules that a project has itself, wherever it keeps them."""

import os
import sys
from pathlib import Path

_CODE = (".py", ".pyx", ".so", ".pyd")
_NOT_OURS = {"venv", "env", "node_modules", "site-packages", "build", "dist"}
_MOST_FOLDERS = 2000

# Modules that Python had once, or brings along with its environments.
_ONCE = frozenset(
    """
    aifc asynchat asyncore audioop binhex cgi cgitb chunk crypt distutils dummy_threading
    formatter imghdr imp lib2to3 macpath mailcap msilib nis nntplib ossaudiodev parser pipes
    smtpd sndhdr spwd sunau symbol telnetlib uu xdrlib tomllib zoneinfo graphlib ConfigParser
    Queue StringIO Tkinter __builtin__ cPickle cStringIO commands httplib urllib2 urlparse pip
    setuptools pkg_resources wheel _distutils_hack rabaska __main__
    """.split()  # noqa: SIM905
)
STANDARD = frozenset(sys.stdlib_module_names) | _ONCE


def local_modules(folder: Path) -> frozenset[str]:
    """Names of files and packages anywhere in the project: a program may extend its path."""
    names: set[str] = set()
    for count, (parent, folders, files) in enumerate(os.walk(folder)):
        folders[:] = [
            name for name in folders if not name.startswith(".") and not _is_venv(parent, name)
        ]
        code = [name for name in files if name.endswith(_CODE)]
        names |= {name.partition(".")[0] for name in code}
        inside = os.path.relpath(parent, folder)
        if code and inside != ".":
            # A package, and the folder around it, which may have no file of its own.
            names |= {*Path(inside).parts[-2:]}
        if count >= _MOST_FOLDERS:
            break
    return frozenset(names)


def _is_venv(parent: str, name: str) -> bool:
    return name in _NOT_OURS or os.path.exists(os.path.join(parent, name, "pyvenv.cfg"))  # noqa: PTH118, PTH110
