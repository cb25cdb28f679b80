"""Checks of the tables of rabaska.toml: one for a misspelt cluster counts for none."""

import difflib
import re
from collections.abc import Iterator

from rabaska.checkup.finding import Finding
from rabaska.checkup.subject import Subject
from rabaska.settings.profile_files import names


def checks(subject: Subject) -> Iterator[Finding]:
    tables, name = subject.project.cluster_tables, subject.cluster.name
    if name in tables:
        return
    unknown = [table for table in tables if table not in names() and not _is_another(table, name)]
    for table in difflib.get_close_matches(name, unknown, n=1, cutoff=0.6):
        yield Finding(
            "cluster.table",
            f"[cluster.{table}] does not count for {name}",
            f"[cluster.{table}]",
            f"there is no table [cluster.{name}], and the names differ",
            f"write `[cluster.{name}]` in place of `[cluster.{table}]`",
            serious=False,
            likely=True,
        )


def _is_another(table: str, name: str) -> bool:
    """`lab2` and `lab-gpu` are no misspelt `lab`."""
    short, long = sorted((table.lower(), name.lower()), key=len)
    rest = long.removeprefix(short)
    differs = re.sub(r"\D", "", short) != re.sub(r"\D", "", long)
    return differs or (rest != long and bool(re.search(r"[-_.]", rest)))
