"""The reference page of the command line, written from the commands themselves."""

import inspect
import re
from collections.abc import Iterator

import click

from rabaska import errors
from rabaska.cli.commands import rabaska

_INTRODUCTION = """\
# The command line

`rabaska COMMAND --help` prints the same in a terminal. Without `RUN`, a command uses the newest run
of the project in the current folder. A run's name can be shortened as long as only one run matches.
Results go to standard output, everything else to standard error: `run=$(rabaska run)` works.
`--json` prints a command's result for a script; its `view` holds the words that the command prints
otherwise.
"""

_EXIT_CODES = """\
## Exit codes

`rabaska wait` and `rabaska run --wait` end with the program's exit code if it failed, and with 128
plus the signal's number if a signal ended it; with 5 if its data was damaged, with 14 or 17 if the
chain could not advance or started over. All other codes:

| Code | Name in Python | Meaning |
|---:|---|---|
| 0 |  | Success. |
| 1 |  | A bug, with its traceback; or `doctor`, `plan` or `clusters check` found a problem. |
"""


def page() -> str:
    parts = [_INTRODUCTION]
    for name, command in _commands(rabaska, ""):
        parts.append(_section(name, command))
    return "\n".join([*parts, _EXIT_CODES + "\n".join(_exit_codes()) + "\n"])


def _commands(group: click.Group, before: str) -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name, in the order of `--help`."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None:
            continue
        yield before + name, command
        if isinstance(command, click.Group):
            yield from _commands(command, before + name + " ")


def _section(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"rabaska {name}", terminal_width=200)
    usage = command.get_usage(context).removeprefix("Usage: ")
    lines = [f"## rabaska {name}\n", f"`{usage}`\n", inspect.cleandoc(command.help or ""), ""]
    options = [
        _option(option, context) for option in command.params if isinstance(option, click.Option)
    ]
    if options:
        lines += ["| Option | Meaning |", "|---|---|", *options, ""]
    return "\n".join(lines)


def _option(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    spelled, meaning = record if record else ("", "")
    plain = " ".join(meaning.split())
    return f"| `{spelled.replace('INTEGER RANGE', 'NUMBER')}` | {plain} |"


def _exit_codes() -> Iterator[str]:
    """The rows of the table that opens errors.py, which a test holds to the classes below it."""
    for name, code, meaning in re.findall(r"── (\w+) +(\d+) +(.+)", errors.__doc__ or ""):
        yield f"| {code} | `rabaska.errors.{name}` | {_sentence(meaning)} |"
    yield "| 130 |  | Ctrl-C; submitted jobs keep running. |"


def _sentence(text: str) -> str:
    first, _, rest = text.partition(" ")
    return f"{first} {rest}." if "." in first else f"{text[0].upper()}{text[1:]}."
