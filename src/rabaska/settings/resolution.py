"""Settings as they hold on one cluster, and the project they make."""

import glob
import os
import re
import unicodedata
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path as File
from typing import TypeVar

from rabaska.domain.jobs import Resources
from rabaska.domain.package_lists import PYPROJECT, USUAL, as_requirements
from rabaska.domain.projects import (
    IN_PLACE,
    Chain,
    CheckpointSettings,
    Dataset,
    EnvironmentRecipe,
    Project,
)
from rabaska.domain.search import Search
from rabaska.domain.secrets import parted
from rabaska.domain.uv_lock import UnusableList
from rabaska.errors import SettingsError
from rabaska.settings.data_sources import fields_laid_over, largest_side
from rabaska.settings.document import Path
from rabaska.settings.project_tables import (
    ChainTable,
    ClusterTable,
    DataTable,
    EnvironmentTable,
    ResourcesTable,
    Settings,
    Table,
)
from rabaska.settings.search_table import SearchTable

HERE = "here"
CONDA_FILE = "environment.yml"
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
    data: Mapping[str, DataTable]

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
        named = {
            "container": self.environment.image,
            "conda": self.environment.file,
            "virtualenv": self.environment.requirements,
            "activate": self.environment.path,
        }
        of_cluster = "virtualenv" if self.listed and self.cluster != HERE else "current"
        return next((kind for kind, value in named.items() if value), of_cluster)

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
    def travels(self) -> str:
        """What of the environment lies in the project folder, and is sent: a path, or nothing."""
        path = {"packed": self.environment.path, "container": self.environment.image}
        value = path.get(self.kind, "")
        return "" if value.startswith(("/", "~", "$")) or "://" in value else value

    @property
    def conda_file(self) -> str:
        return self.environment.file or CONDA_FILE

    @property
    def requirements(self) -> str:
        """The list of packages, relative to the project folder."""
        return self.environment.requirements or self.listed or USUAL[0]


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
        data={
            name: _data(settings.data.get(name, DataTable()), own.data.get(name, DataTable()))
            for name in {**settings.data, **own.data}
        },
    )


def _listed(folder: File) -> str:
    return next((name for name in USUAL if _lists_packages(folder / name)), "")


def _lists_packages(file: File) -> bool:
    """A pyproject.toml may be there for the settings of tools alone."""
    if not os.path.isfile(file):  # noqa: PTH113 - no error for a name that is too long
        return False
    if file.name != PYPROJECT:
        return True
    try:
        return bool(as_requirements(file.name, file.read_text("utf-8", "replace")))
    except (OSError, UnusableList):
        return False


def requested_in(resolved: Resolved, given: AbstractSet[Path]) -> dict[str, str]:
    """What a job requests, by key, with the table that says so; "" is the command line."""
    found = {}
    for table in ("resources", "chain"):
        for key in getattr(resolved, table).model_fields_set:
            path = resolved.where(table, key)
            place = f"[{'.'.join(map(str, path[:-1]))}]"
            found[key] = "" if (table, key) in given else place
    for key in ("queue", "account"):
        if getattr(resolved.own, key):
            of_cluster = ("cluster", resolved.cluster, key)
            found[key] = "" if of_cluster in given else f"[cluster.{resolved.cluster}]"
    return found


def _laid_over(table: SomeTable, own: SomeTable) -> SomeTable:
    return table.model_copy(update={key: getattr(own, key) for key in own.model_fields_set})


def _data(table: DataTable, own: DataTable) -> DataTable:
    written, of_cluster = (
        {key: getattr(some, key) for key in some.model_fields_set} for some in (table, own)
    )
    return DataTable().model_copy(update=fields_laid_over(written, of_cluster))


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
        datasets=tuple(_dataset(name, data, folder) for name, data in resolved.data.items()),
        environment=_recipe(resolved, folder),
        chain=_chain(resolved.chain),
        checkpoints=CheckpointSettings(patterns=tuple(settings.checkpoints.patterns)),
        keep=tuple(settings.output.keep),
        exclude=(*settings.code.exclude, *_packed_beside(resolved), *_copies_here(resolved)),
        include=tuple(settings.code.include),
        cluster_tables=tuple(settings.cluster),
        progress=settings.progress.pattern,
        watch=settings.progress.watch,
        account=own.account,
        queue=own.queue,
        features=tuple(own.features),
        mail=own.mail or settings.notify.mail,
        native=tuple(own.native),
        search=_search(settings.search) if settings.search else None,
    )


def _search(table: SearchTable) -> Search:
    return Search(**table.model_dump())


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
    """A packed environment or an image in the project folder: it travels, but not as code."""
    path = resolved.travels
    inside = path and not path.startswith("..")
    return ("/" + path.removeprefix("./").rstrip("/"),) if inside else ()


def _copies_here(resolved: Resolved) -> tuple[str, ...]:
    """Datasets in the project folder of which this cluster uses another copy: they are no code."""
    tables = resolved.settings.data.items()
    unused = [table for name, table in tables if resolved.data[name].path != table.path]
    paths = [os.path.normpath(path) for table in unused for path in (table.path, *table.beside)]
    inside = [path for path in paths if not path.startswith(("..", "/", "~"))]
    return tuple(f"/{glob.escape(path)}" for path in inside)


def _recipe(resolved: Resolved, folder: File) -> EnvironmentRecipe:
    table = resolved.environment
    text = ""
    if resolved.kind == "virtualenv":
        text = _listed_packages(resolved, folder)
    variables, hidden = parted(table.variables)
    conda = resolved.conda_file if resolved.kind == "conda" else ""
    return EnvironmentRecipe(
        kind=resolved.kind,
        path=table.path,
        here=_absolute(folder, resolved.travels) if resolved.travels else None,
        file=conda,
        conda=(folder / conda).read_text("utf-8", "replace") if conda else "",
        image=table.image if resolved.kind == "container" else "",
        binds=tuple(table.binds),
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


def _listed_packages(resolved: Resolved, folder: File) -> str:
    """The text of the requirements file, or what another list of packages comes to."""
    name = resolved.requirements
    text = (folder / name).read_text("utf-8", "replace")
    try:
        return as_requirements(name, text, resolved.environment.extras)
    except UnusableList as problem:
        raise SettingsError(
            f"the packages in {name} cannot be used",
            why=str(problem),
            hint="name another file as `requirements` under [environment], such as the "
            "requirements.txt that `uv export` or `pip freeze` writes",
        ) from problem


def _dataset(name: str, data: DataTable, folder: File) -> Dataset:
    return Dataset(
        name,
        _absolute(folder, data.path) if data.path else None,
        data.mode or (IN_PLACE if data.at else "files"),
        data.follow_links,
        beside=tuple(_absolute(folder, path) for path in data.beside),
        samples=data.samples,
        at=data.at,
        url=data.url,
        sha256=data.sha256,
        fetch=data.fetch,
        unpack=data.unpack,
        largest_side=largest_side(data.images),
    )


def _absolute(folder: File, path: str) -> File:
    # Not Path.expanduser, which fails for a user it does not know; then the folder is missing.
    return File(os.path.normpath(folder / os.path.expanduser(path)))  # noqa: PTH111


def name_for(folder: File) -> str:
    """A project name made of the folder's: plain letters, and never empty."""
    plain = unicodedata.normalize("NFKD", folder.name).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("-._")[:60] or "project"
