"""rabaska carries a training project from a laptop to any HPC cluster and back.

The commands of the program are functions here: `rabaska.run()`, `rabaska.status()` …
They are imported when first used, so that `import rabaska` costs nothing.
"""

from rabaska.node.version import __version__

__all__ = [
    "__version__",
    "cancel",
    "clusters",
    "fetch",
    "init",
    "logs",
    "pack",
    "preview",
    "rehearse",
    "resume",
    "run",
    "show",
    "status",
    "statuses",
    "wait",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'rabaska' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module("rabaska.api"), name)


def __dir__() -> list[str]:
    return __all__
