"""Every scheduler rabaska can speak to; a new one is a module and a line in this table."""

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from rabaska.errors import SettingsError
from rabaska.schedulers.local import Local
from rabaska.schedulers.protocol import Scheduler

SCHEDULERS: dict[str, Callable[..., Scheduler]] = {
    "local": Local,
}


def named(name: str, **paths: Any) -> Scheduler:
    """The scheduler called `name`, given the paths it needs to know."""
    if name not in SCHEDULERS:
        near = get_close_matches(name, SCHEDULERS, n=1)
        known = ", ".join(sorted(SCHEDULERS))
        raise SettingsError(
            f"there is no scheduler {name!r}",
            why=f"rabaska knows {known}",
            hint=f"did you mean {near[0]!r}?" if near else "see the cluster's profile",
        )
    return SCHEDULERS[name](**paths)
