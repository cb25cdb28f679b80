"""The few lines that would let a program resume, in the words of its own source."""

import ast
import re
from dataclasses import dataclass

from rabaska.scouting import script_traits
from rabaska.scouting.script_writes import imported
from rabaska.scouting.scripts import Script
from rabaska.scouting.source import Source, last_word

_OPTIMIZERS = re.compile(
    r"(^|_)(Adam\w*|SGD|RMSprop|Adagrad|Adadelta|AdamW\w*|Adafactor|LAMB|Lion)$"
)
_NAMED = re.compile(r"epoch|step|iter|episode|update", re.IGNORECASE)
_FOLDER = 'os.environ.get("RABASKA_CHECKPOINTS", ".")'
_CHECKPOINT = 'os.environ.get("RABASKA_CHECKPOINT")'


@dataclass(frozen=True)
class _Loop:
    """`for epoch in range(1, epochs + 1):`"""

    source: Source
    line: int
    counter: str
    first: str
    rest: str  # of the arguments of `range`


def advice(script: Script) -> tuple[str, ...]:
    """Lines to show; none where the training loop was not found."""
    fit = script_traits.uses(script, "fit")
    frameworks = {module.partition(".")[0] for module in _modules(script)}
    if fit and frameworks & {"lightning", "pytorch_lightning"}:
        return (f"to let it resume, in {fit}: give it ckpt_path={_CHECKPOINT}",)
    if fit and frameworks & {"keras", "tensorflow"}:
        backup = f"keras.callbacks.BackupAndRestore({_FOLDER})"
        return (f"to let it resume, in {fit}: add {backup} to its callbacks",)
    train = script_traits.uses(script, "trainer.train")
    if train and "transformers" in frameworks:
        return (f"to let it resume, in {train}: give it resume_from_checkpoint={_CHECKPOINT}",)
    return _for_torch(script) if "torch" in frameworks else ()


def _modules(script: Script) -> set[str]:
    return {module for source in script.sources for module in imported(source)}


def _for_torch(script: Script) -> tuple[str, ...]:
    loop = next((loop for source in script.sources if (loop := _loop(source))), None)
    if loop is None:
        return ()
    stateful = _stateful(loop.source)
    saved = ", ".join(f'"{name}": {name}.state_dict()' for name in stateful)
    loaded = [f'    {name}.load_state_dict(state["{name}"])' for name in stateful]
    return (
        f"to let it resume, change the loop in {loop.source.name}, line {loop.line}, to:",
        f'  path, first = os.path.join({_FOLDER}, "last.pt"), {loop.first}',
        "  if os.path.exists(path):",
        "      state = torch.load(path)",
        *(f"  {line}" for line in loaded),
        f'      first = state["{loop.counter}"] + 1',
        f"  for {loop.counter} in range(first, {loop.rest}):",
        "      …",
        f'      torch.save({{{saved}, "{loop.counter}": {loop.counter}}}, path)',
    )


def _loop(source: Source) -> _Loop | None:
    """The outermost loop over numbers that trains, or is named for it."""
    for node in source.nodes:  # those further out come first
        if not isinstance(node, ast.For) or not isinstance(node.target, ast.Name):
            continue
        if node.target.id.startswith("_"):  # the batches of one step, not the steps
            continue
        over = node.iter if isinstance(node.iter, ast.Call) else None
        if over is None or last_word(over) not in ("range", "trange") or not over.args:
            continue
        if _NAMED.search(node.target.id) or _trains(node):
            bounds = [ast.unparse(each) for each in over.args]
            first, rest = ("0", bounds) if len(bounds) == 1 else (bounds[0], bounds[1:])
            return _Loop(source, node.lineno, node.target.id, first, ", ".join(rest))
    return None


def _trains(loop: ast.For) -> bool:
    calls = (node for node in ast.walk(loop) if isinstance(node, ast.Call))
    return any(last_word(call) in ("backward", "train") for call in calls)


def _stateful(source: Source) -> list[str]:
    """The variables of the optimizers and of the models whose parameters they get."""
    models: dict[str, None] = {}
    optimizers: dict[str, None] = {}
    for node in source.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        if not _OPTIMIZERS.search(last_word(node.value)):
            continue
        optimizers[ast.unparse(node.targets[0])] = None
        for call in ast.walk(node.value):
            if isinstance(call, ast.Call) and last_word(call) == "parameters":
                owner = call.func.value if isinstance(call.func, ast.Attribute) else call
                models[ast.unparse(owner)] = None
    return [*models, *optimizers] or ["model", "optimizer"]
