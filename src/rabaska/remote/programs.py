"""Programs of this computer, named with their package when missing; and what git lists."""

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rabaska.errors import CommandFailed, MissingProgram, RabaskaError
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


def answer(words: list[str], patience: float) -> tuple[int | None, str]:
    """How a program that asks nobody anything ended, and all it said; None: not in time."""
    import subprocess

    mixed = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        done = run(words, stdin=subprocess.DEVNULL, timeout=patience, **mixed)
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout.decode("utf-8", "replace")


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


# The project may be somebody else's, and its `.git/config` names programs: one that watches
# files, hooks, and what fetches objects that are missing here. Looking runs none of them. Filters,
# pagers and the like are not used by `ls-files`.
_NO_PROGRAMS = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
_NO_FETCHING = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}  # the first is from 2024


def own_files(folder: Path) -> list[str] | None:
    """Tracked files and new ones that .gitignore does not leave out.

    None outside of git, and where git knows nothing of the folder's content (a project inside
    an ignored folder): then everything is the project's own.
    """
    if not is_there("git"):
        if _in_repository(folder):
            raise missing("git", "to know which files .gitignore leaves out")
        return None
    listing = _git(folder, "ls-files", "-co", "--exclude-standard", "-z")
    if listing.returncode != 0:
        _refuse_failure(folder, listing.stderr.decode(errors="replace").strip())
        return None
    return [os.fsdecode(name) for name in listing.stdout.split(b"\0") if name] or None


def git_prints(folder: Path, *words: str) -> bytes | None:
    """What git prints of what it knows; None where it fails. For words that start no program."""
    done = _git(folder, *words)
    return done.stdout if done.returncode == 0 else None


def _git(folder: Path, *words: str) -> "CompletedProcess[bytes]":
    # In English, whatever the user's language.
    variables = {**os.environ, **_NO_FETCHING, "LC_ALL": "C"}
    return run(
        ["git", *_NO_PROGRAMS, "-C", str(folder), *words], capture_output=True, env=variables
    )


def _in_repository(folder: Path) -> bool:
    place = folder.absolute()
    return any((above / ".git").exists() for above in (place, *place.parents))


def _refuse_failure(folder: Path, errors: str) -> None:
    """Files that .gitignore leaves out must not travel because git itself has a problem."""
    if "not a git repository" in errors:
        return
    raise CommandFailed(
        f"git cannot list the files of {folder}",
        why=f"git said: {errors}",
        hint=f"`git -C {folder} status` must work first; it says what to do",
    )
