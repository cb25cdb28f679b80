"""Every scheduler rabaska can speak to; a new one is a module and a line in this table."""

import importlib
from dataclasses import fields
from typing import cast

from rabaska.errors import SettingsError
from rabaska.schedulers.protocol import Scheduler, Setting

# name: its class, in the module of the same name. A command imports only the one it speaks to.
# A site that shows several has the first of them: one that stands on another comes before it.
SCHEDULERS = {
    "slurm": "Slurm",
    "flux": "Flux",
    "sqsub": "Sqsub",
    "moab": "Moab",
    "sge": "Sge",
    "pbs": "Pbs",
    "torque": "Torque",
    "local": "Local",
}


def named(
    name: str,
    *,
    program: tuple[str, ...],
    queue: str,
    gpus_as_gres: bool = False,
    names_cores: bool = True,
) -> Scheduler:
    """The scheduler called `name`, told where our own program and queue are on its cluster."""
    if name not in SCHEDULERS:
        from difflib import get_close_matches

        near = get_close_matches(name, SCHEDULERS, n=1)
        known = ", ".join(sorted(SCHEDULERS))
        raise SettingsError(
            f"there is no scheduler {name!r}",
            why=f"rabaska knows {known}",
            hint=f"did you mean {near[0]!r}?" if near else "see the cluster's profile",
        )
    kind = getattr(importlib.import_module(f"rabaska.schedulers.{name}"), SCHEDULERS[name])
    setting = Setting(program, queue, gpus_as_gres, names_cores)
    told = {field.name: getattr(setting, field.name) for field in fields(kind)}
    return cast(Scheduler, kind(**told))
