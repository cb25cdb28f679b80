"""What a project's own text gives to the options that must have a value."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rabaska.scouting.script_options import FLAG, POSITIONAL, Option
from rabaska.scouting.shown_commands import ShownCommand, is_said
from rabaska.scouting.source import SourceLine, is_file

_CONFIGURATION = (
    "config", "cfg", "conf", "configs", "config_file", "config_path", "config_name", "cfg_file",
    "configuration", "yaml", "yaml_file", "config_yaml", "hparams_file", "params", "hps",
)  # fmt: skip
_SUFFIXES = (".yaml", ".yml", ".json", ".toml", ".py", ".ini", ".cfg", ".gin", ".conf")
_FOLDERS = ("", "config", "configs", "conf", "cfg", "cfgs")


@dataclass(frozen=True)
class ShownValue:
    """A value for an option, and where it stands."""

    value: str
    place: SourceLine


def shown_values(
    commands: Sequence[ShownCommand], options: Sequence[Option]
) -> dict[str, ShownValue]:
    """The first value that the text gives to each option, by the option's name."""
    values: dict[str, ShownValue] = {}
    for command in commands:
        for option, value in _given(command.words, options):
            if is_said(value):
                values.setdefault(option.name, ShownValue(value, command.place))
    return values


def _given(words: Sequence[str], options: Sequence[Option]) -> Iterator[tuple[Option, str]]:
    spelled = {word: option for option in options for word in (option.spelled, *option.also)}
    positionals = [option for option in options if option.kind == POSITIONAL]
    waiting: Option | None = None
    for word in words:
        plain, joined, value = word.partition("=")
        option = spelled.get(plain)
        if waiting is not None and not word.startswith("--"):
            yield waiting, word
            waiting = None
        elif joined and option is not None:
            yield option, value
        elif word.startswith("-"):
            waiting = option if option is not None and option.kind != FLAG else None
        elif positionals and "=" not in word:
            yield positionals.pop(0), word


def is_missing_file(option: Option, value: ShownValue, project: Path) -> bool:
    """Whether a settings file stands in the text only: `hparams/file.yaml`, for one of several."""
    return option.name in _CONFIGURATION and not is_file(project / value.value)


def configuration(option: Option, shown: ShownValue | None, project: Path) -> ShownValue | None:
    """The file for an option that takes the program's configuration, and has none by default."""
    if option.name not in _CONFIGURATION or option.kind == FLAG:
        return None
    if option.default and is_file(project / option.default):
        return None
    if shown is not None and is_file(project / shown.value):
        return shown
    files = list(_configurations(project))
    only = files[0] if len(files) == 1 else ""
    return ShownValue(only, SourceLine(only, 1)) if only else None


def _configurations(project: Path) -> Iterator[str]:
    for folder in _FOLDERS:
        for path in sorted((project / folder).glob("*")):
            named = not folder or path.suffix != ".py"
            if path.suffix not in _SUFFIXES or not is_file(path):
                continue
            if (folder and named) or path.stem in ("config", "configs", "params", "hparams"):
                yield path.relative_to(project).as_posix()
