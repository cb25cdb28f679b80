"""Pythons without pip, venv or ensurepip, as distributions ship them: a real one, less these."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

_FACTS = """
import os, sys, sysconfig
program = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
print(*sys.version_info[:2], program, sysconfig.get_path("stdlib"), sep="\\n")
"""
EVERYTHING = ("pip", "venv", "ensurepip")


def bare_python(folder: Path, without=EVERYTHING, like: str = sys.executable) -> Path:
    """A Python with its own prefix, whose library lacks the modules `without`."""
    asked = subprocess.run([like, "-c", _FACTS], check=True, capture_output=True, text=True)
    major, minor, program, library = asked.stdout.split("\n")[:4]
    (folder / "bin").mkdir(parents=True)
    python = folder / "bin" / "python3"
    shutil.copy(program, python)
    own = folder / "lib" / f"python{major}.{minor}"
    own.mkdir(parents=True)
    for entry in Path(library).iterdir():
        if entry.name not in (*without, "site-packages", "dist-packages", "__pycache__"):
            os.symlink(entry, own / entry.name)
    packages = own / "site-packages"
    packages.mkdir()
    if "pip" not in without:
        for entry in (Path(library) / "site-packages").glob("pip*"):
            os.symlink(entry, packages / entry.name)
    # Some are linked with a library that lies beside them.
    shared = Path(program).parent.parent / "lib"
    for entry in shared.glob(f"libpython{major}.{minor}*"):
        os.symlink(entry, folder / "lib" / entry.name)
    return python


def lacks(python: Path, module: str) -> bool:
    asked = subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False)
    return asked.returncode != 0
