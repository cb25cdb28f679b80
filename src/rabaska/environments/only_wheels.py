"""pip that fetches wheels and starts no program: building a package runs what its author wrote.

`only_wheels.py PIP WORDS…`, run by its path; PIP is a wheel of pip, or empty if it is installed.
`--only-binary=:all:` is not enough: pip builds what is named by an address or a folder all the
same, what a wheel needs in this way, and what a line `--no-binary` of a requirements file names.
"""

import runpy
import sys
from pathlib import PurePath

_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn")
_HARMLESS = ("keyring",)  # which knows the passwords of an index
_BUILDERS = ("git", "hg", "svn", "bzr")  # and Python


def main(pip: str, words: list[str]) -> None:
    refused: list[str] = []

    def watch(event: str, details: tuple[object, ...]) -> None:
        if event in _STARTS:
            program = _program(event, details)
            if program not in _HARMLESS:
                refused.append(program)
                # pip goes on without what it only asks for its own description, as rustc.
                raise PermissionError(f"{program} may not be started")

    sys.argv = ["pip", *words]
    if pip:
        sys.path.insert(0, pip)
    sys.addaudithook(watch)
    try:
        runpy.run_module("pip", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code and any(program.startswith(("python", *_BUILDERS)) for program in refused):
            sys.stderr.write(
                "ERROR: not all packages have wheels, and none is built on this computer: name "
                "each package with a version, or build its wheel yourself\n"
            )
        raise


def _program(event: str, details: tuple[object, ...]) -> str:
    """The name of what is started; a shell's words where there is no name."""
    first = details[0] if details else ""
    if event == "subprocess.Popen" and not first:
        words = details[1]
        first = words[0] if isinstance(words, list | tuple) and words else words
    if first == sys.executable:
        return "python"
    return PurePath(str(first)).name


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
