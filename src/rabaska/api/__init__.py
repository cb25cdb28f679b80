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
from rabaska.api.projects import doctor, init, pack, plan, preview, rehearse, run, shell, use
from rabaska.api.runs import (
    cancel,
    exec,  # noqa: A004 - the word of the command line
    explain,
    fetch,
    logs,
    show,
    status,
    statuses,
    wait,
)

__all__ = [
    "cancel",
    "clean",
    "clusters",
    "data",
    "delete",
    "doctor",
    "exec",
    "explain",
    "fetch",
    "forget",
    "init",
    "logs",
    "note",
    "pack",
    "plan",
    "preview",
    "rehearse",
    "rerun",
    "resume",
    "run",
    "shell",
    "show",
    "status",
    "statuses",
    "storage",
    "use",
    "wait",
]
