"""A cluster: how to reach it, how it schedules, where it stores."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cluster:
    name: str
    title: str
    scheduler: str  # a name in `schedulers`
    host: str = ""  # as ssh knows it; empty: this computer
    transfer_host: str = ""  # for large transfers, where the site has one
    ssh_options: tuple[str, ...] = ()
    store: str = ""  # where packs, runs and environments are kept; may hold shell variables
    local_space: str = ""  # node-local storage, as a shell expression
    python: str = "python3"  # what runs the node side there
    source: str = ""
    checked: str = ""
    notes: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_here(self) -> bool:
        return not self.host
