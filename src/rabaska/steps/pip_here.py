"""What pip on this computer would choose, asked before anything is said of it."""

import json
import platform
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rabaska.environments.download import Target, choice_command, sources
from rabaska.remote.place import Outcome, quoted
from rabaska.remote.this_computer import Here

_PATIENCE = 60  # seconds; an index may not answer
_AT_ONCE = 4  # questions
_NOT_FOUND = "No matching distribution found"


def usual_target(machine: str = "") -> Target:
    """The Python of this computer, on a Linux that is not too old; the cluster's is not known."""
    return Target(platform.python_version(), machine or "x86_64", "glibc-2.28")


def chosen_here(requirements: str, names: Iterable[str], target: Target) -> tuple[str, ...]:
    """`torch==2.5.1+cpu` for each of `names`, lines of such a file; none where pip cannot tell.

    The settings of pip on this computer count, and where `requirements` says packages come from.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        if _ask(requirements, names, target, report).exit_code != 0:
            return ()
        try:
            entries = json.loads(report.read_text("utf-8"))["install"]
            found = [(each["metadata"]["name"], each["metadata"]["version"]) for each in entries]
        except (OSError, ValueError, KeyError, TypeError):
            return ()
        return tuple(f"{name}=={version}" for name, version in found)


def nowhere(requirements: str, lines: Iterable[str], target: Target) -> tuple[str, ...]:
    """Those of `lines` of which pip finds no wheel on this computer either, each by itself."""

    def is_nowhere(line: str) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            outcome = _ask(requirements, [line], target, Path(folder) / "report.json")
            return outcome.exit_code != 0 and _NOT_FOUND in outcome.complaint

    wanted = list(lines)
    with ThreadPoolExecutor(_AT_ONCE) as crew:
        return tuple(
            line for line, lacks in zip(wanted, crew.map(is_nowhere, wanted), strict=True) if lacks
        )


def _ask(requirements: str, lines: Iterable[str], target: Target, report: Path) -> Outcome:
    file = report.parent / "requirements.txt"
    file.write_text("\n".join([*sources(requirements), *lines]), "utf-8")
    command = quoted(choice_command(target, file, report))
    return Here().run(f"timeout {_PATIENCE} {command}")
