"""Whether a program must be started by torchrun: it takes its rank from the variables it sets."""

import ast

from rabaska.scouting.scopes import Program
from rabaska.scouting.scripts import Script
from rabaska.scouting.shown_commands import TORCHRUN
from rabaska.scouting.source import SourceLine, called, text

_SET_BY_TORCHRUN = ("LOCAL_RANK", "RANK", "WORLD_SIZE")


def launch_needed(script: Script) -> tuple[str, SourceLine] | None:
    """The launcher, and the place that tells; None where the program is started by itself."""
    place = _takes_its_rank(script)
    if place:
        return TORCHRUN, place
    shown = [command for command in script.shown if command.launcher]
    alone = any(not command.launcher for command in script.shown)
    first = shown[0] if shown and not alone else None
    return (TORCHRUN, first.place) if first and first.launcher == TORCHRUN else None


def _takes_its_rank(script: Script) -> SourceLine | None:
    """`os.environ["LOCAL_RANK"]`, with nothing that asks first whether it is set."""
    for scope in Program(script.sources).scopes:
        for node in scope.nodes:
            if not isinstance(node, ast.Subscript) or called(node.value) != "os.environ":
                continue
            if not isinstance(node.ctx, ast.Load) or text(node.slice) not in _SET_BY_TORCHRUN:
                continue
            around = list(scope.around(node))
            if not any(isinstance(each, (ast.If, ast.IfExp, ast.Try)) for each in around):
                return scope.source.place(node, f"os.environ[{text(node.slice)!r}]")
    return None
