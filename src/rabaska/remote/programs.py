"""Programs of this computer, started in one place: what is missing is named, with its package.

`subprocess` is imported when something is started: `status` often needs only what `calls` does.
"""

import errno
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from rabaska.errors import MissingProgram, RabaskaError
from rabaska.node import environment_variables

if TYPE_CHECKING:
    from subprocess import CompletedProcess, Popen


class DebianPackage(NamedTuple):
    """What brings a program, in the words of those who install it."""

    debian: str
    fedora: str
    brew: str

    @property
    def ways(self) -> str:
        return (
            f"`sudo apt install {self.debian}` (Debian, Ubuntu), "
            f"`sudo dnf install {self.fedora}` (Fedora, RHEL) or `brew install {self.brew}` (macOS)"
        )


PACKAGES = {
    "ssh": DebianPackage("openssh-client", "openssh-clients", "openssh"),
    "rsync": DebianPackage("rsync", "rsync", "rsync"),
    "git": DebianPackage("git", "git-core", "git"),
    "bash": DebianPackage("bash", "bash", "bash"),
}


def run(words: list[str], **more: Any) -> "CompletedProcess[bytes]":
    """`subprocess.run`, which names what it could not start."""
    import subprocess

    try:
        return subprocess.run(words, check=False, **more)
    except OSError as problem:
        raise not_started(words, problem) from problem


def started(words: list[str], **more: Any) -> "Popen[bytes]":
    """The same for `subprocess.Popen`."""
    import subprocess

    try:
        return subprocess.Popen(words, **more)
    except OSError as problem:
        raise not_started(words, problem) from problem


def is_there(program: str) -> bool:
    import shutil

    return shutil.which(program) is not None


def not_started(words: list[str], problem: OSError) -> RabaskaError:
    """Why a program of this computer did not start, and what to do about it."""
    program = words[0]
    if problem.errno == errno.E2BIG:
        return _too_long(words, problem)
    if problem.errno in (errno.ENOENT, errno.ENOTDIR):
        return missing(program)
    return MissingProgram(
        f"the program `{program}` could not be started",
        why=problem.strerror or str(problem),
        hint=f"`command -v {program}` shows which file it is; {_install_hint(program)}",
    )


def missing(program: str, what_for: str = "") -> MissingProgram:
    needed = f", which is needed {what_for}" if what_for else ""
    return MissingProgram(
        f"this computer has no program `{program}`{needed}",
        why=f"it is not on PATH ({os.environ.get('PATH', 'which is not set')})",
        hint=_install_hint(program),
    )


def _install_hint(program: str) -> str:
    package = PACKAGES.get(program)
    return (
        f"install it: {package.ways}"
        if package
        else f"install the package that contains `{program}`"
    )


def _too_long(words: list[str], problem: OSError) -> RabaskaError:
    """The system refuses long words and long environments alike, and does not say which."""
    name, size = environment_variables.longest(os.environ)
    if size > environment_variables.LONGEST:
        return MissingProgram(
            f"the variable {name} is too long: no program can be started",
            why=environment_variables.too_long(os.environ),
            hint=f"`unset {name}`, or keep its content in a file",
        )
    return MissingProgram(
        f"the program `{words[0]}` could not be started",
        why=f"{problem.strerror}; the longest variable, {name}, has {size:,} bytes",
        hint="unset large variables, or keep their content in files",
    )
