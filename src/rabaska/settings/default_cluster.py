"""The cluster that a project uses where nobody names one: `on` in its rabaska.toml."""

import re
import tomllib
from pathlib import Path as File

from rabaska.errors import RabaskaError
from rabaska.settings import document
from rabaska.settings.project_file import FILE, find
from rabaska.settings.write_choice import rewrite

HERE = "here"
_KEY = "on"


def default_cluster(folder: File) -> str:
    """As the project around `folder` says; this computer where it says nothing or is no project.

    A file that cannot be read is refused by whoever needs more of it than this.
    """
    try:
        value = tomllib.loads(find(folder).read_text("utf-8")).get(_KEY)
    except (RabaskaError, OSError, ValueError, RecursionError):
        return HERE
    return value if isinstance(value, str) and value else HERE


def set_default_cluster(folder: File, name: str) -> File:
    """Write `on` into the rabaska.toml around `folder`; every other line stays as it is."""
    file = find(folder)
    text = file.read_bytes().decode("utf-8")
    written = document.parse(text, FILE)
    lines = text.split("\n")  # what else Python takes for the end of a line is none in TOML
    end = "\r" if lines[0].endswith("\r") else ""
    line, place = f'{_KEY} = "{name}"', written.lines.get((_KEY,))
    if place is not None:
        lines[place - 1] = f"{line}{_comment(lines[place - 1])}{end}"
    else:
        # Before the first key or table it is a key of no table.
        first = min(written.lines.values(), default=1) - 1
        lines.insert(first + 1 if _is_name(lines[first]) else first, f"{line}{end}")
    changed = "\n".join(lines)
    document.parse(changed, FILE)
    rewrite(file, changed)
    return file


def _comment(line: str) -> str:
    """What follows the value of a line that we wrote, or somebody wrote like us."""
    _, mark, rest = line.rpartition("#")
    return f"  #{rest.rstrip()}" if mark and rest.count('"') == 0 else ""


def _is_name(line: str) -> bool:
    """Whether it is `name = "…"`, all in one line: people read that first."""
    return bool(re.fullmatch(r"name\s*=\s*\"[^\"]*\"\s*(#.*)?", line.rstrip()))
