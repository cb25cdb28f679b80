"""Trouble that the start-up files of a login node make: named, for ssh calls it success."""

import re

from rabaska.node.environment_variables import LONGEST
from rabaska.remote.ssh_calls import Call
from rabaska.remote.ssh_connection import Connection
from rabaska.remote.ssh_errors import StartUpFailed

_TOO_LONG = "Argument list too long"
_FILES = "~/.bashrc, ~/.bash_profile and ~/.profile"
_PATIENCE = 20  # seconds for the names of variables
# As shells print what they export: `declare -x NAME="…"`, `export NAME='…'`, `typeset -x NAME=…`.
_EXPORTED = re.compile(rb"^(?:declare|export|typeset)(?: -\w+)* (\w+)=", re.MULTILINE)


def refuse_start_up(host: str, happened: str, printed: str) -> None:
    if re.search(r"\bbash: (command )?not found|Command not found", printed):
        raise StartUpFailed(
            f"{host} has no bash on its PATH",
            why=f"the shell there said: {printed}",
            hint=f"`ssh {host} bash --version` must work; add its folder to PATH in the start-up "
            "file of your shell there",
        )
    raise StartUpFailed(
        f"the shell on {host} ends or waits before it runs commands, perhaps in a start-up file",
        why=happened + (f"; its last output was: {printed}" if printed else ""),
        hint=f"look in {_FILES} there for `exit`, `exec`, `read` or something that waits; a file "
        "that is for terminals only begins with `[[ $- == *i* ]] || return`. "
        f"`ssh {host} echo hello` must print hello",
    )


def refuse_variables(connection: Connection, printed: str) -> None:
    """Raise when a variable that is set there is too long for any program to be started."""
    if _TOO_LONG not in printed:
        return
    for name, size in _sizes(connection):
        if size > LONGEST:
            raise StartUpFailed(
                f"the variable {name} is too long on {connection.host}: no program can be started",
                why=f"it has {size:,} bytes, and the system allows {LONGEST:,}; "
                f"the shell said: {printed}",
                hint=f"find {name} in {_FILES} there, and keep its content in a file",
            )


def _sizes(connection: Connection) -> list[tuple[str, int]]:
    """The variables there, the longest first; no program is needed to list them."""
    for shell in ("export -p", "exec bash -lc 'export -p'"):
        printed = _printed(connection, shell)
        places = [(match[1].decode(), match.start()) for match in _EXPORTED.finditer(printed)]
        ends = [start for _, start in places[1:]] + [len(printed)]
        sizes = [(name, end - at) for (name, at), end in zip(places, ends, strict=True)]
        sizes.sort(key=lambda variable: -variable[1])
        if sizes and sizes[0][1] > LONGEST:
            return sizes
    return []


def _printed(connection: Connection, words: str) -> bytes:
    from time import monotonic

    call = Call([*connection.plain_shell(), connection.host, words])
    try:
        call.give_up_at(monotonic() + _PATIENCE)
        return call.answer(b"")
    finally:
        call.end()
