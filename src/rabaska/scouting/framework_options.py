"""The options that a framework adds: LightningCLI's, keys of Hydra's and SpeechBrain's files."""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rabaska.node.search.values_file import flat
from rabaska.scouting import script_traits
from rabaska.scouting.option_roles import CHECKPOINTS, DATA, LOGS, OUTPUT, Usage, role_of
from rabaska.scouting.script_options import POSITIONAL, VALUE, Option
from rabaska.scouting.script_writes import imported
from rabaska.scouting.scripts import Script
from rabaska.scouting.source import SourceLine, argument, called, text

_LINE = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z_]\w*):(?:\s+(?P<value>[^#]*?))?\s*(#.*)?$")
_NO_FOLDER = (".", "..", "true", "false", "True", "False", "null", "None")
_YAML = (".yaml", ".yml")
_LARGEST = 200_000  # characters


def all_options(script: Script, project: Path) -> tuple[Option, ...]:
    """The options of a script, its own and those of its framework."""
    cli = script_traits.uses(script, "LightningCLI")
    if cli:
        root = Option("--trainer.default_root_dir", VALUE, cli)
        commands = script_traits.lightning_commands(script)
        return (root, Option("--ckpt_path", VALUE, commands)) if commands else (root,)
    return (
        *script.options, *_hydra_overrides(script, project), *_of_speechbrain(script, project)
    )  # fmt: skip


def _of_speechbrain(script: Script, project: Path) -> Iterator[Option]:
    """`parse_arguments(sys.argv[1:])` takes a YAML file, then its keys as options."""
    place = script_traits.uses(script, "parse_arguments")
    if not place or not any(name.startswith("speechbrain") for name in imported(script.main)):
        return
    yield Option("hparams_file", POSITIONAL, place, required=True)
    shown = (word for command in script.shown for word in command.words)
    name = next((word for word in shown if word.endswith(_YAML) and (project / word).exists()), "")
    for key in _keys(_read(project / name), name) if name else ():
        value = key.default.removeprefix("!ref ")
        plain = "." not in key.spelled and "<" not in value.partition("/")[0]
        if plain and role_of(key, Usage()) in (OUTPUT, DATA):
            unknown = value == "!PLACEHOLDER"
            default = "" if unknown else value
            yield replace(
                key, spelled=f"--{key.spelled}", style="option", default=default, required=unknown
            )


def _hydra_overrides(script: Script, project: Path) -> tuple[Option, ...]:
    """The keys of the configuration that `@hydra.main` names: each is overridden as `key=value`."""
    for name in _configurations(script):
        content = _read(project / name)
        if content:
            return tuple(_keys(content, name))
    return ()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")[:_LARGEST]
    except OSError:
        return ""


def kept_by_configuration(project: Path, name: str) -> Iterator[tuple[str, SourceLine]]:
    """The folders beside the code that a configuration file has the program write to."""
    plain = re.sub(
        r'^(\s*)"(\w+)"\s*:', r"\1\2:", _read(project / name), flags=re.MULTILINE
    )  # JSON
    for option in _keys(re.sub(r",\s*$", "", plain, flags=re.MULTILINE), name):
        folder = option.default.removeprefix("./").split("/")[0]
        written = role_of(option, Usage()) in (OUTPUT, CHECKPOINTS, LOGS)
        if written and re.fullmatch(r"[\w.-]+", folder) and folder not in _NO_FOLDER:
            yield folder, option.place


def _configurations(script: Script) -> Iterator[str]:
    base = script.name.rpartition("/")[0]
    for node in script.main.nodes:
        if isinstance(node, ast.Call) and called(node) == "hydra.main":
            folder = text(argument(node, "config_path", 0)) or "."
            name = text(argument(node, "config_name", 1)) or "config"
            yield (Path(base) / folder / f"{name.removesuffix('.yaml')}.yaml").as_posix()


def in_file(project: Path, name: str) -> tuple[Option, ...]:
    """The values of a YAML or JSON file that a program reads, as if they were its options."""
    content = (project / name).read_text("utf-8", errors="replace")
    return tuple(_keys(content, name)) if not name.endswith(".json") else _json_keys(content, name)


def _json_keys(content: str, name: str) -> tuple[Option, ...]:
    try:
        found = flat(json.loads(content))
    except ValueError:
        return ()
    return tuple(
        Option(
            key,
            VALUE,
            SourceLine(name, 1, key),
            default=str(value),
            value=repr(value) if type(value) in (int, float) else "",
        )
        for key, value in found
    )


def _keys(content: str, name: str) -> Iterator[Option]:
    above: list[tuple[int, str]] = []
    for number, line in enumerate(content.splitlines(), start=1):
        match = _LINE.match(line)
        if not match:
            continue
        indent = len(match["indent"])
        above = [parent for parent in above if parent[0] < indent]
        dotted = ".".join([key for _, key in above] + [match["key"]])
        value = (match["value"] or "").strip().strip("'\"")
        if not value:
            above.append((indent, match["key"]))
            continue
        yield Option(
            dotted,
            VALUE,
            SourceLine(name, number, f"{dotted}: {value}"),
            default="" if value in ("null", "???", "~") else value,
            value=value if re.fullmatch(r"-?[\d.]+(e-?\d+)?", value) else "",
            number=bool(re.fullmatch(r"-?[\d.]+(e-?\d+)?", value)),
            style="override",
            required=value == "???",
        )
