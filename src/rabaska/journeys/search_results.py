"""The results of a search: fetched, and exported for other tools."""

import csv
import importlib
import io
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rabaska.domain.arguments import value_of, with_arguments
from rabaska.domain.projects import Project
from rabaska.domain.search import FAILED, FINISHED, PRUNED, SearchStatus, Trial
from rabaska.domain.trial_values import (
    arguments_of,
    file_option_of,
    trial_numbered,
    variables_of,
)
from rabaska.errors import MissingProgram, WrongUse
from rabaska.journeys import fetch as fetching
from rabaska.node import files
from rabaska.node.search import space as spaces
from rabaska.node.search import values_file
from rabaska.records.home import Home
from rabaska.records.search_index import SearchRecord
from rabaska.steps import submit_search
from rabaska.steps.adopt import adopt_one
from rabaska.steps.progress import Reporter, SilentReporter


@dataclass(frozen=True)
class FetchedSearch:
    search: str
    folder: Path
    runs: tuple[str, ...]
    files: int


def fetch(
    record: SearchRecord,
    home: Home,
    *,
    best: int = 1,
    trials: tuple[int, ...] = (),
    to: Path | None = None,
    reporter: Reporter | None = None,
) -> FetchedSearch:
    """Copy the table of a search, and the results of its best trials or of those given."""
    found = submit_search.ask(record, home, curves=True)
    folder = to or Path(record.project or ".") / "results" / record.name
    wanted = [trial_numbered(found, number) for number in trials]
    wanted = wanted or [one for one in found.ranked if one.state == FINISHED][:best]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trials.csv").write_text(as_csv(found))
    (folder / "trials.json").write_text(as_json(found))
    count = 0
    for trial in wanted:
        run = adopt_one(trial.run, record.cluster, home, Path(record.project))
        target = folder / f"trial-{trial.number}"
        fetched = fetching.fetch(run, home, to=target, reporter=reporter or SilentReporter())
        count += fetched.files
    return FetchedSearch(record.name, folder, tuple(one.run for one in wanted), count)


def project_of_trial(
    project: Project, found: SearchStatus, trial: Trial, *, write: bool = True
) -> Project:
    """The project with the values of a trial, as they reached the program then.

    What it read from a file stands in a file of the project now, so that the run has it.
    """
    environment = replace(
        project.environment,
        variables={**project.environment.variables, **variables_of(found, trial)},
    )
    words = list(arguments_of(found, trial))
    option = file_option_of(found, trial)
    if option:
        words += [option, _values_file(project, option, trial, write=write)]
    return replace(project, command=with_arguments(project.command, words), environment=environment)


def _values_file(project: Project, option: str, trial: Trial, *, write: bool) -> str:
    given = Path(value_of(project.command, option) or "values.json")
    base = project.folder / given
    name = given.with_name(f"{given.stem}-{trial.run}{given.suffix}")
    values = dict(trial.values)
    if base.is_file():
        text = values_file.changed(base.name, base.read_text("utf-8"), values)
    else:
        text = values_file.alone(values)
    if write:
        files.write_whole(str(project.folder / name), text)
    return str(name)


def as_csv(found: SearchStatus) -> str:
    """One line for each trial, in their order."""
    names = list(found.space)
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["trial", "state", found.metric or "value", *names, "seconds", "run", "why"])
    for trial in found.trials:
        values = [trial.values.get(name, "") for name in names]
        value = "" if trial.value is None else repr(trial.value)
        rows.writerow(
            [trial.number, trial.state, value, *values, trial.seconds, trial.run, trial.why]
        )
    return text.getvalue()


def as_json(found: SearchStatus) -> str:
    """All of it, with the curves."""
    trials = [
        {
            "number": one.number,
            "state": one.state,
            "value": one.value,
            "values": dict(one.values),
            "seconds": one.seconds,
            "run": one.run,
            "why": one.why,
            "curve": [[at, None if math.isnan(value) else value] for at, value in one.curve],
        }
        for one in found.trials
    ]
    about = {"search": found.name, "metric": found.metric, "goal": found.goal}
    return json.dumps({**about, "space": dict(found.space), "trials": trials}, indent=1) + "\n"


def to_optuna(found: SearchStatus, storage: str) -> int:
    """Add the trials to a study of that name in an Optuna storage: how many."""
    try:
        optuna: Any = importlib.import_module("optuna")
    except ImportError:
        raise MissingProgram(
            "Optuna is not installed next to rabaska",
            hint="`pip install optuna`; or export as CSV or JSON",
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    direction = "maximize" if found.goal == "max" else "minimize"
    try:
        study = optuna.create_study(
            study_name=found.name, storage=storage, direction=direction, load_if_exists=True
        )
    except Exception as problem:  # whatever its database says
        raise WrongUse(
            f"Optuna cannot use the storage {storage}",
            why=str(problem),
            hint="try `--optuna sqlite:///search.db`",
        ) from problem
    known = {one.user_attrs.get("trial") for one in study.get_trials(deepcopy=False)}
    new = [one for one in found.trials if one.ended and one.number not in known and not one.repeats]
    parameters = {one.name: one for one in spaces.parameters(dict(found.space))}
    for trial in new:
        study.add_trial(_optuna_trial(optuna, trial, parameters))
    return len(new)


def _optuna_trial(optuna: Any, trial: Trial, parameters: dict[str, spaces.Parameter]) -> Any:
    states = optuna.trial.TrialState
    state = {FINISHED: states.COMPLETE, PRUNED: states.PRUNED, FAILED: states.FAIL}[trial.state]
    if state == states.COMPLETE and trial.value is None:
        state = states.FAIL
    return optuna.trial.create_trial(
        state=state,
        value=trial.value if state == states.COMPLETE else None,
        params=dict(trial.values),
        distributions={name: distribution(optuna, parameters[name]) for name in trial.values},
        intermediate_values={at: value for at, value in trial.curve if not math.isnan(value)},
        user_attrs={"trial": trial.number, "run": trial.run, "why": trial.why},
    )


def distribution(optuna: Any, one: spaces.Parameter) -> Any:
    made = optuna.distributions
    if one.kind == spaces.CHOICE:
        return made.CategoricalDistribution(list(one.choices))
    if one.whole:
        return made.IntDistribution(int(one.low), int(one.high), log=one.kind == spaces.LOG)
    return made.FloatDistribution(one.low, one.high, log=one.kind == spaces.LOG)
