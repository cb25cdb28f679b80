"""Globus by its own command line: which endpoint this computer is, and a transfer begun."""

import json
import re
from collections.abc import Sequence

from rabaska.errors import CommandFailed, MissingProgram
from rabaska.remote import programs

_PROGRAM = "globus"
_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def local_endpoint() -> str:
    """The id of this computer's Globus Connect Personal; nothing where there is none."""
    if not programs.is_there(_PROGRAM):
        return ""
    told = programs.run([_PROGRAM, "endpoint", "local-id"], capture_output=True)
    said = told.stdout.decode(errors="replace").strip()
    return said if told.returncode == 0 and _ID.fullmatch(said) else ""


def transfer_command(source: str, target: str, label: str) -> list[str]:
    """The words that begin a transfer of a folder; both are `ENDPOINT:PATH`."""
    return [
        _PROGRAM, "transfer", "--recursive", "--sync-level", "checksum", "--label", label,
        source, target,
    ]  # fmt: skip


def start_transfer(words: Sequence[str]) -> str:
    """Begin it; the id of its task."""
    if not programs.is_there(_PROGRAM):
        raise MissingProgram(
            "this computer has no program `globus`",
            why="it is not on PATH",
            hint="`pip install globus-cli`, then `globus login`; or begin the transfer in the web "
            "app, app.globus.org, with the two places that `rabaska data globus` prints",
        )
    told = programs.run([*words, "--format", "json"], capture_output=True)
    said = told.stdout.decode(errors="replace")
    try:
        task = str(json.loads(said)["task_id"]) if told.returncode == 0 else ""
    except (ValueError, KeyError, TypeError):
        task = ""
    if not _ID.fullmatch(task):
        raise CommandFailed(
            "globus did not begin the transfer",
            why=told.stderr.decode(errors="replace").strip() or said.strip()[-300:],
            hint="`globus whoami` tells whether you are logged in; `globus login` logs you in",
        )
    return task
