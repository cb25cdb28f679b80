"""The word `venv`: a virtual environment by hand, where Python's own module does not make one.

Debian's Python comes without `ensurepip`, others without `venv` itself; pip was sent as a wheel.
"""

import argparse
import os
import shutil
import subprocess
import sys
from typing import List

from . import pip_queries

# As the real one, for bash: an environment of ours is not left by hand.
_ACTIVATE = """\
VIRTUAL_ENV={folder}
export VIRTUAL_ENV
PATH="$VIRTUAL_ENV/bin:$PATH"
export PATH
unset PYTHONHOME
hash -r 2>/dev/null
"""
_SETTINGS = """\
home = {home}
include-system-site-packages = false
version = {version}
"""


def main(argv: List[str]) -> int:
    words = argparse.ArgumentParser(prog="venv")
    words.add_argument("--pip", required=True, metavar="WHEEL")
    words.add_argument("folder")
    options = words.parse_args(argv)
    folder = os.path.abspath(options.folder)
    try:
        make(folder)
        return bring_pip(folder, options.pip)
    except (OSError, pip_queries.NoPython) as problem:
        sys.stderr.write("{}\n".format(problem))
        return 1


def make(folder: str) -> None:
    """The layout by which Python itself knows that it is in an environment (PEP 405)."""
    version = "{}.{}".format(*sys.version_info[:2])
    # In an environment of its own, it names the Python that this one was made of.
    base = getattr(sys, "_base_executable", None) or sys.executable
    programs = os.path.join(folder, "bin")
    for needed in (programs, os.path.join(folder, "lib", "python" + version, "site-packages")):
        os.makedirs(needed, exist_ok=True)
    if sys.maxsize > 2**32 and sys.platform.startswith("linux"):
        _link("lib", os.path.join(folder, "lib64"))
    _link(base, os.path.join(programs, "python"))
    for name in ("python3", "python" + version):
        _link("python", os.path.join(programs, name))
    settings = _SETTINGS.format(
        home=os.path.dirname(base), version="{}.{}.{}".format(*sys.version_info)
    )
    _write(os.path.join(folder, "pyvenv.cfg"), settings)
    quoted = "'{}'".format(folder.replace("'", "'\\''"))
    _write(os.path.join(programs, "activate"), _ACTIVATE.format(folder=quoted))


def bring_pip(folder: str, wheel: str) -> int:
    """Install pip from its wheel, by itself; its exit code."""
    # pip looks at the name of what it installs.
    named = os.path.join(
        folder, "pip-{}-py3-none-any.whl".format(pip_queries.version_inside(wheel))
    )
    shutil.copyfile(wheel, named)
    words = [os.path.join(folder, "bin", "python"), os.path.join(named, "pip"), "install"]
    words += ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", named]
    try:
        return subprocess.call(
            words, stdin=subprocess.DEVNULL, env=pip_queries.unbiased(os.environ)
        )
    finally:
        os.unlink(named)


def _link(target: str, path: str) -> None:
    if not os.path.lexists(path):
        os.symlink(target, path)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)
