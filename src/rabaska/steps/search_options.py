"""How the values of a search reach the program, checked before anything is sent."""

import difflib
import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rabaska.checkup.subject import started_by
from rabaska.domain.arguments import value_of, without_arguments
from rabaska.domain.projects import EnvironmentRecipe, Project
from rabaska.domain.search import Search, guessed_goal
from rabaska.errors import EnvironmentFailed, SettingsError
from rabaska.node.search import proposals, values_file
from rabaska.node.search import space as spaces
from rabaska.scouting import framework_options, scripts
from rabaska.scouting.script_options import FLAG, Option
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.environment import prepare
from rabaska.steps.progress import Reporter

_USUAL_TRIALS = 20
_READ = (".yaml", ".yml", ".json")
_SEED = re.compile(r"(^|_)seed$")
Spelled = Mapping[str, tuple[str, str]]  # parameter: style, and its word


def search_of(project: Project, reporter: Reporter) -> Search:
    """The project's search, with what was left out."""
    search = project.search
    if search is None:
        raise SettingsError(
            "rabaska.toml has no [search]",
            hint="`rabaska search init` reads the program's options and proposes one",
        )
    if not search.space:
        raise SettingsError(
            "the search tries nothing: [search.space] is empty",
            hint="write a line for each option, such as `lr = {log = [1e-5, 1e-1]}`; "
            "`rabaska search init` proposes some",
        )
    return replace(search, goal=_goal(search, reporter), trials=_trials(search))


def _goal(search: Search, reporter: Reporter) -> str:
    if not search.metric:
        if search.method != proposals.GRID:
            raise SettingsError(
                f"[search] has no `metric`, by which `{search.method}` would compare trials",
                hint='write `metric = "val_accuracy"`, or what your program reports; without one, '
                'only `method = "grid"` works',
            )
        return search.goal or "max"
    if search.goal:
        return search.goal
    guessed = guessed_goal(search.metric)
    if guessed is None:
        raise SettingsError(
            f"is a large `{search.metric}` good or bad?",
            why="its name does not say so",
            hint='write `goal = "max"` or `goal = "min"` under [search]',
        )
    best = "largest" if guessed == "max" else "smallest"
    reporter.step(f"goal: the {best} {search.metric} is the best")
    return guessed


def _trials(search: Search) -> int:
    if search.method != proposals.GRID:
        return search.trials or _USUAL_TRIALS
    try:
        size = len(spaces.grid(spaces.parameters(dict(search.space))))
    except spaces.WrongSpace as problem:
        at = f" for `{problem.name}`" if problem.name else ""
        raise SettingsError(
            f"the space cannot be tried as a grid{at}",
            why=str(problem),
            hint='give `points`, or another `method`, such as "random"',
        ) from problem
    return min(search.trials or size, size)


def options_of(project: Project) -> tuple[Option, ...] | None:
    """The options of the program that the command starts; None where it cannot be read."""
    script = started_by(project, scripts.find(project.folder))
    if script is None:
        return None
    return framework_options.all_options(script, project.folder)


def spelled(project: Project, search: Search, reporter: Reporter) -> Spelled:
    """How each value is handed over; SettingsError for an option that the program does not have."""
    if search.values_as == "environment":
        names = [*search.space, *filter(None, [seed_name(project, search)])]
        return {name: ("environment", _variable(name)) for name in names}
    if search.values_as == "file":
        _check_file(project, search)
        names = [*search.space, *filter(None, [seed_name(project, search)])]
        return dict.fromkeys(names, ("file", search.file_option))
    options = options_of(project)
    known = {option.name: option for option in options or ()}
    if not known and search.values_as is None:
        reporter.warn(
            "the program's options could not be read; values are given as `--name value` "
            "(`values_as` under [search] changes that)"
        )
    seed = seed_name(project, search)
    names = [*search.space, *([seed] if seed else [])]
    return {name: _spelled(name, known, search) for name in names}


def values_file_of(project: Project, search: Search) -> Path | None:
    """The file of settings that the command names, of which each trial gets a changed copy."""
    if search.values_as != "file":
        return None
    options = options_of(project) or ()
    usual = next((one.default for one in options if one.spelled == search.file_option), "")
    given = value_of(project.command, search.file_option) or usual
    return project.folder / given if _is_settings_file(project, given) else None


def settings_file(project: Project, options: Sequence[Option]) -> tuple[str, str] | None:
    """The option that takes a file of settings, and that file, where the project has one."""
    for option in options:
        given = value_of(project.command, option.spelled) or option.default
        if _is_settings_file(project, given):
            return option.spelled, given
    return None


def _is_settings_file(project: Project, name: str) -> bool:
    file = project.folder / name
    return bool(name) and file.suffix in _READ and file.is_file()


def _check_file(project: Project, search: Search) -> None:
    given, file = value_of(project.command, search.file_option), values_file_of(project, search)
    if given and file is None:
        raise SettingsError(
            f"`{search.file_option} {given}` names no file that values could be written into",
            why="it must be a file of the project that ends in " + ", ".join(_READ),
            hint=f"remove `{search.file_option} {given}` from `command`: then each trial gets a "
            "JSON file with its values alone",
        )
    if file is None:
        return
    examples = {one.name: one.at(0.0) for one in spaces.parameters(dict(search.space))}
    if seed := seed_name(project, search):
        examples[seed] = 1
    try:
        values_file.changed(file.name, file.read_text("utf-8"), examples)
    except values_file.NotThere as problem:
        near = difflib.get_close_matches(problem.name, problem.known, n=1)
        raise SettingsError(
            f"{file.name} has no single value called `{problem.name}`",
            why=f"it has {', '.join(problem.known) or 'none that could be read'}",
            hint=f"did you mean `{near[0]}`? " * bool(near)
            + "write it there with its usual value first; a block of its own per level, not `{…}`",
        ) from problem
    except ValueError as problem:
        raise SettingsError(f"{file.name} cannot be read", why=str(problem)) from problem


def seed_name(project: Project, search: Search) -> str:
    """What `repeats` varies: the option that takes a seed; "" without repeats."""
    if not search.repeats:
        return ""
    if not search.metric:
        raise SettingsError(
            "`repeats` repeats the best trials, and without a `metric` there are none",
            hint='write `metric = "val_accuracy"`, or what your program reports',
        )
    if search.values_as in ("environment", "file"):
        found = search.seed_option or "seed"
    else:
        options = options_of(project) or ()
        names = [one.spelled.lstrip("-") for one in options if _SEED.search(one.name)]
        found = search.seed_option or next(iter(names), "")
    if not found:
        raise SettingsError(
            "`repeats` gives other seeds to the program, which has no option for a seed",
            why="without one, two runs may be the same, or differ in what cannot be repeated",
            hint="give it an option such as `--seed`, or name its option with `seed_option`",
        )
    if found in search.space:
        raise SettingsError(
            f"`repeats` varies `{found}`, and so does [search.space]",
            hint=f"remove `{found}` from [search.space], or `repeats`",
        )
    return found


def seeds_of(project: Project, search: Search, name: str, word: str) -> list[int]:
    """As many seeds as there are repeats, without the one that all trials have."""
    if not name:
        return []
    used = {value_of(project.command, word), value_of(project.command, f"{word}=")}
    used |= {one.value for one in options_of(project) or () if one.spelled == word}
    fresh = (seed for seed in itertools.count(1) if str(seed) not in used)
    return list(itertools.islice(fresh, search.repeats))


def _spelled(name: str, known: Mapping[str, Option], search: Search) -> tuple[str, str]:
    plain = name.lstrip("-").replace("-", "_").replace(".", "_").lower()
    option = known.get(plain)
    if search.values_as == "overrides":
        return "override", option.spelled if option and option.style == "override" else name
    if option is None and known:
        raise _unknown(name, known)
    if option is None:
        return "option", name if name.startswith("-") else f"--{name}"
    if option.style == "override":
        return "override", option.spelled
    if option.kind == FLAG:
        return "flag", option.spelled
    return "joined" if option.style == "joined" else "option", option.spelled


def _unknown(name: str, known: Mapping[str, Option]) -> SettingsError:
    near = difflib.get_close_matches(name.replace("-", "_"), known, n=1)
    listed = ", ".join(option.spelled for option in known.values())
    return SettingsError(
        f"the program has no option for `{name}` of [search.space]",
        why=f"its options are {listed}",
        hint=(f"did you mean `{near[0]}`? " if near else "")
        + 'if it reads the value otherwise, write `values_as = "environment"` or "file"',
    )


def base_command(project: Project, styles: Spelled, varied: Collection[str]) -> tuple[str, ...]:
    """The command without the options that trials give their own values."""
    names = [
        f"{word}=" if style == "override" else word
        for name, (style, word) in styles.items()
        if name in varied
    ]
    return without_arguments(project.command, names)


def _variable(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name).upper()


def check_values(search: Search, options: Sequence[Option] | None, styles: Spelled) -> list[str]:
    """What the program would refuse, in words: values that are not among its choices."""
    problems = []
    known = {option.spelled: option for option in options or ()}
    for one in spaces.parameters(dict(search.space)):
        option = known.get(styles[one.name][1])
        if option is None or not option.choices or one.kind != spaces.CHOICE:
            continue
        wrong = [value for value in one.choices if str(value) not in option.choices]
        if wrong:
            problems.append(
                f"{option.spelled} cannot be {wrong[0]!r}: it is one of {', '.join(option.choices)}"
            )
    return problems


def optuna_setup(search: Search, cluster: ConnectedCluster, reporter: Reporter) -> tuple[str, ...]:
    """The lines that enter an environment with Optuna, made where it is missing; none if unused."""
    if search.method not in proposals.BY_OPTUNA:
        return ()
    wanted = "optuna\ncmaes\n" if search.method == proposals.CMA else "optuna\n"
    recipe = EnvironmentRecipe(
        kind="virtualenv", requirements=wanted, listed_in="the packages of Optuna", build="once"
    )
    try:
        return prepare(recipe, cluster, reporter).setup
    except EnvironmentFailed as problem:
        raise EnvironmentFailed(
            f"`{search.method}` needs Optuna, which cannot be had on {cluster.name}",
            why=problem.why or problem.what,
            hint='`method = "random"` or "sobol" with `stopping = "asha"` needs nothing',
        ) from problem
