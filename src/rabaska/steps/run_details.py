"""What is asked of one run when somebody looks closer: its log, its checkpoints, its code."""

import difflib
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rabaska.domain import untrusted
from rabaska.domain.runs import Checkpoint
from rabaska.errors import RabaskaError
from rabaska.node import files
from rabaska.packing.code_snapshot import contents, is_as_named
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.records.series_files import copy_folder
from rabaska.remote.place import quoted, surely
from rabaska.steps.connect import connect_for
from rabaska.steps.run_identity import in_folder, refuse_other

LOG_BYTES = 200_000  # of the end of a log: what a page shows
LOG_LINES = 500  # that hold what was searched for
SEARCHED = 1 << 30  # bytes of the end of a log: more would keep a login node busy for long
_SIZES = "== sizes"
_LONGEST_LINE = 4000  # characters
_CHECKPOINT = {"path": str, "size": int, "written": (int, float), "problem": str}
_CHANGED_LINES = 2000  # of a difference that are shown


@dataclass(frozen=True)
class LogPage:
    """A part of what a job printed."""

    job: int
    jobs: tuple[int, ...]  # that have a log
    lines: tuple[tuple[int | None, str], ...]  # with their numbers, of those that were found
    size: int  # bytes of all of it
    is_cut: bool  # whether there is more
    seen: float = 0.0
    trouble: str = ""  # why it is not newer


@dataclass(frozen=True)
class ListedCheckpoint:
    checkpoint: Checkpoint
    problem: str  # why it is not valid; "": it is, as far as a quick check tells


@dataclass(frozen=True)
class Checkpoints:
    found: tuple[ListedCheckpoint, ...]
    seen: float = 0.0
    trouble: str = ""


@dataclass(frozen=True)
class FileChange:
    """What became of a file between two snapshots, as lines of a unified difference."""

    name: str
    what: str  # new, gone or changed
    lines: tuple[str, ...]


def log_page(record: RunRecord, home: Home, *, job: int = 0, search: str = "") -> LogPage:
    """The end of the log of a job, or the last lines that contain a text; 0: the newest job."""

    def asked() -> dict[str, Any]:
        cluster = connect_for(record, home)
        outcome = surely(
            lambda: cluster.place.run(in_folder(record, _log_script(record.path, job, search)))
        )
        refuse_other(record, outcome.exit_code)
        return _read_log(outcome.output, job, found=bool(search))

    told, seen, trouble = _asked_or_kept(record, home, "" if search else f"log-{job}", asked)
    lines = tuple((number, text) for number, text in told.get("lines", ()))
    return LogPage(
        told.get("job", job), tuple(told.get("jobs", ())), lines, told.get("size", 0),
        told.get("cut", False), seen, trouble,
    )  # fmt: skip


def _log_script(path: str, job: int, search: str) -> str:
    wanted = f"logs/job-{job:03d}.log" if job else '"$(ls logs/job-*.log | sort -V | tail -n 1)"'
    if search:
        # Bytes that are no text must not end the search (-a); of gigabytes the end is searched,
        # where the numbers of lines are not known.
        grep = f"LC_ALL=C grep -a -i -F -e {quoted([search])}"
        whole = f'{grep} -n -- "$log"'
        end = f"tail -c {SEARCHED} -- \"$log\" | tr -d '\\000' | {grep} | sed 's/^/:/'"
        found = f'if [ "$(wc -c < "$log")" -gt {SEARCHED} ]; then {end}; else {whole}; fi'
        cut = f"LC_ALL=C cut -c -{_LONGEST_LINE}"
        shown = f"log={wanted}\n{{ {found}; }} | {cut} | tail -n {LOG_LINES + 1}"
    else:
        shown = f"tail -c {LOG_BYTES} {wanted}"
    sizes = 'for one in logs/job-*.log; do [ -f "$one" ] && wc -c "$one"; done'
    return f"cd {quoted([path])} || exit 1\n{sizes}\necho '{_SIZES}'\n{shown} 2>/dev/null; true"


def _read_log(output: str, job: int, *, found: bool) -> dict[str, Any]:
    head, _, text = output.partition(f"{_SIZES}\n")
    sizes = {
        int(match[2]): int(match[1]) for match in re.finditer(r"(\d+) logs/job-0*(\d+)\.log", head)
    }
    chosen = job or max(sizes, default=0)
    size = sizes.get(chosen, 0)
    lines: list[tuple[int | None, str]] = []
    for line in text.split("\n")[: -1 if text.endswith("\n") or not text else None]:
        number, colon, rest = line.partition(":") if found else ("", "", line)
        shown = rest if colon or not found else line
        drawn = shown.rstrip("\r").rpartition("\r")[2][:_LONGEST_LINE]
        lines.append((int(number) if number.isdigit() else None, drawn))
    is_cut = len(lines) > LOG_LINES if found else size > LOG_BYTES
    # The first line of a part is seldom all of it.
    return {"job": chosen, "jobs": sorted(sizes), "lines": lines[1:] if is_cut else lines,
            "size": size, "cut": is_cut}  # fmt: skip


def checkpoints(record: RunRecord, home: Home) -> Checkpoints:
    """Every checkpoint of the run; the first is the one that a job would try first."""

    def asked() -> dict[str, Any]:
        cluster = connect_for(record, home)
        script = in_folder(record, quoted([*cluster.node, "checkpoints", record.path]))
        outcome = surely(lambda: cluster.run(script))
        refuse_other(record, outcome.exit_code)
        lines = untrusted.read_lines(outcome.output, _CHECKPOINT)
        return {"found": lines}

    told, seen, trouble = _asked_or_kept(record, home, "checkpoints", asked)
    found = tuple(
        ListedCheckpoint(Checkpoint(one["path"], one["size"], one["written"]), one["problem"])
        for one in told.get("found", ())
    )
    return Checkpoints(found, seen, trouble)


def _asked_or_kept(
    record: RunRecord, home: Home, kept: str, asked: Callable[[], dict[str, Any]]
) -> tuple[dict[str, Any], float, str]:
    """What the cluster tells now, or told last, when that was, and why it is not newer."""
    file = copy_folder(home, record) / f"{kept}.json"
    try:
        told = asked()
    except (RabaskaError, untrusted.Unexpected) as problem:
        why = str(problem).partition("\n")[0]
        with suppress(OSError, ValueError):
            if kept and (old := files.read_json(str(file))):
                return old, file.stat().st_mtime, why
        return {}, 0.0, why
    if kept:
        with suppress(OSError):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            files.write_whole(str(file), json.dumps(told))
    return told, time.time(), ""


def code_changes(before: str, after: str, home: Home) -> list[FileChange] | None:
    """What differs between two snapshots of code; None where one is not on this computer."""
    archives = [home.store / "code" / f"{digest}.tar" for digest in (before, after)]
    if not all(re.fullmatch("[0-9a-z]+", digest) for digest in (before, after)):
        return None
    if not all(is_as_named(archive) for archive in archives):
        return None
    old, new = (contents(archive) for archive in archives)
    return [
        _change(name, old.get(name), new.get(name))
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]


def _change(name: str, old: bytes | None, new: bytes | None) -> FileChange:
    what = "new" if old is None else "gone" if new is None else "changed"
    return FileChange(name, what, tuple(_difference(old or b"", new or b"")))


def _difference(old: bytes, new: bytes) -> Iterator[str]:
    if b"\0" in old[:8000] or b"\0" in new[:8000]:
        yield "binary"
        return
    before, after = (content.decode(errors="replace").splitlines() for content in (old, new))
    lines = difflib.unified_diff(before, after, lineterm="", n=3)
    for number, line in enumerate(lines):
        if number == _CHANGED_LINES:
            yield "…"
            return
        if not line.startswith(("---", "+++")):
            yield line
