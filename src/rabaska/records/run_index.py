"""The index of runs: one small file each, newest last."""

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from rabaska.errors import NoSuchRun
from rabaska.node import files

# A name becomes the name of files and folders here, and may have been told by a cluster.
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
ID = re.compile(r"[0-9a-z]{0,64}")
_SHORTEST_ID = 8  # digits of an id that somebody may type instead of a name


@dataclass(frozen=True)
class RunRecord:
    """Where a run is, so that a later command can find it."""

    name: str
    cluster: str
    path: str  # the run folder, on its cluster
    project: str  # the project's folder, on this computer; "" where nobody knows
    created: float  # seconds since 1970
    job_id: str = ""  # the newest submission, as the cluster named it
    id: str = ""  # as in run.json; "" for runs that were made before they had one
    number: int = 0  # counted here, for clocks are set back; 0: not submitted from here
    called: str = ""  # the project's name; its folder may be moved
    note: str | None = None  # what its user says of it; None: what run.json has
    tags: tuple[str, ...] | None = None
    work: str = ""  # a digest of code, command and data: what is the same is done twice

    def __post_init__(self) -> None:
        """ValueError for what cannot be a run: no path is ever made of such a name."""
        if not NAME.fullmatch(self.name) or not ID.fullmatch(self.id):
            raise ValueError(f"no run is called {self.name!r}, with the id {self.id!r}")

    def is_same(self, other: "RunRecord") -> bool:
        """Whether both tell of one run."""
        mine, theirs = (record.id or (record.cluster, record.path) for record in (self, other))
        return mine == theirs


_FIELDS = {field.name for field in fields(RunRecord)}


def enter(folder: Path, record: RunRecord) -> RunRecord | None:
    """Remember a new run, as the newest one; None when another one has its name."""
    with _alone(folder):
        records = remembered(folder)
        if (
            any(other.name == record.name for other in records)
            or _file(folder, record.name).exists()
        ):
            return None
        numbered = replace(record, number=1 + max((other.number for other in records), default=0))
        _write(_file(folder, record.name), numbered)
        return numbered


def adopt(folder: Path, record: RunRecord) -> RunRecord:
    """Remember a run that was found on a cluster; the record that is here already, if one is."""
    with _alone(folder):
        for existing in remembered(folder):
            if existing.is_same(record):
                return existing
        file = _file(folder, record.name)
        taken = _read(str(file)) is not None  # else it is damaged, and of no use to anybody
        _write(_file(folder, f"{record.name}.{digest(record)}") if taken else file, record)
        return record


def remember(folder: Path, record: RunRecord) -> None:
    """Write what is known now of a run that is remembered; one that was forgotten stays so."""
    with _alone(folder):
        file = _file_of(folder, record)
        if file is not None:
            _write(file, record)


def forget(folder: Path, record: RunRecord) -> None:
    with _alone(folder):
        file = _file_of(folder, record)
        if file is not None:
            file.unlink()


def remembered(folder: Path) -> list[RunRecord]:
    """Every run this computer knows, oldest first; a damaged record is passed over.

    Those that were submitted from here come last, as they were counted: commands without a
    name mean the last of them, not what somebody submitted from another computer.
    """
    # Names, not paths, which take twice as long: there may be hundreds.
    names = os.listdir(folder) if folder.is_dir() else []  # noqa: PTH208
    records = (_read(f"{folder}/{name}") for name in names if name.endswith(".json"))
    return sorted(
        (record for record in records if record),
        key=lambda record: (record.number, record.created, record.name, record.cluster),
    )


def find(
    folder: Path,
    name: str = "",
    *,
    project: Path | None = None,
    called: Callable[[Path], str] | None = None,
    on: str = "",
) -> RunRecord:
    """The run called `name`, or whose name begins so; without a name the newest one.

    The newest run is looked for in `project` first: that is the one a person standing
    there means. One that was moved there is known by what it is `called`. With `on`, only runs on
    that cluster are meant.
    """
    records = [record for record in remembered(folder) if on in ("", record.cluster)]
    if not records:
        raise NoSuchRun(
            f"no known runs on {on}" if on else "no runs yet",
            hint="`rabaska run` in a project folder starts one; `rabaska status --all --on "
            f"{on or 'CLUSTER'}` finds runs on a cluster",
        )
    if not name:
        return (_of_project(records, project, called) or records)[-1]
    matching = meant(records, name)
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise several(name, matching)
    raise NoSuchRun(
        f"no run is called `{name}`",
        why=f"this computer knows {len(records)}, the newest is {records[-1].name}",
        hint="`rabaska status --all` lists them, and with `--on CLUSTER` also those that were "
        "submitted from elsewhere",
    )


def _of_project(
    records: Sequence[RunRecord], project: Path | None, called: Callable[[Path], str] | None
) -> list[RunRecord]:
    of_it = [record for record in records if project and record.project == str(project)]
    if of_it or project is None or called is None:
        return of_it
    moved = [record for record in records if record.called and not Path(record.project).is_dir()]
    name = called(project) if moved else ""
    return [record for record in moved if record.called == name]


def meant(records: Sequence[RunRecord], name: str) -> list[RunRecord]:
    """The runs that are called `name`; else those whose name, or whose id, begins so."""
    exact = [record for record in records if record.name == name]
    return exact or [
        record
        for record in records
        if record.name.startswith(name)
        or (len(name) >= _SHORTEST_ID and record.id.startswith(name))
    ]


def several(name: str, matching: Sequence[RunRecord]) -> NoSuchRun:
    if len({record.name for record in matching}) == len(matching):
        names = ", ".join(record.name for record in matching[-5:])
        return NoSuchRun(f"several runs begin with `{name}`: {names}", hint="type more of the name")
    alike = ", ".join(
        f"{record.name} on {record.cluster} (id {record.id[:12]})" for record in matching
    )
    return NoSuchRun(
        f"several runs are called `{name}`: {alike}",
        hint="add `--on CLUSTER`, or use the id instead of the name",
    )


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def _file_of(folder: Path, record: RunRecord) -> Path | None:
    """Where a run is remembered."""
    for name in (record.name, f"{record.name}.{digest(record)}"):
        existing = _read(str(_file(folder, name)))
        if existing is not None and existing.is_same(record):
            return _file(folder, name)
    return None


def digest(record: RunRecord) -> str:
    """What tells a run from another one of its name."""
    import zlib

    return record.id[:16] or f"{zlib.crc32(f'{record.cluster} {record.path}'.encode()):08x}"


def _write(file: Path, record: RunRecord) -> None:
    files.write_json(str(file), asdict(record))


def _read(path: str) -> RunRecord | None:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            content = json.load(file)
        # A later version may say more.
        known = {name: content[name] for name in _FIELDS & content.keys()}
        tags = known.pop("tags", None)
        return RunRecord(**known, tags=None if tags is None else tuple(map(str, tags)))
    except (OSError, ValueError, TypeError, AttributeError):
        return None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """No other command of this computer changes the index meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        # Some network file systems know no locks; two commands at once are rare enough there.
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
