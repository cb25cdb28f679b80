"""Modules that others import and hardly ever use."""

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec


def import_later(name: str) -> None:
    """Let `import name` cost nothing until somebody uses what is in it."""
    spec = None if name in sys.modules else find_spec(name)
    if spec is None or spec.loader is None:
        return
    spec.loader = LazyLoader(spec.loader)
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
