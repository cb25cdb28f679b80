"""What the checks look at: a project and its cluster."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from rabaska.domain.clusters import Cluster, Partition
from rabaska.domain.gpus import Gpu
from rabaska.domain.job_request import meant_partition
from rabaska.domain.projects import Project
from rabaska.errors import RabaskaError
from rabaska.knowledge.gpu_facts import gpus
from rabaska.node.record import plan
from rabaska.packing.code_files import code_names, not_code
from rabaska.remote.programs import own_files
from rabaska.scouting import (
    data_options,
    dataset_contents,
    folders,
    framework_options,
    requirements,
    scripts,
)
from rabaska.scouting.data_options import DataUse
from rabaska.scouting.dataset_contents import Contents
from rabaska.scouting.folders import ProjectFolder
from rabaska.scouting.option_roles import roles
from rabaska.scouting.requirements import Packages
from rabaska.scouting.resume_support import Resumption, resumption
from rabaska.scouting.scripts import Script
from rabaska.scouting.source import Source, is_file

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
    loose: tuple[ProjectFolder, ...] = ()  # folders of data that are no dataset of the project
    outside: tuple[DataUse, ...] = ()  # folders above the project that its program reads
    chosen: tuple[str, ...] = ()  # `torch==2.5.1+cpu`: what pip would take, where it was asked
    sent: frozenset[str] | None = None  # the names of the code's files; None: they are not known

    @property
    def sources(self) -> tuple[Source, ...]:
        return self.script.sources if self.script else ()

    @cached_property
    def partition(self) -> Partition | None:
        """The queue that is meant, as far as the profile knows it."""
        return meant_partition(self.project, self.cluster)

    @cached_property
    def resumption(self) -> Resumption:
        return resumption_of(self.project, self.script)

    @property
    def gpu(self) -> Gpu | None:
        """The GPU that the program would run on, where that is certain."""
        if not self.project.resources.gpus:
            return None
        kind = self.partition.kind if self.partition else self.project.resources.gpu_model
        return gpus().get(kind)

    @property
    def requirements_file(self) -> str:
        """The file that lists the packages, as a user knows it."""
        named, found = self.project.environment.listed_in, self.packages
        return named or (found.file if found else "requirements.txt")

    @property
    def variables(self) -> Mapping[str, str]:
        return {**self.cluster.variables, **self.project.environment.variables}


def read_subject(project: Project, cluster: Cluster, *, thorough: bool = True) -> Subject:
    """Read what the checks need; nothing is run. Without `thorough`, data is only counted."""
    script = started_by(project, scripts.find(project.folder))
    sent = sent_names(project)
    return Subject(
        project=project,
        cluster=cluster,
        script=script,
        packages=requirements.find(project.folder),
        shell_scripts=_shell_scripts(project.folder),
        contents={
            dataset.name: dataset_contents.read_contents(*dataset.paths, compare=thorough)
            for dataset in project.datasets
        },
        loose=_loose(project, sent) if thorough else (),
        outside=_outside(project, script),
        sent=sent,
    )


def sent_names(project: Project) -> frozenset[str] | None:
    """The files that travel as code; None where git cannot say, which `run` explains."""
    try:
        names = code_names(project.folder, exclude=not_code(project), listed=own_files)
        return frozenset(names)
    except (RabaskaError, OSError):
        return None


def started_by(project: Project, project_scripts: scripts.Scripts) -> Script | None:
    """The script that the command names, as a file or as a module."""
    words = {word.removeprefix("./") for word in project.command}
    words |= {word.replace(".", "/") + ".py" for word in project.command}
    return next((script for script in project_scripts.found if script.name in words), None)


def resumption_of(project: Project, script: Script | None) -> Resumption:
    """How the project's command resumes from a checkpoint, as its source shows."""
    words = (*project.command, *project.resume)
    if _gives_checkpoint_by_variable(words, project.folder):
        return Resumption(plan.VARIABLE)
    if script is None:
        return Resumption(plan.UNREAD)
    options = framework_options.all_options(script, project.folder)
    return resumption(script, options, roles(options, scripts.usage(script)), words)


def _gives_checkpoint_by_variable(words: Sequence[str], folder: Path) -> bool:
    """Whether the command names one of our variables for that, or starts a shell script.

    One that starts another script counts if any of the project's names the variable.
    """
    texts = _shell_scripts(folder)
    starts = any(name.rpartition("/")[2] in word for name in texts for word in words)
    told = [word.encode(errors="replace") for word in words] + [*texts.values()] * starts
    return any(name in text for name in (b"RABASKA_CHECKPOINT", b"RABASKA_RESUME") for text in told)


def _shell_scripts(folder: Path) -> dict[str, bytes]:
    contents = {}
    for pattern in _SHELL:
        for path in sorted([*folder.glob(pattern), *folder.glob(f"*/{pattern}")]):
            with suppress(OSError):
                if is_file(path) and path.stat().st_size < _LARGEST:
                    contents[path.relative_to(folder).as_posix()] = path.read_bytes()
    return contents


def _loose(project: Project, sent: frozenset[str] | None) -> tuple[ProjectFolder, ...]:
    survey = folders.survey(project.folder)
    written = {*project.keep, "results"}
    candidates = folders.data_folders(survey, written=written)
    return tuple(
        folder
        for folder in candidates
        if not _is_around_data(folder, project)
        and (sent is None or any(name.startswith(f"{folder.name}/") for name in sent))
    )


def _outside(project: Project, script: Script | None) -> tuple[DataUse, ...]:
    """Those that are no dataset, and that no option replaces."""
    named = data_options.outside(project.folder, script.sources) if script else ()
    carried = [own.resolve() for dataset in project.datasets for own in dataset.paths]
    given = {
        option.default
        for option in (script.options if script else ())
        if any(word.startswith(option.spelled) for word in project.command)
    }
    return tuple(
        use
        for use in named
        if (project.folder / use.path).resolve() not in carried and use.path not in given
    )


def _is_around_data(folder: ProjectFolder, project: Project) -> bool:
    """A dataset, part of one, or around one."""
    path = project.folder / folder.name
    return any(
        path.is_relative_to(own) or own.is_relative_to(path)
        for dataset in project.datasets
        for own in dataset.paths
    )


def leave_out(project: Project, name: str) -> str:
    """The line by which a folder of the project is not sent as code."""
    if project.exclude:
        return f'add `"{name}"` to `exclude` under [code]'
    return f'write `exclude = ["{name}"]` under [code]'


def own_line(subject: Subject, table: str, key: str, value: str | int) -> str:
    """A line and its table, that of the cluster: there it wins over all others."""
    name = f"cluster.{subject.cluster.name}"
    line = f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}"
    return f"`{line}` under [{name}.{table}]" if table else f"`{line}` under [{name}]"


def virtualenv_advice(subject: Subject, file: str) -> str:
    """The lines that work whatever stands in [environment], where `kind` would win."""
    return (
        f'write `kind = "virtualenv"` and `requirements = "{file}"` under '
        f"[cluster.{subject.cluster.name}.environment]"
    )
