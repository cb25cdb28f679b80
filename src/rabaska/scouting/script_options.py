"""The options a script takes, read from how it declares them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from rabaska.scouting.source import (
    UNKNOWN,
    Source,
    SourceLine,
    argument,
    called,
    last_word,
    literal,
    parameters,
    path_of,
    text,
)

VALUE, FLAG, POSITIONAL = "value", "flag", "positional"


@dataclass(frozen=True)
class Option:
    """One option as the command line spells it."""

    spelled: str  # "--data-dir", or the bare name of a positional
    kind: str  # VALUE, FLAG or POSITIONAL
    place: SourceLine
    default: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()
    number: bool = False  # takes an int or a float
    truth: bool = False  # takes the word True or False
    help: str = ""
    command: str = ""  # the subcommand it belongs to
    style: str = "option"  # "option": --x value; "joined": --x=value; "override": x=value
    dest: str = ""  # what its value is called in the program, where that is another name
    also: tuple[str, ...] = ()  # its other spellings
    value: str = ""  # its default, where that is a number

    @property
    def name(self) -> str:
        """The bare name, one spelling for all: `data_dir`."""
        return self.spelled.lstrip("-+").replace("-", "_").replace(".", "_").lower()


@lru_cache(maxsize=500)  # scripts share the files that they import
def options(source: Source) -> tuple[Option, ...]:
    """Every option `source` declares, in the order of its lines, each name once."""
    declared = sorted(_declared(source), key=lambda option: option.place.line)
    once: dict[tuple[str, str], Option] = {}
    for option in declared:
        once.setdefault((option.command, option.name), option)
    return tuple(once.values())


def _declared(source: Source) -> Iterator[Option]:
    subcommands = _subcommands(source)
    for call in source.calls():
        word = last_word(call)
        if word in ("add_argument", "add_option"):
            yield from _argparse(call, source, subcommands)
        elif word in ("option", "argument") and called(call).startswith("click."):
            yield from _click(call, source)
        elif word.startswith("DEFINE_"):
            yield from _absl(call, source)
        elif called(call) in ("fire.Fire", "Fire", "typer.run"):
            yield from _of_function(call, source)
        elif word in ("HfArgumentParser", "cli") and called(call) in (
            "HfArgumentParser",
            "transformers.HfArgumentParser",
            "tyro.cli",
        ):
            yield from _of_dataclasses(call, source)
    yield from _globals(source)
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef) and _is_typer_command(node, source):
            yield from _of_signature(node, source)
        elif isinstance(node, ast.Assign):
            yield from _argv(node, source)


def _argparse(call: ast.Call, source: Source, subcommands: dict[str, str]) -> Iterator[Option]:
    names = [text(word) for word in call.args if text(word)]
    if not names:
        return
    action = text(argument(call, "action")) or last_word(argument(call, "action") or ast.Pass())
    flag = (action.startswith("store_") and action != "store_const") or "Boolean" in action
    owner = called(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    nargs = literal(argument(call, "nargs"))
    default = argument(call, "default")
    positional = not names[0].startswith("-")
    if action in ("help", "version", "count"):
        return
    option = _option(names, call, source, default)
    yield replace(
        option,
        kind=POSITIONAL
        if positional
        else FLAG
        if flag and action != "store_false"
        else option.kind,
        required=literal(argument(call, "required")) is True
        or (positional and default is None and nargs not in ("?", "*")),
        command=subcommands.get(owner, ""),
        dest=text(argument(call, "dest")).lower(),
    )


def _click(call: ast.Call, source: Source) -> Iterator[Option]:
    names = [text(word) for word in call.args if text(word)]
    if not names:
        return
    default = argument(call, "default")
    positional = last_word(call) == "argument"
    switch = any("/" in name for name in names) or literal(argument(call, "is_flag")) is True
    names = [name.split("/")[0] for name in names if positional or name.startswith("-")]
    if not names:
        return
    made = _option(names, call, source, default)
    kind = argument(call, "type")
    offered = literal(argument(kind, "choices", 0)) if isinstance(kind, ast.Call) else None
    if last_word(kind or ast.Pass()) == "Choice" and isinstance(offered, (list, tuple)):
        made = replace(made, choices=tuple(map(str, offered)))
    yield replace(
        made,
        kind=POSITIONAL if positional else FLAG if switch else VALUE,
        required=literal(argument(call, "required")) is True
        or (positional and default is None and literal(argument(call, "required")) is None),
    )


def _option(names: list[str], call: ast.Call, source: Source, default: ast.expr | None) -> Option:
    """What argparse and click say alike."""
    spelled = next((name for name in names if name.startswith("--")), names[0])
    kind = last_word(argument(call, "type") or ast.Pass())
    choices = literal(argument(call, "choices"))
    return Option(
        spelled=spelled,
        kind=VALUE,
        place=source.place(call, spelled),
        default=_default(default, source),
        value=_number(default),
        choices=tuple(map(str, choices)) if isinstance(choices, (list, tuple)) else (),
        number=kind in ("int", "float", "INT", "FLOAT", "IntRange"),
        truth=kind in ("bool", "str2bool", "strtobool", "boolean", "str_to_bool"),
        help=text(argument(call, "help")),
        also=tuple(name for name in names if name != spelled),
    )


def _default(node: ast.expr | None, source: Source) -> str:
    value = "" if node is None else path_of(node, source)
    return "" if UNKNOWN in value else value


def _number(node: ast.expr | None) -> str:
    value = literal(node)
    return repr(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _absl(call: ast.Call, source: Source) -> Iterator[Option]:
    name = text(argument(call, "name", 0))
    if not name:
        return
    kind = last_word(call).removeprefix("DEFINE_")
    offered = literal(argument(call, "enum_values", 2)) if kind == "enum" else None
    yield Option(
        f"--{name}",
        FLAG if kind.startswith("bool") else VALUE,
        source.place(call, f"--{name}"),
        default=_default(argument(call, "default", 1), source),
        choices=tuple(map(str, offered)) if isinstance(offered, (list, tuple)) else (),
        value=_number(argument(call, "default", 1)),
        number=kind in ("integer", "float"),
        required=literal(argument(call, "required")) is True,
        help=text(argument(call, "help", 2)),
    )


def _of_function(call: ast.Call, source: Source) -> Iterator[Option]:
    wanted = {last_word(call.args[0]): ""} if call.args else {}
    if call.args and isinstance(call.args[0], ast.Dict):  # fire.Fire({"run": run})
        keys, values = call.args[0].keys, call.args[0].values
        wanted = {last_word(one): text(key) for key, one in zip(keys, values, strict=True) if key}
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef) and node.name in wanted:
            for option in _of_signature(node, source, dashes=called(call) == "typer.run"):
                yield replace(option, command=wanted[node.name])


def _is_typer_command(function: ast.FunctionDef, source: Source) -> bool:
    decorated = any(last_word(decorator) == "command" for decorator in function.decorator_list)
    return decorated and any(called(call) == "typer.Typer" for call in source.calls())


def _of_signature(
    function: ast.FunctionDef, source: Source, *, dashes: bool = True
) -> Iterator[Option]:
    """Parameters as typer (`--data-dir`) and fire (`--data_dir`) spell them."""
    hints = {
        parameter.arg: parameter for parameter in [*function.args.args, *function.args.kwonlyargs]
    }
    for name, default in parameters(function).items():
        spelled = "--" + (name.replace("_", "-") if dashes else name)
        given, positional = default, default is None and dashes
        if isinstance(default, ast.Call) and last_word(default) in ("Option", "Argument"):
            given = argument(default, "default", 0)
            positional = last_word(default) == "Argument"
            spelled = next(
                (text(parameter) for parameter in default.args if text(parameter)[:2] == "--"),
                spelled,
            )
        truth = isinstance(literal(given), bool)
        missing = given is None or literal(given) is Ellipsis
        hint = hints[name].annotation
        yield Option(
            name if positional else spelled.split("/")[0],
            POSITIONAL if positional else FLAG if truth else VALUE,
            source.place(hints[name], name if positional else spelled),
            default="" if missing else _default(given, source),
            value=_number(given),
            required=missing,
            number=called(hint) in ("int", "float") if hint else False,
        )


def _of_dataclasses(call: ast.Call, source: Source) -> Iterator[Option]:
    given = [each for node in call.args for each in ast.walk(node) if isinstance(each, ast.Name)]
    wanted = {each.id for each in given}
    if "TrainingArguments" in wanted or "Seq2SeqTrainingArguments" in wanted:
        yield Option("--output_dir", VALUE, source.place(call, "TrainingArguments"), required=True)
        yield Option("--do_train", FLAG, source.place(call, "TrainingArguments"))
        read = (node for node in source.nodes if isinstance(node, ast.Attribute))
        taken = next((node for node in read if node.attr == "resume_from_checkpoint"), None)
        if taken is not None:
            yield Option("--resume_from_checkpoint", VALUE, source.place(taken, taken.attr))
    for node in source.nodes:
        if isinstance(node, ast.ClassDef) and node.name in wanted:
            yield from _fields(node, source)


def _fields(node: ast.ClassDef, source: Source) -> Iterator[Option]:
    for line in node.body:
        if not (isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)):
            continue
        default, required = line.value, line.value is None
        hint = ast.unparse(line.annotation)
        if isinstance(default, ast.Call) and last_word(default) == "field":
            required = not any((each.arg or "").startswith("default") for each in default.keywords)
            default = argument(default, "default")
        yield Option(
            f"--{line.target.id}",
            FLAG if "bool" in hint else VALUE,
            source.place(line, f"--{line.target.id}"),
            default=_default(default, source),
            value=_number(default),
            required=required,
            number=hint in ("int", "float"),
        )


def _subcommands(source: Source) -> dict[str, str]:
    """The variables that hold a subcommand's parser, and the word each answers to."""
    commands: dict[str, str] = {}
    for node in source.nodes:
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        if last_word(node.value) == "add_parser" and node.value.args:
            commands |= {called(target): text(node.value.args[0]) for target in node.targets}
    return commands


def _argv(node: ast.Assign, source: Source) -> Iterator[Option]:
    """`data = sys.argv[1]` is a positional called `data`."""
    value = node.value
    if not (isinstance(value, ast.Subscript) and called(value.value) == "sys.argv"):
        return
    if isinstance(literal(value.slice), int) and isinstance(node.targets[0], ast.Name):
        name = node.targets[0].id
        yield Option(name, POSITIONAL, source.place(node, "sys.argv"), required=True)


def _globals(source: Source) -> Iterator[Option]:
    """`exec(open("configurator.py").read())`: what is assigned above it can be overridden."""
    lines = [call.lineno for call in source.calls() if called(call) == "exec" and _opens(call)]
    for node in source.tree.body:
        if not lines or node.lineno > lines[0] or not isinstance(node, ast.Assign):
            continue
        value, target = literal(node.value), node.targets[0]
        if isinstance(target, ast.Name) and isinstance(value, (str, int, float)):
            spelled = f"--{target.id}"
            yield Option(
                spelled,
                VALUE,
                source.place(node, target.id),
                default=_default(node.value, source),
                value=_number(node.value),
                number=not isinstance(value, str),
                style="joined",
            )


def _opens(call: ast.Call) -> bool:
    return any(isinstance(inner, ast.Call) and called(inner) == "open" for inner in ast.walk(call))
