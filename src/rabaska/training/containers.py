"""Containers of a state, each as its kind and its parts: what is read back is of the same class.

PyTorch's own schedulers count on it: a `MultiStepLR` adds up a Counter. A class that is not known
here is refused, since it would come back as something else.
"""

import sys
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import lazy_imports

_FACTORIES: Dict[str, Any] = {
    kind.__name__: kind for kind in (int, float, bool, str, list, dict, set, tuple, Counter)
}
_OF_ITEMS: Dict[str, Callable[[List[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}
_OF_PAIRS: Dict[str, Callable[[Dict[Any, Any]], Any]] = {
    "dict": dict,
    "ordered": OrderedDict,
    "counter": Counter,
}


class ContainerParts(NamedTuple):
    """A container taken apart."""

    kind: str
    about: Any = None  # what else it takes to make it again, fit for JSON
    items: Optional[List[Any]] = None
    pairs: Optional[Dict[Any, Any]] = None


def parts_of(value: Any) -> Optional[ContainerParts]:
    """The parts of a container; None for what is none, or of a class that is not known."""
    for kind, mapping in _OF_PAIRS.items():
        if type(value) is mapping:
            return ContainerParts(kind, pairs=value)
    for kind, sequence in _OF_ITEMS.items():
        if type(value) is sequence:
            return ContainerParts(kind, items=list(value))
    if type(value) is defaultdict:
        return _default(value)
    if type(value) is deque:
        return ContainerParts("deque", about=value.maxlen, items=list(value))
    if type(value) is lazy_imports.torch().Size:
        return ContainerParts("size", items=list(value))
    if isinstance(value, tuple) and hasattr(value, "_fields") and hasattr(value, "_make"):
        made_by = type(value)
        about = [made_by.__module__, made_by.__qualname__, list(value._fields)]
        return ContainerParts("namedtuple", about=about, items=list(value))
    return None


def _default(value: Any) -> Optional[ContainerParts]:
    factory = value.default_factory
    name = "" if factory is None else factory.__name__
    if factory is not None and _FACTORIES.get(name) is not factory:
        return None
    return ContainerParts("defaultdict", about=name, pairs=value)


def made_of_items(kind: str, about: Any, items: List[Any]) -> Any:
    if kind == "deque":
        return deque(items, about)
    if kind == "size":
        return lazy_imports.torch().Size(items)
    if kind == "namedtuple":
        return _named(*about)._make(items)
    return _OF_ITEMS[kind](items)


def made_of_pairs(kind: str, about: Any, pairs: Dict[Any, Any]) -> Any:
    if kind == "defaultdict":
        return defaultdict(_FACTORIES.get(about), pairs)
    return _OF_PAIRS[kind](pairs)


def is_of_items(kind: str) -> bool:
    return kind in _OF_ITEMS or kind in ("deque", "size", "namedtuple")


def is_of_pairs(kind: str) -> bool:
    return kind in _OF_PAIRS or kind == "defaultdict"


def _named(module: str, name: str, fields: List[str]) -> Any:
    """The class itself where the program has it, else one like it; nothing is imported for it."""
    kind: Any = sys.modules.get(module)
    for part in name.split("."):
        kind = getattr(kind, part, None)
    is_tuple = isinstance(kind, type) and issubclass(kind, tuple)
    if is_tuple and list(getattr(kind, "_fields", ())) == fields:
        return kind
    return namedtuple(name.rpartition(".")[2], fields)


def why_not(value: Any) -> Tuple[str, str]:
    """Why something like a container is not saved, and what to do."""
    kind = "{}.{}".format(type(value).__module__, type(value).__qualname__)
    if type(value) is defaultdict:
        return (
            "it is a defaultdict whose default_factory is {!r}".format(value.default_factory),
            "give it a factory such as `int` or `list`, or save `dict(...)` of it",
        )
    return (
        "it is a {}, which would be loaded as a plain container".format(kind),
        "save `dict(...)`, `list(...)` or `tuple(...)` of it",
    )
