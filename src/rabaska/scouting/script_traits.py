"""What else a script gives away: how it prints progress, whether it uses GPUs, its launcher."""

import ast
import re

from rabaska.scouting.scopes import Program, Scope
from rabaska.scouting.scripts import Script
from rabaska.scouting.source import SourceLine, argument, called, last_word, literal

# `epoch <NUL> step <NUL>`: the counter before it, if any, tells a line of progress from
# "resuming at step <NUL>".
_COUNTED = re.compile(
    r"(?P<before>\w+[^\w\x00]{1,3}\x00[^\w\x00]{1,3})?"
    r"(?P<word>global[ _]step|step|iteration|iter|epoch)(?P<between>[^\w\x00]{1,3})\x00",
    re.IGNORECASE,
)
_PRINTS = ("print", "info", "write", "debug")
_DEEPEST = 4  # functions that call functions
_BETTER = ("global step", "global_step", "step", "iteration", "iter", "epoch")
_ON_GPU = re.compile(r"\.cuda$|cuda\.is_available$|list_physical_devices$|cuda\.device_count$")
_DEVICE = re.compile(r"cuda(:\d+)?")
_MANY_GPUS = re.compile(
    r"DistributedDataParallel$|init_process_group$|MirroredStrategy$|FullyShardedDataParallel$"
)


def progress(script: Script) -> tuple[str, SourceLine] | None:
    """A pattern for the step numbers it prints, from the text of its print and log calls."""
    candidates: dict[tuple[int, bool], tuple[str, SourceLine]] = {}
    program = Program(script.sources)
    for scope in program.scopes:
        source = scope.source
        for call in scope.nodes:
            if not isinstance(call, ast.Call) or last_word(call) not in _PRINTS:
                continue
            if not is_repeated(call, scope, program):
                continue
            for match in _COUNTED.finditer(_printed(call)):
                word = match["word"].lower()
                unit = "epoch" if word == "epoch" else "step"
                pattern = _pattern(match[0].removesuffix("\x00")) + rf"(?P<{unit}>\d+)"
                rank = (_BETTER.index(word), not match["before"])
                candidates.setdefault(rank, (pattern, source.place(call, called(call))))
    return candidates[min(candidates)] if candidates else None


def is_repeated(node: ast.AST, scope: Scope, program: Program, depth: int = 0) -> bool:
    """Whether it is done in a loop, or by a function that is called in one or from outside.

    What is printed once, as "starting at epoch 0", tells no progress.
    """
    if any(isinstance(parent, ast.For | ast.While) for parent in scope.around(node)):
        return True
    if scope.above is None or depth > _DEEPEST:
        return False
    calls = list(program.calls_of(scope))
    named = getattr(scope.node, "name", "") in ("main", "__init__")
    if not calls:
        return not named
    return any(is_repeated(call, caller, program, depth + 1) for caller, call in calls)


def _pattern(printed: str) -> str:
    """An expression for printed text: any blanks for a blank, any word for a value."""
    loose = {" ": r"\s*", "\t": r"\s*", "\n": r"\s*", "\x00": r"\S+"}
    return "".join(loose.get(letter) or re.escape(letter) for letter in printed)


def _printed(call: ast.Call) -> str:
    """The text of a call's arguments, with a NUL for each value put in."""
    return " ".join(_text(argument) for argument in call.args)


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"\{[^}]*\}|%[-+ #0]*\d*(?:\.\d+)?[dis]", "\x00", node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.Call) and last_word(node) == "format":
        return _text(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    if isinstance(node, ast.BinOp):
        return _text(node.left)
    return "\x00"


def gpus(script: Script) -> tuple[str, SourceLine] | None:
    """`several`, `needed` or `used` when there are any, with the place that tells."""
    calls = script.calls
    several = _first(calls, _MANY_GPUS)
    if several:
        return "several", several
    place = _first(calls, _ON_GPU)
    if place is None:
        named = _named_device(script)
        return ("used", named) if named else None
    return ("used" if asks_for_gpu(script) else "needed"), place


def asks_for_gpu(script: Script) -> bool:
    """Whether it asks if there is a GPU, so that it may do without."""
    return any(name.endswith(("is_available", "device_count")) for name in script.calls)


def _named_device(script: Script) -> SourceLine | None:
    """Where a device is named: `.to("cuda")`, `--device` with the default `cuda:0`."""
    for source in script.sources:
        for node in source.nodes:
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and _DEVICE.fullmatch(text):
                return source.place(node, f'"{text}"')
            keyword = node if isinstance(node, ast.keyword) else None
            if keyword and keyword.arg == "accelerator" and literal(keyword.value) == "gpu":
                return source.place(keyword.value, 'accelerator="gpu"')
    return None


def _first(calls: dict[str, SourceLine], wanted: re.Pattern[str]) -> SourceLine | None:
    return next((place for name, place in calls.items() if wanted.search(name)), None)


def downloads(script: Script) -> SourceLine | None:
    """Where the script would fetch its data by itself, as torchvision's datasets do."""
    for source in script.sources:
        for call in source.calls():
            if literal(argument(call, "download")) is True:
                return source.place(call, called(call))
    return None


def asks_terminal(script: Script) -> SourceLine | None:
    """Where it would end for want of a terminal: `os.popen('stty size')`."""
    for source in script.sources:
        for node in source.nodes:
            if isinstance(node, ast.Constant) and node.value == "stty size":
                return source.place(node, "stty")
    return None


def uses(script: Script, name: str) -> SourceLine | None:
    """Where a call of `name` stands, if there is one."""
    return _first(script.calls, re.compile(rf"(^|\.){re.escape(name)}$"))


def lightning_commands(script: Script) -> SourceLine | None:
    """Where `LightningCLI` takes `fit` and its options; with `run=False` it takes neither."""
    for source in script.sources:
        for call in source.calls():
            if last_word(call) == "LightningCLI" and literal(argument(call, "run")) is not False:
                return source.place(call, called(call))
    return None
