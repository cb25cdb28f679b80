"""Search init: a [search] for rabaska.toml, proposed from the options of the program."""

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rabaska.checkup.subject import started_by
from rabaska.domain.projects import Project
from rabaska.domain.search import guessed_goal
from rabaska.errors import SettingsError, WrongUse
from rabaska.scouting import framework_options, scripts
from rabaska.scouting.search_space import ProposedParameter, proposed_metric, proposed_space
from rabaska.scouting.source import Source
from rabaska.settings.project_file import FILE
from rabaska.settings.write_choice import rewrite
from rabaska.steps.search_options import settings_file

_TRIALS = 20


@dataclass(frozen=True)
class ProposedSearch:
    """What `search init` writes, and why."""

    file: str
    text: str
    metric: str
    goal: str
    parameters: tuple[ProposedParameter, ...]
    notes: tuple[str, ...] = ()


def propose(project: Project) -> ProposedSearch:
    """A search for the project; nothing is run or written."""
    script = started_by(project, scripts.find(project.folder))
    if script is None:
        raise SettingsError(
            "the program's options cannot be read",
            why=f"`{' '.join(project.command)}` starts no Python script of this folder",
            hint="write [search] by hand: see `values_as` for how values reach the program",
        )
    options = framework_options.all_options(script, project.folder)
    if not options:
        raise SettingsError(
            f"{script.name} takes no options, so nothing can be varied",
            why="constants in its source are out of reach",
            hint="give it options (`argparse`), or read environment variables and write "
            '`values_as = "environment"` under [search]',
        )
    found, file_option = proposed_space(options), ""
    if not found and (named := settings_file(project, options)):
        file_option = named[0]
        found = proposed_space(framework_options.in_file(project.folder, named[1]))
    metric = proposed_metric([text for source in script.sources for text in _texts(source)])
    notes = []
    if not found:
        notes.append("no option looks like one that changes the result; fill in [search.space]")
    if not metric:
        notes.append("no metric was found in the source; fill in `metric`")
    goal = guessed_goal(metric) or "max"
    file = str(project.folder / FILE)
    text = _toml(metric, goal, found, file_option)
    return ProposedSearch(file, text, metric, goal, tuple(found), tuple(notes))


def _texts(source: Source) -> Iterator[str]:
    """What stands between quotes in its source."""
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _toml(metric: str, goal: str, found: list[ProposedParameter], file_option: str) -> str:
    best = "the largest" if goal == "max" else "the smallest"
    lines = [
        "[search]",
        f'metric = "{metric}"',
        f'goal = "{goal}"  # {best} is the best',
        f"trials = {_TRIALS}",
        'method = "random"',
        'stopping = "asha"  # trials that fall behind are stopped early',
        *(['values_as = "file"  # a copy of it for each trial'] if file_option else []),
        *([f'file_option = "{file_option}"'] if file_option else []),
        "",
        "[search.space]",
        *(f"{one.name} = {one.text}  # {one.why}" for one in found),
    ]
    return "\n".join(lines) + "\n"


def write(proposal: ProposedSearch, *, force: bool = False) -> None:
    """Add it to rabaska.toml; WrongUse where that has a search, unless `force` replaces it."""
    import tomlkit

    file = Path(proposal.file)
    text = file.read_bytes().decode("utf-8-sig")
    if "search" in tomllib.loads(text):
        if not force:
            raise WrongUse(
                f"{file} has a [search] already", hint="`rabaska search init --force` replaces it"
            )
        written = tomlkit.parse(text)
        del written["search"]
        text = tomlkit.dumps(written)
    rewrite(file, text.rstrip() + "\n\n" + proposal.text)
