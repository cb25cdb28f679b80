"""Settings as they hold on one cluster, options of the command line laid over them."""

import copy
import os
import re
import unicodedata
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any, TypeVar

from rabaska.domain.jobs import Resources
from rabaska.domain.projects import Chain, CheckpointSettings, Dataset, EnvironmentRecipe, Project
from rabaska.domain.secrets import parted
from rabaska.errors import SettingsError
from rabaska.settings.document import Path, nearest
from rabaska.settings.project_tables import (
    ChainTable,
    ClusterTable,
    DataTable,
    EnvironmentTable,
    ResourcesTable,
    Settings,
    Table,
)
from rabaska.settings.validation import inner_table, keys

HERE = "here"
# Files that list a project's packages, as pip reads them; the likeliest first.
LISTS = ("requirements.txt", "requirements-train.txt", "requirements/base.txt")
REQUESTED = ("queue", "walltime", "gpus", "cores", "memory", "nodes", "jobs")

SomeTable = TypeVar("SomeTable", bound=Table)


@dataclass(frozen=True)
class Resolved:
    """`settings` with the keys written for one cluster laid over the general ones."""

    settings: Settings
    cluster: str
    own: ClusterTable
    resources: ResourcesTable
    chain: ChainTable
    environment: EnvironmentTable

    def where(self, table: str, key: str) -> Path:
        """The path of a key: in the cluster's own table when it was written there."""
        own = getattr(self.own, table).model_fields_set
        return ("cluster", self.cluster, table, key) if key in own else (table, key)

    listed: str = ""  # the file in the project folder that lists its packages, where there is one

    @property
    def kind(self) -> str:
        """The kind of environment, guessed from what is there when it was left out."""
        if self.environment.kind and not self.kind_is_of_here:
            return self.environment.kind
        if self.environment.requirements:
            return "virtualenv"
        if self.environment.path:
            return "activate"
        return "virtualenv" if self.listed and self.cluster != HERE else "current"

    @property
    def kind_is_of_here(self) -> bool:
        """Whether `current`, written for all clusters, means the Python of this computer only.

        A cluster has no Python with the project's packages, unless modules bring them.
        """
        general = "kind" not in self.own.environment.model_fields_set
        table = self.environment
        has_list = bool(table.requirements or self.listed)
        meant = table.kind == "current" and general and has_list and not table.modules
        return meant and self.cluster != HERE

    @property
    def requirements(self) -> str:
        """The requirements file, relative to the project folder."""
        return self.environment.requirements or self.listed or LISTS[0]


def resolve(settings: Settings, cluster: str, folder: File | None = None) -> Resolved:
    own = settings.cluster.get(cluster, ClusterTable())
    return Resolved(
        settings=settings,
        cluster=cluster,
        own=own,
        resources=_laid_over(settings.resources, own.resources),
        chain=_laid_over(settings.chain, own.chain),
        environment=_laid_over(settings.environment, own.environment),
        listed=_listed(folder) if folder else "",
    )


def _listed(folder: File) -> str:
    return next((name for name in LISTS if os.path.isfile(folder / name)), "")  # noqa: PTH113


def requested_in(resolved: Resolved, given: AbstractSet[Path]) -> dict[str, str]:
    """What a job requests, by key, with the table that says so; "" is the command line."""
    found = {}
    for table in ("resources", "chain"):
        for key in getattr(resolved, table).model_fields_set:
            path = resolved.where(table, key)
            place = f"[{'.'.join(map(str, path[:-1]))}]"
            found[key] = "" if (table, key) in given else place
    if resolved.own.queue:
        of_cluster = ("cluster", resolved.cluster, "queue")
        found["queue"] = "" if of_cluster in given else f"[cluster.{resolved.cluster}]"
    return found


def _laid_over(table: SomeTable, own: SomeTable) -> SomeTable:
    return table.model_copy(update={key: getattr(own, key) for key in own.model_fields_set})


def project(resolved: Resolved, folder: File) -> Project:
    """The project in `folder`; its requirements file, where it has one, is read now."""
    settings, own = resolved.settings, resolved.own
    return Project(
        name=settings.name or name_for(folder),
        folder=folder,
        command=tuple(settings.command),
        resources=_resources(resolved),
        launch=settings.launch,
        resume=tuple(settings.resume),
        datasets=tuple(_dataset(name, data, folder) for name, data in settings.data.items()),
        environment=_recipe(resolved, folder),
        chain=_chain(resolved.chain),
        checkpoints=CheckpointSettings(patterns=tuple(settings.checkpoints.patterns)),
        keep=tuple(settings.output.keep),
        exclude=(*settings.code.exclude, *_packed_beside(resolved)),
        include=tuple(settings.code.include),
        progress=settings.progress.pattern,
        watch=settings.progress.watch,
        account=own.account,
        queue=own.queue,
        features=tuple(own.features),
        mail=own.mail,
        native=tuple(own.native),
    )


def _chain(table: ChainTable) -> Chain:
    """As asked; who says how many jobs there are gets no more."""
    jobs = table.jobs if "jobs" in table.model_fields_set else None
    at_most = jobs if table.at_most is None else max(table.at_most, table.jobs)
    return Chain(table.jobs, table.grace, table.signal, requeue=table.requeue, at_most=at_most)


def _resources(resolved: Resolved) -> Resources:
    """As asked; a program that is launched as several processes gets one for each GPU."""
    table = resolved.resources
    several = resolved.settings.launch != "program"
    tasks = table.tasks or (table.gpus if several else 1) or 1
    return Resources(**table.model_dump(exclude={"tasks"}), tasks=tasks)


def _packed_beside(resolved: Resolved) -> tuple[str, ...]:
    """A packed environment in the project folder: it travels, but not as code."""
    path = resolved.environment.path
    inside = resolved.kind == "packed" and not path.startswith(("/", "~", "$", ".."))
    return ("/" + path.removeprefix("./").rstrip("/"),) if inside else ()


def _recipe(resolved: Resolved, folder: File) -> EnvironmentRecipe:
    table = resolved.environment
    text = ""
    if resolved.kind == "virtualenv":
        text = (folder / resolved.requirements).read_text("utf-8", "replace")
    variables, hidden = parted(table.variables)
    travels = resolved.kind == "packed" and not table.path.startswith(("/", "~", "$"))
    return EnvironmentRecipe(
        kind=resolved.kind,
        path=table.path,
        here=_absolute(folder, table.path) if travels else None,
        requirements=text,
        listed_in=resolved.requirements if text else "",
        build=table.build or "",
        python=table.python,
        modules=tuple(table.modules),
        variables=variables,
        hidden=hidden,
        secrets=tuple(table.secrets),
        secrets_from=_absolute(folder, table.secrets_from) if table.secrets_from else None,
    )


def _dataset(name: str, data: DataTable, folder: File) -> Dataset:
    return Dataset(
        name,
        _absolute(folder, data.path),
        data.mode,
        data.follow_links,
        beside=tuple(_absolute(folder, path) for path in data.beside),
        samples=data.samples,
    )


def _absolute(folder: File, path: str) -> File:
    # Not Path.expanduser, which fails for a user it does not know; then the folder is missing.
    return File(os.path.normpath(folder / os.path.expanduser(path)))  # noqa: PTH111


def name_for(folder: File) -> str:
    """A project name made of the folder's: plain letters, and never empty."""
    plain = unicodedata.normalize("NFKD", folder.name).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("-._")[:60] or "project"


_PER_CLUSTER = [key for key in keys(ClusterTable) if key not in keys(Settings)]


def with_overrides(
    values: dict[str, Any], cluster: str, overrides: Mapping[str, object]
) -> tuple[dict[str, Any], frozenset[Path]]:
    """A copy of `values` with `overrides` in it, and the paths at which they stand."""
    changed = copy.deepcopy(values)
    given = set()
    for key, value in overrides.items():
        if value is None:
            continue
        path = _path(key, cluster)
        given.add(path)
        _put(changed, path, list(value) if isinstance(value, tuple) else value)
        # What was said of this cluster in the file must not win over the command line.
        _drop(changed, ("cluster", cluster, *path))
    return changed, frozenset(given)


def _path(key: str, cluster: str) -> Path:
    if key in _PER_CLUSTER:
        return ("cluster", cluster, key)
    settings = [*_PER_CLUSTER, *_dotted()]
    if key not in settings:
        raise SettingsError(f"unknown setting `{key}`", hint=nearest(key, settings))
    return tuple(key.split("."))


def _dotted() -> list[str]:
    """`name`, `command`, `resources.walltime` … : every key that has one place in the file."""
    settings = []
    for name, field in Settings.model_fields.items():
        table = inner_table(field.annotation)
        if table is None:
            settings.append(name)
        elif name not in ("data", "cluster"):
            settings += [f"{name}.{key}" for key in keys(table)]
    return settings


def _put(values: dict[str, Any], path: Path, value: object) -> None:
    """Where the file has a plain value for a table, it is left for the check to complain of."""
    for part in path[:-1]:
        values = values.setdefault(str(part), {})
        if not isinstance(values, dict):
            return
    values[str(path[-1])] = value


def _drop(values: dict[str, Any], path: Path) -> None:
    for part in path[:-1]:
        inner = values.get(str(part))
        if not isinstance(inner, dict):
            return
        values = inner
    values.pop(str(path[-1]), None)
