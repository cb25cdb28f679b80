"""Imports that cost nothing until something in them is used; see `quick_status` for why."""

import sys
from importlib import import_module
from types import ModuleType


def import_later(name: str) -> None:
    """Let `import name` cost nothing until something in it is used.

    Not by importlib's LazyLoader: what it makes is loaded by the next `import` already.
    """
    if name in sys.modules:
        return
    stand_in = ModuleType(name)

    def load(attribute: str) -> object:
        # In this order, another thread that comes meanwhile finds all it needs, too.
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]
        stand_in.__dict__.update(vars(import_module(name)))
        stand_in.__dict__.pop("__getattr__", None)
        return getattr(stand_in, attribute)

    stand_in.__getattr__ = load  # type: ignore[method-assign]
    sys.modules[name] = stand_in
