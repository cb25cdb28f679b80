"""The compiled part of rabaska, made for the Python that a test wants."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "speed"


def compile_for(python: str | Path, folder: Path) -> Path:
    """`rabaska_speed` as a file that this Python can import from `folder`."""
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_paths()['include'])"]
    told = subprocess.run(asked, check=True, capture_output=True, text=True)
    headers, compiler = Path(told.stdout.strip()), shutil.which("cc")
    if not compiler or not (headers / "Python.h").exists():
        pytest.skip("needs a C compiler and the headers of Python")
    words = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    if sys.platform == "darwin":
        words += ["-undefined", "dynamic_lookup"]
    module = folder / "rabaska_speed.so"
    sources = sorted(SOURCES.glob("*.c"))
    subprocess.run(
        [compiler, *words, f"-I{headers}", "-idirafter", headers.parent, *sources, "-o", module],
        check=True,
    )
    return module
