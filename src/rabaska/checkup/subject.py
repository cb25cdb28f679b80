"""What the checks look at: a project, the cluster it is meant for, and what was read of both."""

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from rabaska.domain.asking import meant_partition
from rabaska.domain.clusters import Cluster, Partition
from rabaska.domain.gpus import Gpu
from rabaska.domain.projects import Project
from rabaska.knowledge.gpus import gpus
from rabaska.scouting import contents, folders, packages, scripts
from rabaska.scouting.contents import Contents
from rabaska.scouting.folders import Folder
from rabaska.scouting.packages import Packages
from rabaska.scouting.scripts import Script
from rabaska.scouting.source import Source

_SHELL = ("*.sh", "*.bash", "*.sbatch", "*.slurm", "*.srm", "*.pbs", "*.job")
_LARGEST = 10**6  # bytes; no shell script is larger


@dataclass(frozen=True)
class Subject:
    project: Project
    cluster: Cluster
    script: Script | None = None  # the one that the command starts
    packages: Packages | None = None
    shell_scripts: Mapping[str, bytes] = field(default_factory=dict)
    contents: Mapping[str, Contents] = field(default_factory=dict)  # by dataset
    loose: tuple[Folder, ...] = ()  # folders of data that are no dataset of the project

    @property
    def sources(self) -> tuple[Source, ...]:
        return self.script.sources if self.script else ()

    @cached_property
    def partition(self) -> Partition | None:
        """The queue that is meant, as far as the profile knows it."""
        return meant_partition(self.project, self.cluster)

    @property
    def gpu(self) -> Gpu | None:
        """The GPU that the program would run on, where that is certain."""
        if not self.project.resources.gpus:
            return None
        kind = self.partition.kind if self.partition else self.project.resources.gpu_model
        return gpus().get(kind)

    @property
    def variables(self) -> Mapping[str, str]:
        return {**self.cluster.variables, **self.project.environment.variables}


def look(project: Project, cluster: Cluster, *, thorough: bool = True) -> Subject:
    """Read what the checks need; nothing is run. Without `thorough`, data is only counted."""
    found = scripts.find(project.folder)
    return Subject(
        project=project,
        cluster=cluster,
        script=started_by(project, found),
        packages=packages.find(project.folder),
        shell_scripts=_shell_scripts(project.folder),
        contents={
            each.name: contents.look(*each.paths, compare=thorough) for each in project.datasets
        },
        loose=_loose(project) if thorough else (),
    )


def started_by(project: Project, found: scripts.Scripts) -> Script | None:
    """The script that the command names, as a file or as a module."""
    words = {word.removeprefix("./") for word in project.command}
    words |= {word.replace(".", "/") + ".py" for word in project.command}
    return next((each for each in found.found if each.name in words), None)


def _shell_scripts(folder: Path) -> dict[str, bytes]:
    found = {}
    for pattern in _SHELL:
        for path in sorted([*folder.glob(pattern), *folder.glob(f"*/{pattern}")]):
            if path.is_file() and path.stat().st_size < _LARGEST:
                found[path.relative_to(folder).as_posix()] = path.read_bytes()
    return found


def _loose(project: Project) -> tuple[Folder, ...]:
    survey = folders.survey(project.folder)
    written = {*project.keep, "results"}
    candidates = folders.data_folders(survey, written=written)
    return tuple(each for each in candidates if not _travels_otherwise(each, project))


def _travels_otherwise(folder: Folder, project: Project) -> bool:
    """A dataset, part of one, or around one; or left behind by `exclude` or .gitignore."""
    path = project.folder / folder.name
    for dataset in project.datasets:
        if any(path.is_relative_to(own) or own.is_relative_to(path) for own in dataset.paths):
            return True
    ignored = [*project.exclude, *_ignored(project.folder)]
    return any(fnmatch.fnmatch(part, each) for part in folder.name.split("/") for each in ignored)


def _ignored(folder: Path) -> list[str]:
    try:
        lines = (folder / ".gitignore").read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    plain = [line.strip().strip("/").removesuffix("/*") for line in lines]
    return [line for line in plain if line and not line.startswith(("#", "!"))]
