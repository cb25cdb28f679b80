"""`rabaska pack` by the quick path: a small dataset is packed sooner than this program is imported.

Checking rabaska.toml takes more processor time than packing 10,000 small files, nearly all of it
for tables that say nothing about data. So the datasets are taken from what the last check of the
very same file noted. Where there is no such note, the file is read plainly and packing begins,
while another process checks it as every other command does; what that process finds decides, and
nothing is reported before. Whatever is not plain here is left to the ordinary path.
"""

import hashlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rabaska.errors import RabaskaError
from rabaska.node import files
from rabaska.node.version import __version__
from rabaska.records.home import Home, home

if TYPE_CHECKING:
    from rabaska.domain.projects import Dataset

_FILE = "rabaska.toml"
_PLAIN = {"path": str, "follow_links": bool, "samples": bool, "as": str}


@dataclass(frozen=True)
class PlainDataset:
    """What packing needs to know of `domain.projects.Dataset`."""

    name: str
    path: str
    follow_links: bool
    samples: bool

    @property
    def paths(self) -> tuple[Path, ...]:
        return (Path(self.path),)

    @property
    def largest_side(self) -> int:
        return 0


class _Refused(Exception):
    """The ordinary path has to say what is wrong."""


def pack(*, quiet: bool) -> int | None:
    """Pack all datasets of the project in this folder; None if that is for the ordinary path."""
    place = home()
    content = _content()
    if content is None:
        return None
    note = _Note(place, content)
    datasets = note.datasets()
    try:
        if datasets is not None:
            _pack(datasets, place, _Told(quiet=quiet))
            return 0
        datasets = _plain(content)
        if datasets is None:
            return None
        with _check(note) as check:
            told = _Told(quiet=quiet, check=check)
            try:
                _pack(datasets, place, told)
            except RabaskaError:
                if check.verdict() == datasets:
                    raise
            if check.verdict() != datasets:
                return None
        told.tell()
        return 0
    except _Refused:
        return None


def _content() -> bytes | None:
    """The rabaska.toml of this very folder, if it is our own."""
    try:
        path = Path(_FILE)
        return path.read_bytes() if path.lstat().st_uid == os.geteuid() else None
    except OSError:
        return None


class _Note:
    """The datasets of a project, as a check of the very same file found them."""

    def __init__(self, place: Home, content: bytes) -> None:
        where = hashlib.sha256(bytes(Path.cwd())).hexdigest()
        self._path = place.checked / f"datasets-{where[:16]}.json"
        self._made_from = hashlib.sha256(__version__.encode() + content).hexdigest()

    def datasets(self) -> list[PlainDataset] | None:
        try:
            record = json.loads(self._path.read_bytes())
            if record["made_from"] != self._made_from:
                return None
            datasets = [PlainDataset(**fields) for fields in record["datasets"]]
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return datasets if all(map(_is_folder, datasets)) else None

    def keep(self, datasets: list[PlainDataset]) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        record = {"made_from": self._made_from, "datasets": [asdict(one) for one in datasets]}
        files.write_json(str(self._path), record)


def _is_folder(dataset: PlainDataset) -> bool:
    return os.access(dataset.path, os.R_OK | os.X_OK) and Path(dataset.path).is_dir()


def _plain(content: bytes) -> list[PlainDataset] | None:
    """The datasets as the file has them, if each is one folder and nothing else is said of them."""
    import tomllib

    try:
        values = tomllib.loads(content.decode())
    except ValueError:
        return None
    tables, clusters = values.get("data", {}), values.get("cluster", {})
    if not isinstance(tables, dict) or not isinstance(clusters, dict) or "here" in clusters:
        return None
    datasets = []
    for name, table in tables.items():
        if not isinstance(table, dict) or "path" not in table or not _is_plain(table):
            return None
        # As `settings.resolution` has it: a user who is not known is no reason to fail.
        path = os.path.normpath(Path.cwd() / os.path.expanduser(table["path"]))  # noqa: PTH111
        follow, samples = table.get("follow_links", False), table.get("samples", False)
        datasets.append(PlainDataset(name, path, follow, samples))
    return datasets if datasets and all(map(_is_folder, datasets)) else None


def _is_plain(table: dict[str, Any]) -> bool:
    return all(type(value) is _PLAIN.get(key) for key, value in table.items())


class _Check:
    """Another process, which reads the file as every other command does and notes what it found."""

    def __init__(self, note: _Note) -> None:
        self._note = note
        self._status: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if self._pid == 0:
            self._run()

    def _run(self) -> None:
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            self._note.keep(_checked())
            os._exit(0)
        except BaseException:
            os._exit(1)  # the ordinary path finds the same, and says it

    def has_failed(self) -> bool:
        if self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            self._status = status if pid else None
        return bool(self._status)

    def verdict(self) -> list[PlainDataset] | None:
        self.end()
        return None if self._status else self._note.datasets()

    def end(self) -> None:
        if self._status is None:
            self._status = os.waitpid(self._pid, 0)[1]


def _checked() -> list[PlainDataset]:
    from rabaska.settings.project_file import check_data, load

    project = load(Path.cwd())
    check_data(project)
    datasets = [dataset for dataset in project.datasets if dataset.paths]
    if not all(map(_is_one_folder, datasets)):
        raise _Refused
    return [
        PlainDataset(each.name, str(each.path), each.follow_links, each.samples)
        for each in datasets
    ]


def _is_one_folder(dataset: "Dataset") -> bool:
    """Whether it is packed as it is, from one folder."""
    one_folder = len(dataset.paths) == 1 and not dataset.paths[0].is_file()
    return one_folder and not dataset.largest_side


@contextmanager
def _check(note: _Note) -> Iterator[_Check]:
    check = _Check(note)
    try:
        yield check
    finally:
        check.end()


class _Told:
    """What is reported: at once, or, while the file is being checked, when that is over."""

    def __init__(self, *, quiet: bool, check: _Check | None = None) -> None:
        from rabaska.cli import terminal

        self._steps = terminal.Steps(quiet=quiet)
        self._check = check
        self._later: list[tuple[bool, str]] = []

    def step(self, text: str) -> None:
        self._say(warning=False, text=text)

    def warn(self, text: str) -> None:
        self._say(warning=True, text=text)

    def moved(
        self, what: str, done: int, total: int, *, unit: str = "bytes", aside: str = ""
    ) -> None:
        if self._check is not None and self._check.has_failed():
            raise _Refused
        self._steps.moved(what, done, total, unit=unit, aside=aside)

    def tell(self) -> None:
        self._check = None
        for warning, text in self._later:
            self._say(warning=warning, text=text)

    def clear(self) -> None:
        self._steps.clear()

    def _say(self, *, warning: bool, text: str) -> None:
        if self._check is not None:
            self._later.append((warning, text))
        elif warning:
            self._steps.warn(text)
        else:
            self._steps.step(text)


def _pack(datasets: list[PlainDataset], place: Home, told: _Told) -> None:
    from rabaska.steps.pack_dataset import pack_all

    try:
        pack_all(datasets, place, told)
    finally:
        told.clear()
