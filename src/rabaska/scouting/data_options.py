"""Which folder each data option is given, and what to do for a script that has none."""

import ast
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rabaska.domain.amounts import say_count, say_size
from rabaska.domain.projects import FILL_IN
from rabaska.scouting.folders import (
    ProjectFolder,
    Survey,
    is_named_for_data,
    may_be_read_unnamed,
)
from rabaska.scouting.script_options import Option
from rabaska.scouting.scripts import Script
from rabaska.scouting.source import Source, SourceLine, is_file
from rabaska.scouting.start_command import literal

_NOT_DATA = (".py", ".md", ".txt", ".yaml", ".yml", ".toml", ".pt", ".pth", ".ckpt")
_MOST_PREPARED = 3
_SPLIT = re.compile(r"(train|val|valid|validation|test|eval)(?=_|$)")


@dataclass(frozen=True)
class DataUse:
    """A folder, the option that is given it, or the fixed place where the script looks for it."""

    path: str  # relative to the project, or absolute; "" when none was found
    evidence: str
    option: Option | None = None
    inside: str = ""  # what the option is given below the folder: "/train"

    @property
    def is_default(self) -> bool:
        """Whether it is the folder that the option itself names."""
        return self.option is not None and self.evidence == str(self.option.place)


def for_options(
    taken: Sequence[Option], candidates: Sequence[ProjectFolder], project: Path, script: Script
) -> tuple[DataUse, ...]:
    """A folder for each data option: its own default if that exists, else what was found."""
    uses = [_by_default(option, project, script) for option in taken]
    settled = any(uses)
    chosen = []
    for option, use in zip(taken, uses, strict=True):
        # Once one option has its folder, another is left alone unless it must be given.
        wanted = option.required or not settled
        chosen.append(use or _by_looking(option, candidates[0] if candidates and wanted else None))
        settled = settled or not _SPLIT.match(option.name)
    return tuple(_share_parents(chosen))


def _by_default(option: Option, project: Path, script: Script) -> DataUse | None:
    """The folder that the option's default names, if it is there."""
    if not option.default:
        return None
    for base in (project, (project / script.name).parent):
        path = base / option.default
        if _is_folder(path) and path.resolve() != project.resolve():
            return DataUse(_within(path, project), str(option.place), option)
        if is_file(path) and path.parent.resolve() != project.resolve():
            inside = f"/{path.name}"
            return DataUse(_within(path.parent, project), str(option.place), option, inside)
    return None


def _within(path: Path, project: Path) -> str:
    resolved = path.resolve()
    if resolved.is_relative_to(project.resolve()):
        return resolved.relative_to(project.resolve()).as_posix()
    return str(resolved)


def _by_looking(option: Option, folder: ProjectFolder | None) -> DataUse:
    if folder is None:
        return DataUse(FILL_IN if option.required else "", str(option.place), option)
    evidence = f"{option.place}; {described(folder)}"
    split = _SPLIT.match(option.name)
    for child in folder.children:
        leaf = child.name.rpartition("/")[2]
        if split and leaf.lower().startswith(split[1][:3]):
            return DataUse(folder.name, evidence, option, f"/{leaf}")
    return DataUse(folder.name, evidence, option)


def _share_parents(uses: list[DataUse]) -> list[DataUse]:
    """data/train and data/val are one dataset, data, seen through two options."""
    parents = [use.path.rpartition("/")[0] for use in uses]
    shared = []
    for use, parent in zip(uses, parents, strict=True):
        together = {other.path for other in uses if other.path.rpartition("/")[0] == parent}
        if parent and len(together) > 1:
            leaf = use.path.rpartition("/")[2]
            use = replace(use, path=parent, inside=f"/{leaf}{use.inside}")
        shared.append(use)
    return shared


def at_fixed_places(candidates: Sequence[ProjectFolder], script: Script) -> tuple[DataUse, ...]:
    """For a script without a data option: the folders it names, or else the likeliest one."""
    named = []
    for folder in candidates:
        place = _mentioned(folder.name, script)
        if place:
            named.append(DataUse(folder.name, str(place)))
    if named:
        return tuple(named)
    likely = [folder for folder in candidates if may_be_read_unnamed(folder)]
    return tuple(DataUse(folder.name, described(folder)) for folder in likely[:1])


def prepared(project: Path, survey: Survey, script: Script) -> tuple[DataUse, ...]:
    """Folders such as `data/letters` with a file that the program names: `train.bin`.

    Beside it lies the script that made it, so that such a folder looks like code.
    """
    named = {
        node.value: source.place(node, repr(node.value))
        for source in script.sources
        for node in source.nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if re.fullmatch(r"[\w-]+\.\w{1,10}", node.value) and not node.value.endswith(_NOT_DATA)
    }
    uses = []
    for folder in survey.all():
        inside = (name for name in named if is_file(project / folder.name / name))
        first = next(inside, "") if "/" in folder.name and is_named_for_data(folder.name) else ""
        if first:
            uses.append(DataUse(folder.name, str(named[first])))
    return tuple(sorted(uses, key=lambda use: use.path)[:_MOST_PREPARED])


def outside(project: Path, sources: Sequence[Source]) -> tuple[DataUse, ...]:
    """Folders above the project that a program names, as in `MNIST("../data")`, and that are here.

    Nothing above the project travels with its code.
    """
    uses: dict[str, DataUse] = {}
    for source in sources:
        for node in source.nodes:
            value = node.value if isinstance(node, ast.Constant) else None
            if isinstance(value, str) and re.fullmatch(r"(\.\./)+\w[\w./ -]*", value):
                path = value.rstrip("/")
                if _holds_files(project / path) and not project.is_relative_to(project / path):
                    uses.setdefault(path, DataUse(path, str(source.place(node, repr(value)))))
    return tuple(uses.values())


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112  (see `is_file`)


def _holds_files(folder: Path) -> bool:
    try:
        return _is_folder(folder) and any(folder.iterdir())
    except OSError:
        return False


def _mentioned(name: str, script: Script) -> SourceLine | None:
    for source in script.sources:
        for node in source.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                value = node.value.removeprefix("./").rstrip("/")
                if (value and f"{name}/".startswith(f"{value}/")) or value.startswith(f"{name}/"):
                    return source.place(node, repr(node.value))
    return None


def described(folder: ProjectFolder) -> str:
    """`data/digits has 4,000 files, 3.2 MB, in 10 class folders`."""
    deepest = max([folder, *folder.children], key=lambda inner: inner.classes)
    classes = f", in {say_count(deepest.classes, 'class folder')}" if deepest.classes > 1 else ""
    files = say_count(folder.files, "file")
    return f"{folder.name} has {files}, {say_size(folder.size)}{classes}"


def lone_archives(survey: Survey) -> list[tuple[str, int]]:
    """Archives beside the code, too large to travel with it."""
    return [(name, size) for name, size in survey.top.archives if size > 10 * 10**6]


def dataset_names(uses: Sequence[DataUse]) -> dict[str, str]:
    """A short name of its own for each path."""
    names: dict[str, str] = {}
    for use in uses:
        if use.path and use.path not in names:
            leaf = "data" if use.path == FILL_IN else use.path.rstrip("/").rpartition("/")[2]
            plain = re.sub(r"[^a-z0-9_]+", "_", leaf.lower()).strip("_")[:30] or "data"
            taken = set(names.values())
            spare = (f"{plain}{number}" for number in range(2, 100))
            names[use.path] = plain if plain not in taken else next(spare)
    return names


def option_values(uses: Sequence[DataUse], named: dict[str, str]) -> dict[str, str]:
    """What each data option is given: `{data}`, or `{data.NAME}` when there are several."""
    values = {}
    for use in uses:
        if use.option and use.path:
            placeholder = "{data}" if len(named) == 1 else f"{{data.{named[use.path]}}}"
            values[use.option.name] = placeholder + literal(use.inside)
    return values


def variable(dataset: str) -> str:
    """The environment variable that holds the dataset's path in a job."""
    return "RABASKA_DATA_" + re.sub(r"[^A-Z0-9]", "_", dataset.upper())
