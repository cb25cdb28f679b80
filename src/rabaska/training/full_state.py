"""Everything that has state, to a checkpoint and back."""

from typing import Any, Callable, Dict, List, Optional, Tuple

from . import lazy_imports, state_tree
from .errors import CannotResume, WrongUse
from .random_state import State

Parts = Dict[str, Any]


def check(parts: Parts) -> None:
    for name, part in parts.items():
        if isinstance(part, dict):
            continue
        if not (hasattr(part, "state_dict") and hasattr(part, "load_state_dict")):
            raise WrongUse(
                "`{}` cannot be saved by a session".format(name),
                why="a {} has no state_dict and load_state_dict".format(type(part).__name__),
                hint="add both methods, or keep its values in a dictionary",
            )


def encoded(
    parts: Parts, own: Dict[str, Any], generators: List[State]
) -> Tuple[Any, state_tree.Tensors]:
    """The whole state as values for JSON, and the tensors they name."""
    inside = {name: _state_of(part) for name, part in parts.items()}
    text, tensors = state_tree.encode(inside, "parts")
    others, more = state_tree.encode(generators, "generators")
    state = {"is": "dict", "of": {"parts": text, "generators": others}}
    state["of"]["session"] = state_tree.encode(own, "session")[0]  # type: ignore[index]
    return state, dict(tensors, **more)


def _state_of(part: Any) -> Any:
    # A dictionary of whatever class: it is filled again, not made again.
    return dict(part) if isinstance(part, dict) else part.state_dict()


def restore(saved: Parts, parts: Parts) -> None:
    for name, part in parts.items():
        if isinstance(part, dict):
            part.clear()
            part.update(saved[name])
            continue
        try:
            part.load_state_dict(saved[name])
        except (RuntimeError, ValueError, KeyError, TypeError) as problem:
            raise CannotResume(
                "`{}` cannot load the saved state".format(name),
                why=str(problem),
                hint="use the {} that was saved, or another folder".format(name),
            ) from problem


def fits(saved: Dict[str, Any], parts: Parts, ranks: int) -> None:
    """Refuse a checkpoint that another program, or another number of processes, has made."""
    before = saved["session"]["ranks"]
    if before != ranks:
        raise CannotResume(
            "this run began with WORLD_SIZE {} and cannot continue with {}".format(before, ranks),
            why="the samples of each batch, and so every loss, depend on the number of processes",
            hint="use WORLD_SIZE {} again, or start a new run".format(before),
        )
    missing, surplus = set(parts) - set(saved["parts"]), set(saved["parts"]) - set(parts)
    if missing or surplus:
        raise CannotResume(
            "the checkpoint and the session have different parts",
            why="saved: {}; now: {}".format(_list(saved["parts"]), _list(parts)),
            hint="give the session the same names as when the run began",
        )


def same_recipe(saved: Optional[Dict[str, Any]], now: Dict[str, Any]) -> None:
    """Refuse to continue in an order that is not the one that was begun."""
    if saved is None or saved == now:
        return
    changed = [
        "{} was {} and is {}".format(name, saved.get(name), now[name])
        for name in now
        if saved.get(name) != now[name]
    ]
    raise CannotResume(
        "the loader cannot continue where it stopped",
        why="; ".join(changed),
        hint="use the first values again, or start a new run",
    )


def pin_threads(before: int, say: Callable[[str], None]) -> None:
    """As many threads as at the beginning: another number adds up in another order."""
    torch = lazy_imports.torch()
    if torch.get_num_threads() != before:
        say("torch.set_num_threads({}), as when this run began".format(before))
        torch.set_num_threads(before)


def _list(parts: Parts) -> str:
    return ", ".join(sorted(parts)) or "none"
