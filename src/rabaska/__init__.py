"""rabaska carries a training project from a laptop to any HPC cluster and back.

The commands of the program are functions here: `rabaska.run()`, `rabaska.status()` …
They are imported when first used, so that `import rabaska` costs nothing.
"""

from rabaska.node.version import __version__

TYPE_CHECKING = False  # as a type checker reads it; `import rabaska` does not wait for `typing`
if TYPE_CHECKING:
    from rabaska.api import (
        cancel,
        clean,
        clusters,
        code,
        data,
        delete,
        doctor,
        exec,  # noqa: A004 - the word of the command line
        explain,
        fetch,
        forget,
        init,
        jupyter,
        logs,
        note,
        pack,
        plan,
        preview,
        rehearse,
        report,
        rerun,
        resume,
        run,
        search,
        shell,
        show,
        status,
        statuses,
        storage,
        tensorboard,
        ui,
        use,
        wait,
        watch,
    )

__all__ = [
    "__version__",
    "cancel",
    "clean",
    "clusters",
    "code",
    "data",
    "delete",
    "doctor",
    "exec",
    "explain",
    "fetch",
    "forget",
    "init",
    "jupyter",
    "logs",
    "note",
    "pack",
    "plan",
    "preview",
    "rehearse",
    "report",
    "rerun",
    "resume",
    "run",
    "search",
    "shell",
    "show",
    "status",
    "statuses",
    "storage",
    "tensorboard",
    "ui",
    "use",
    "wait",
    "watch",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'rabaska' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module("rabaska.api"), name)


def __dir__() -> list[str]:
    return __all__
