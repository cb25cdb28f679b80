"""Functions about a search: many runs of a program, each with other values of its options."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rabaska.api.runs import Folder
from rabaska.domain.projects import Project
from rabaska.domain.runs import Checks
from rabaska.domain.search import Search as Settings
from rabaska.domain.search import SearchStatus, Trial
from rabaska.errors import SettingsError
from rabaska.journeys import search as _search
from rabaska.journeys import search_init as _init
from rabaska.journeys import search_results as _results
from rabaska.journeys.search import StartedSearch
from rabaska.journeys.search_init import ProposedSearch
from rabaska.journeys.search_results import FetchedSearch
from rabaska.records.home import home, made_home
from rabaska.records.search_index import SearchRecord, find
from rabaska.settings.project_file import check_command, default_cluster, load


class Search:
    """`rabaska search …`; called itself, it runs a search and waits for its end.

    Without a name, the newest search of this computer is meant.
    """

    def __call__(
        self,
        folder: Folder = ".",
        *,
        on: str = "",
        name: str = "",
        arguments: Sequence[str] = (),
        doctor: bool = True,
        **search: Any,
    ) -> SearchStatus:
        """Run a search, wait until it ends, and return its status with all trials.

        `search` are keys of [search]: `space={"lr": [0.1, 0.01]}, metric="val_accuracy"`.
        """
        started = self.run(folder, on=on, name=name, arguments=arguments, doctor=doctor, **search)
        return _search.wait(_record(started.search), home())

    def init(self, folder: Folder = ".", *, force: bool = False) -> ProposedSearch:
        """Propose a [search] from the options of the program, and write it to rabaska.toml."""
        proposal = _init.propose(load(Path(folder).absolute()))
        _init.write(proposal, force=force)
        return proposal

    def run(
        self,
        folder: Folder = ".",
        *,
        on: str = "",
        name: str = "",
        arguments: Sequence[str] = (),
        doctor: bool = True,
        **search: Any,
    ) -> StartedSearch:
        """Send the project and submit the workers of a search; returns at once."""
        on = on or default_cluster(Path(folder).absolute())
        project = load(Path(folder).absolute(), cluster=on)
        project = replace(project, command=(*project.command, *arguments))
        check_command(project)
        return _search.run(
            _with(project, search), on, made_home(), name=name, checks=Checks(doctor)
        )

    def status(self, name: str = "") -> SearchStatus:
        """How far a search is, with all its trials and their curves."""
        return _search.status(_record(name), home(), curves=True)

    def table(self, name: str = "") -> Sequence[Trial]:
        """The trials, the best first."""
        return self.status(name).ranked

    def best(self, name: str = "") -> Trial:
        """The best trial that finished."""
        return _search.best(_record(name), home())[1]

    def stop(self, name: str = "") -> SearchStatus:
        """Begin no more trials; those that run may save."""
        return _search.stop(_record(name), home())

    def more(self, count: int, name: str = "") -> StartedSearch:
        """Add trials to a search; 0 continues one that was stopped."""
        return _search.more(_record(name), count, made_home())

    def fetch(
        self, name: str = "", *, best: int = 1, trials: Sequence[int] = (), to: Path | None = None
    ) -> FetchedSearch:
        """Copy the table of all trials, and the results of the best or of those given."""
        return _results.fetch(_record(name), made_home(), best=best, trials=tuple(trials), to=to)

    def export(self, name: str = "", *, optuna: str = "") -> str:
        """All trials as CSV; with `optuna`, they are added to that storage as well."""
        found = self.status(name)
        if optuna:
            _results.to_optuna(found, optuna)
        return _results.as_csv(found)


search = Search()


def _record(name: str) -> SearchRecord:
    return find(home().searches, name)


def _with(project: Project, given: Mapping[str, Any]) -> Project:
    """The project with other keys of [search], checked as those of the file are."""
    if not given:
        return project
    from pydantic import ValidationError

    from rabaska.settings.search_table import SearchTable

    before = asdict(project.search) if project.search else {}
    try:
        table = SearchTable.model_validate({**before, **given})
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        raise SettingsError(
            f"`{first['loc'][0]}` of a search cannot be {first['input']!r}", why=first["msg"]
        ) from None
    return replace(project, search=Settings(**table.model_dump()))
