"""Compiles the library when rabaska is built or installed: once for each kind of processor.

`zig cc` (the package `ziglang`) compiles for all of them, against a C library so old that every
cluster has it. Where it fails, a compiler of this computer makes the library for this computer;
where there is none, Python does the work.
"""

import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = Path(__file__).parent
TARGET = SOURCES.parent / "src" / "rabaska" / "node" / "native"
WORDS = ["-O3", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra"]
# The oldest C library that zig knows for each: that of CentOS 7.
MACHINES = {
    "x86_64": "x86_64-linux-gnu.2.17",
    "aarch64": "aarch64-linux-gnu.2.17",
    "ppc64le": "powerpc64le-linux-gnu.2.19",
}


class CompileNative(BuildHookInterface[Any]):
    def dependencies(self) -> list[str]:
        return ["ziglang>=0.13"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        compile_all()


def compile_all() -> list[Path]:
    """The libraries, newer than their sources; those that could not be made are left out."""
    newest = max(path.stat().st_mtime for path in SOURCES.glob("*.[ch]"))
    made = []
    for machine, triple in MACHINES.items():
        path = TARGET / f"librabaska-linux-{machine}.so"
        if (path.exists() and path.stat().st_mtime >= newest) or _compile(path, machine, triple):
            made.append(path)
        else:
            path.unlink(missing_ok=True)  # of older sources
    return made


def _compile(path: Path, machine: str, triple: str) -> bool:
    compilers = [[sys.executable, "-m", "ziglang", "cc", "-target", triple, "-s"]]
    if sys.platform == "linux" and machine == platform.machine():
        compilers += [[name] for name in ("cc", "gcc", "clang") if shutil.which(name)]
    sources = sorted(str(path) for path in SOURCES.glob("*.c"))
    partial = path.with_name(f"{path.name}.partial")
    for compiler in compilers:
        words = [*compiler, *WORDS, *sources, "-o", str(partial)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            partial.replace(path)
            return True
    partial.unlink(missing_ok=True)
    return False


if __name__ == "__main__":
    compile_all()
