"""The folders of a project: which hold data, how many files, how many bytes."""

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MOST_ENTRIES = 300_000
LONGEST = 10.0  # seconds
MANY_FILES = 100
MANY_BYTES = 20 * 10**6

SKIPPED = {
    "__pycache__",
    "node_modules",
    "venv",
    "env",
    "site-packages",
    "build",
    "dist",
    "htmlcov",
}
_WRITTEN = re.compile(
    r"(outputs?|results?|checkpoints?|ckpts?|runs?|logs?|lightning_logs|wandb|mlruns|figures?|"
    r"tb_logs|saved?(_models?)?|weights|models?|multirun|docs?|tests?|notebooks?|src|scripts?)$",
    re.IGNORECASE,
)
_SPLITS = re.compile(r"(train|training|val|valid|validation|test|testing|images?|raw|\d+)$", re.I)
_CODE = (".py", ".ipynb", ".sh", ".md", ".toml", ".yaml", ".yml", ".c", ".cpp", ".cu", ".h")
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip", ".tar.bz2", ".tar.xz", ".h5", ".hdf5", ".lmdb")
_DATA = re.compile(r"(data|datasets?|corpus|corpora)(/|$)", re.IGNORECASE)
_DATA_NAME = re.compile(r"(data|dataset|datasets|images?|imgs|corpus|corpora)$", re.IGNORECASE)


@dataclass
class ProjectFolder:
    """One folder with all that lies below it."""

    name: str  # relative to the project, with slashes; "" for the project itself
    files: int = 0
    size: int = 0  # bytes
    code: int = 0  # files of code among them
    own_files: int = 0
    children: list["ProjectFolder"] = field(default_factory=list)
    archives: list[tuple[str, int]] = field(default_factory=list)  # name, bytes

    @property
    def classes(self) -> int:
        """The folders right below that hold files only, as class folders do."""
        return sum(1 for child in self.children if child.own_files and not child.children)


@dataclass(frozen=True)
class Survey:
    """What a bounded walk saw; `complete` is false when it was cut short."""

    top: ProjectFolder
    complete: bool

    def all(self) -> Iterator[ProjectFolder]:
        waiting = [self.top]
        while waiting:
            folder = waiting.pop()
            yield folder
            waiting += folder.children


def survey(project: Path) -> Survey:
    """Walk the project without following links, for a bounded number of entries and seconds."""
    top = ProjectFolder("")
    waiting: list[tuple[Path, ProjectFolder, tuple[ProjectFolder, ...]]] = [(project, top, (top,))]
    entries = 0
    until = time.monotonic() + LONGEST
    while waiting:
        path, folder, above = waiting.pop(0)
        for entry in _entries(path):
            entries += 1
            if entry.is_dir(follow_symlinks=False):
                if _is_walked(entry):
                    child = ProjectFolder(f"{folder.name}/{entry.name}".lstrip("/"))
                    folder.children.append(child)
                    waiting.append((Path(entry.path), child, (*above, child)))
            else:
                _count(entry, folder, above)
        if entries > MOST_ENTRIES or time.monotonic() > until:
            break
    return Survey(top, complete=not waiting)


def _entries(path: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as listing:
            return sorted(listing, key=lambda entry: entry.name)
    except OSError:
        return []


def _is_walked(entry: os.DirEntry[str]) -> bool:
    hidden = entry.name.startswith(".") or entry.name in SKIPPED
    return not hidden and not Path(entry.path, "pyvenv.cfg").exists() and _can_be_written(entry)


def _can_be_written(entry: os.DirEntry[str]) -> bool:
    """Whether the name can stand in a TOML file at all."""
    try:
        entry.name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return entry.name.isprintable()


def _count(
    entry: os.DirEntry[str], folder: ProjectFolder, above: tuple[ProjectFolder, ...]
) -> None:
    try:
        size = entry.stat(follow_symlinks=False).st_size
    except OSError:
        return
    folder.own_files += 1
    if entry.name.lower().endswith(_ARCHIVES):
        folder.archives.append((entry.name, size))
    for folder in above:
        folder.files += 1
        folder.size += size
        folder.code += entry.name.endswith(_CODE)


def data_folders(survey: Survey, *, written: set[str]) -> list[ProjectFolder]:
    """The folders that look like datasets, best first; `written` are those the program writes."""
    datasets = []
    for child in survey.top.children:
        datasets += _datasets_in(child, written)
    return sorted(datasets, key=lambda folder: (-_likeness(folder), -folder.files, folder.name))


def _datasets_in(folder: ProjectFolder, written: set[str]) -> list[ProjectFolder]:
    name = folder.name.rpartition("/")[2]
    if folder.name in written or _WRITTEN.match(name) or not folder.files:
        return []
    if folder.files == 1 and not folder.size:  # .gitkeep
        return []
    if folder.code * 2 > folder.files or not _is_big(folder):
        return []
    inner = [child for child in folder.children if child.files]
    if not folder.own_files and _is_shelf(inner, name):
        return [dataset for child in inner for dataset in _datasets_in(child, written)] or [folder]
    return [folder]


def _is_shelf(inner: list[ProjectFolder], name: str) -> bool:
    """Whether a folder such as `data/` only holds datasets: each has folders of its own."""
    if not inner or any(_SPLITS.match(child.name.rpartition("/")[2]) for child in inner):
        return False
    nested = all(child.children for child in inner)
    return len(inner) == 1 or (nested and bool(_DATA_NAME.match(name)))


def is_named_for_data(path: str) -> bool:
    return bool(_DATA_NAME.match(path.split("/")[0]))


def _is_big(folder: ProjectFolder) -> bool:
    named = is_named_for_data(folder.name)
    return named or folder.files >= MANY_FILES or folder.size >= MANY_BYTES


def may_be_read_unnamed(folder: ProjectFolder) -> bool:
    """Whether a folder that no script names may be data all the same, not a README's pictures."""
    return folder.files >= MANY_FILES or folder.size >= MANY_BYTES or bool(_DATA.match(folder.name))


def _likeness(folder: ProjectFolder) -> int:
    named = is_named_for_data(folder.name)
    return 2 * named + (folder.files >= MANY_FILES) + (folder.size >= MANY_BYTES)
