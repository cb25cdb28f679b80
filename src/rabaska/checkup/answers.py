"""Checks of what a cluster itself said when it was asked: accounts, room, groups, purges."""

import re
from collections.abc import Iterator, Mapping

from rabaska.checkup.findings import Finding
from rabaska.checkup.subject import Subject
from rabaska.domain.amounts import say_size
from rabaska.knowledge.failures import explain

_MARK = "== "
_ALMOST_FULL = 0.95


def question(store: str, *, scheduler: str, account_form: str, quota: str) -> str:
    """One script that asks everything; each answer stands below a line with its name."""
    parts = {
        "store": f"f={store}; while [ ! -e \"$f\" ]; do f=$(dirname \"$f\"); done; echo \"$f\"; "
        '[ -w "$f" ] && echo writable',
        "bytes": 'df -Pk "$f" | tail -n 1',
        "files": 'df -Pi "$f" | tail -n 1',
        "group": 'stat -c %G "$f"; id -gn',
        "purge": 'cat "/scratch/to_delete/$USER" 2>/dev/null | head -n 5',
    }  # fmt: skip
    if scheduler == "slurm" and account_form:
        parts["accounts"] = 'sacctmgr -nP show assoc user="$USER" format=Account'
    if quota:
        parts["quota"] = quota
    return "\n".join(f"echo '{_MARK}{name}'; {command}" for name, command in parts.items())


def answers(text: str) -> dict[str, str]:
    """What stands below each name; banners before the first are left out."""
    found: dict[str, str] = {}
    for part in re.split(rf"^{_MARK}", text, flags=re.MULTILINE)[1:]:
        name, _, said = part.partition("\n")
        found[name.strip()] = said.strip()
    return found


def checks(subject: Subject, said: Mapping[str, str]) -> Iterator[Finding]:
    yield from _accounts(subject, said.get("accounts", "").split())
    yield from _store(subject, said.get("store", ""))
    yield from _room(subject, said)
    yield from _group(subject, said.get("group", "").split())
    yield from _purge(subject, said.get("purge", ""))
    yield from _quota(subject, said.get("quota", ""))


def _accounts(subject: Subject, theirs: list[str]) -> Iterator[Finding]:
    # The Alliance keeps each account twice, as def-prof_cpu and def-prof_gpu.
    plain = {re.sub(r"_(cpu|gpu)$", "", each) for each in theirs}
    account = subject.project.account
    if account and theirs and account not in plain | set(theirs):
        yield Finding(
            "cluster.account", f"you have no account `{account}` on {subject.cluster.name}",
            f"account for {subject.cluster.name}", "jobs of other accounts are refused",
            f"yours are {', '.join(sorted(plain))}",
        )  # fmt: skip


def _store(subject: Subject, said: str) -> Iterator[Finding]:
    if said and "writable" not in said.split():
        yield Finding(
            "cluster.store", f"nothing can be written below {said.split()[0]}",
            "[storage] store of the profile", "packs, runs and environments are kept there",
            "name another folder in the profile, or ask the site",
        )  # fmt: skip


def _room(subject: Subject, said: Mapping[str, str]) -> Iterator[Finding]:
    free = _column(said.get("bytes", ""), 3) * 1024
    wanted = sum(each.size for each in subject.contents.values())
    if free and wanted > free:
        yield Finding(
            "cluster.room", f"the data ({say_size(wanted)}) does not fit there", "[data]",
            f"{say_size(free)} are free where packs are kept", "make room: `rabaska clean`",
        )  # fmt: skip
    used, left = _column(said.get("files", ""), 2), _column(said.get("files", ""), 3)
    if used and used > _ALMOST_FULL * (used + left):
        yield Finding(
            "cluster.files", f"only {left:,} more files may be made there", "store",
            f"{used:,} are there already", "delete or pack small files; rabaska makes few",
            serious=left < 1000,
        )  # fmt: skip


def _column(line: str, number: int) -> int:
    """A number of df's table; 0 where it has none, as for files on some file systems."""
    cells = line.split()
    return int(cells[number]) if len(cells) > number and cells[number].isdigit() else 0


def _group(subject: Subject, groups: list[str]) -> Iterator[Finding]:
    shared = [each for each in subject.cluster.storage if each.scope == "group" and each.path]
    inside = any(subject.cluster.store.startswith(each.path) for each in shared)
    if inside and len(groups) == 2 and groups[0] == groups[1]:
        yield Finding(
            "cluster.group", f"the store belongs to your own group, {groups[0]}", "store",
            "the quota of shared space follows the group, and your own is nearly nothing",
            "`chgrp` it to the project's group, and `chmod g+s`", serious=False,
        )  # fmt: skip


def _purge(subject: Subject, listed: str) -> Iterator[Finding]:
    if listed:
        yield Finding(
            "cluster.purge", f"{subject.cluster.name} is about to delete files of yours",
            "/scratch/to_delete", f"the list begins with {listed.splitlines()[0]}",
            "fetch what you need; packs can be sent again", serious=False,
        )  # fmt: skip


def _quota(subject: Subject, said: str) -> Iterator[Finding]:
    known = [each for each in explain(said, stage="data") if each.id == "quota"] if said else []
    for each in known:
        yield Finding(
            "cluster.quota", each.meaning, f"`{subject.cluster.quota}`", each.line, each.fix
        )
