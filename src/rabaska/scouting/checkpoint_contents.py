"""Whether a program's checkpoints hold more than tensors, which newer PyTorch does not load."""

import ast
import re
from collections.abc import Iterator

from rabaska.scouting import script_traits
from rabaska.scouting.script_writes import imported
from rabaska.scouting.scripts import Script
from rabaska.scouting.source import SourceLine, argument, called, last_word, literal, text

# Since 2.6, `torch.load` takes tensors and plain values only, unless it or this variable says so.
VARIABLE = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
_STATE = {"model", "state_dict", "net", "optimizer", "model_state_dict", "optimizer_state_dict"}
_OBJECTS = re.compile(r"(args|opts?|options|config|cfg|hparams|hps|flags|settings)$", re.IGNORECASE)
_MODELS = re.compile(r"(model|net|network)$", re.IGNORECASE)


def more_than_tensors(script: Script) -> SourceLine | None:
    """Where it saves an object of its own, if it also loads without saying that it may."""
    lightning = _hyperparameters(script)
    if lightning:
        return lightning
    if not any(_loads_plainly(call) for source in script.sources for call in source.calls()):
        return None
    return _saved_objects(script)


def _hyperparameters(script: Script) -> SourceLine | None:
    """What Lightning saves beside the state: the arguments of a module, objects among them."""
    kept = script_traits.uses(script, "save_hyperparameters")
    made = script_traits.uses(script, "instantiate")
    lightning = any(
        "lightning" in module for source in script.sources for module in imported(source)
    )
    return (kept or made) if lightning else None


def refused(script: Script, load: str) -> SourceLine | None:
    """Where it saves an object that `load`, a place of its own, refuses by `weights_only=True`."""
    calls = [(source, call) for source in script.sources for call in source.calls()]
    if any(last_word(call) in ("add_safe_globals", "safe_globals") for _, call in calls):
        return None
    for source, call in calls:
        strict = literal(argument(call, "weights_only")) is True
        if strict and str(source.place(call, called(call))) == load:
            return _saved_objects(script)
    return None


def _saved_objects(script: Script) -> SourceLine | None:
    for source in script.sources:
        for node in source.nodes:
            if _holds_objects(node) or _saves_whole_model(node):
                return source.place(node, called(node))
    return None


def _loads_plainly(call: ast.Call) -> bool:
    return called(call) in ("torch.load", "th.load") and argument(call, "weights_only") is None


def _holds_objects(node: ast.AST) -> bool:
    """`{"model": model.state_dict(), "args": args}`, or the same by `dict(…)`."""
    items = dict(_items(node))
    if not items.keys() & _STATE:
        return False
    named = (value for value in items.values() if isinstance(value, (ast.Name, ast.Attribute)))
    return any(_OBJECTS.search(last_word(value)) for value in named)


def _items(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:
                yield text(key), value
    elif isinstance(node, ast.Call) and called(node) == "dict":
        for keyword in node.keywords:
            yield keyword.arg or "", keyword.value


def _saves_whole_model(node: ast.AST) -> bool:
    """`torch.save(model, path)`, or `torch.save(dict(net=net), path)`."""
    if not isinstance(node, ast.Call) or called(node) not in ("torch.save", "th.save"):
        return False
    saved = node.args[0] if node.args else None
    values = [saved, *(value for _, value in _items(saved))] if saved is not None else []
    plain = [value for value in values if isinstance(value, (ast.Name, ast.Attribute))]
    return any(_MODELS.search(last_word(value)) for value in plain)
