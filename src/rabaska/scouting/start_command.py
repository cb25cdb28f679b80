"""The words that start a script, with placeholders where rabaska puts paths."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from rabaska.domain.projects import FILL_IN
from rabaska.scouting.option_roles import (
    CHECKPOINTS,
    DATA,
    LOGS,
    OUTPUT,
    RESUME,
    SAVE,
    Role,
    is_file,
    saves_each,
)
from rabaska.scouting.script_options import FLAG, POSITIONAL, Option
from rabaska.scouting.script_traits import lightning_commands, uses
from rabaska.scouting.script_writes import imported
from rabaska.scouting.scripts import Script

_TRAINING_WORDS = re.compile(r"train|fit|run", re.IGNORECASE)


@dataclass
class Words:
    """A command being put together."""

    start: list[str]
    positionals: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    resume: list[str] = field(default_factory=list)
    missing: list[Option] = field(default_factory=list)  # required, and nobody knows the value

    @property
    def command(self) -> list[str]:
        return [*self.start, *self.positionals, *self.options]


def words(
    script: Script,
    options: Sequence[Option],
    roles: Sequence[Role],
    data: Mapping[str, str],
    known: Mapping[str, str],
) -> Words:
    """The command; `data` gives each data option its value by its name, `known` some others."""
    made = Words(_start(script, options))
    subcommand = made.start[-1]
    by_name = {role.option.name: role for role in roles}
    outputs = 0
    for option in options:
        if option.command not in ("", subcommand):
            continue
        role = by_name.get(option.name)
        what = role.what if role else ""
        if what == RESUME and (option.kind == FLAG or option.truth):
            made.resume += [option.spelled] if option.kind == FLAG else [option.spelled, "True"]
            continue
        value = data.get(option.name, "") if what == DATA else _value(option, what, outputs)
        outputs += what == OUTPUT
        value = value or literal(known.get(option.name, "")) or saves_each(option)
        _add(made, option, what, value)
    if uses(script, "hydra.main"):
        made.options.append("hydra.run.dir={output}")
    return made


def _start(script: Script, options: Sequence[Option]) -> list[str]:
    relative = any(module.startswith(".") for module in imported(script.main))
    if relative or _as_module(script):
        module = script.name.removesuffix(".py").replace("/", ".").removesuffix(".__main__")
        start = ["python", "-m", module]
    else:
        start = ["python", literal(script.name)]
    if lightning_commands(script):
        return [*start, "fit"]
    offered = list(dict.fromkeys(each.command for each in options if each.command))
    chosen = next((each for each in offered if _TRAINING_WORDS.search(each)), None)
    return [*start, chosen] if chosen else start


def _as_module(script: Script) -> bool:
    """Whether it lies in a folder, and imports what lies at the project's top.

    Started by its path, Python would look for that beside the script.
    """
    folder = script.name.rpartition("/")[0]
    if not folder or not all(part.isidentifier() for part in folder.split("/")):
        return False
    if uses(script, "sys.path.append") or uses(script, "sys.path.insert"):
        return False
    roots = {module.partition(".")[0] for module in imported(script.main)}
    others = [source.name for source in script.sources[1:]]
    beside = {name.removeprefix(f"{folder}/").partition("/")[0] for name in others
              if name.startswith(f"{folder}/")}  # fmt: skip
    top = {name.partition("/")[0].removesuffix(".py") for name in others}
    alone = not any(root in {each.removesuffix(".py") for each in beside} for root in roots)
    return alone and bool(roots & top) and not uses(script, "setup_root")


def _value(option: Option, what: str, outputs: int) -> str:
    leaf = literal(PurePosixPath(option.default).name) or option.name
    if what == OUTPUT:
        return "{output}" if not outputs and not is_file(option) else f"{{output}}/{leaf}"
    if what == CHECKPOINTS:
        return f"{{checkpoints}}/{leaf}" if is_file(option) else "{checkpoints}"
    return {LOGS: "{output}/logs", RESUME: "{checkpoint}"}.get(what, "")


def _add(made: Words, option: Option, what: str, value: str) -> None:
    if what == SAVE or option.name == "do_train":
        made.options.append(option.spelled)
        return
    if not value and option.required:
        value = option.choices[0] if option.choices else FILL_IN
        made.missing += [] if option.choices else [option]
    if not value:
        return
    if option.kind == POSITIONAL:
        made.positionals.append(value)
    else:
        made.options += given(option, value)


def given(option: Option, value: str) -> list[str]:
    """The words that give an option its value, as its program takes them."""
    if option.style in ("override", "joined"):
        return [f"{option.spelled}={value}"]
    return [option.spelled, value]


def with_links(
    command: Sequence[str], folders: Mapping[str, str], *, terminal: bool = False
) -> list[str]:
    """`command` for a script that looks for its data at fixed places: links are made first.

    `folders` gives, for each place, the variable that holds the staged folder. The command stays
    words of its own, so that placeholders and extra arguments work as ever. With `terminal`, a
    program that asks for the size of its terminal gets an answer, though a job has none.
    """
    steps = []
    for place, variable in folders.items():
        parent = str(PurePosixPath(place).parent)
        if parent != ".":
            steps.append(f"mkdir -p {literal(shlex.quote(parent))}")
        steps.append(f'ln -sfn "${variable}" {literal(shlex.quote(place))}')
    if terminal:
        steps += ["mkdir -p .bin", "echo 'echo 24 80' > .bin/stty", "chmod +x .bin/stty"]
        steps.append('export PATH="$PWD/.bin:$PATH"')
    if not steps:
        return list(command)
    return ["sh", "-c", " && ".join([*steps, 'exec "$@"']), "links", *command]


def literal(word: str) -> str:
    """`word` with its braces doubled, so that they are no placeholder."""
    return word.replace("{", "{{").replace("}", "}}")
