"""The commands as functions: the same words, typed results.

import rabaska

submitted = rabaska.run("path/to/project")
ended = rabaska.wait(submitted.run)
print(ended.state, ended.metrics)
rabaska.fetch(ended.name)
"""

from rabaska.api import data
from rabaska.api.again import delete, forget, note, rerun, resume
from rabaska.api.cluster import clean, clusters, storage
from rabaska.api.pages import code, jupyter, tensorboard
from rabaska.api.projects import doctor, init, pack, plan, preview, rehearse, run, shell, use
from rabaska.api.runs import (
    cancel,
    exec,  # noqa: A004 - the word of the command line
    explain,
    fetch,
    logs,
    report,
    show,
    status,
    statuses,
    ui,
    wait,
    watch,
)
from rabaska.api.searches import search

__all__ = [
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
