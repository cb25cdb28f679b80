"""Every scheduler rabaska can speak to; a new one is a module and a line in this table."""

from collections.abc import Callable
from difflib import get_close_matches

from rabaska.errors import SettingsError
from rabaska.schedulers.local import Local
from rabaska.schedulers.moab import Moab
from rabaska.schedulers.pbs import Pbs
from rabaska.schedulers.protocol import Scheduler, Setting
from rabaska.schedulers.sge import Sge
from rabaska.schedulers.slurm import Slurm
from rabaska.schedulers.sqsub import Sqsub
from rabaska.schedulers.torque import Torque

SCHEDULERS: dict[str, Callable[[Setting], Scheduler]] = {
    "local": lambda there: Local(program=there.program, queue=there.queue),
    "slurm": lambda there: Slurm(gpus_as_gres=there.gpus_as_gres),
    "pbs": lambda there: Pbs(),
    "torque": lambda there: Torque(),
    "moab": lambda there: Moab(),
    "sqsub": lambda there: Sqsub(),
    "sge": lambda there: Sge(),
}


def named(
    name: str, *, program: tuple[str, ...], queue: str, gpus_as_gres: bool = False
) -> Scheduler:
    """The scheduler called `name`, told where our own program and queue are on its cluster."""
    if name not in SCHEDULERS:
        near = get_close_matches(name, SCHEDULERS, n=1)
        known = ", ".join(sorted(SCHEDULERS))
        raise SettingsError(
            f"there is no scheduler {name!r}",
            why=f"rabaska knows {known}",
            hint=f"did you mean {near[0]!r}?" if near else "see the cluster's profile",
        )
    return SCHEDULERS[name](Setting(program, queue, gpus_as_gres))
