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
    first = script.shown[0] if script.shown else None
    alone = any(not command.launcher for command in script.shown)
    if first is None or alone or first.launcher != TORCHRUN or _asks_for_its_rank(script):
        return None
    joins = any(name.endswith("init_process_group") for name in script.calls)
    return (TORCHRUN, first.place) if joins else None


def _asks_for_its_rank(script: Script) -> bool:
    """`"RANK" in os.environ`, or `os.environ.get("RANK")`: without it, it is one process."""
    for source in script.sources:
        for node in source.nodes:
            if isinstance(node, ast.Compare) and text(node.left) in _SET_BY_TORCHRUN:
                return True
            if not isinstance(node, ast.Call) or not node.args:
                continue
            asked = called(node) in ("os.environ.get", "os.getenv")
            if asked and text(node.args[0]) in _SET_BY_TORCHRUN:
                return True
    return False


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
                return scope.source.place(node, text(node.slice))
    return None
