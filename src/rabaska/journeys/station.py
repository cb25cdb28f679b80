"""A cluster made ready for a journey: its place, its scheduler, and our program there."""

import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rabaska import schedulers
from rabaska.domain.clusters import Cluster
from rabaska.errors import CommandFailed
from rabaska.packing.bundle import bundle
from rabaska.records.home import Home
from rabaska.remote.here import Here
from rabaska.remote.place import Outcome, Place, quoted
from rabaska.schedulers.protocol import Scheduler
from rabaska.settings.profiles import load_cluster


@dataclass(frozen=True)
class Station:
    cluster: Cluster
    place: Place
    store: str
    python: str
    program: Path  # our node side on this computer; it is sent under the same name

    @property
    def node(self) -> tuple[str, ...]:
        """The words that start our node side on the cluster."""
        return (self.python, f"{self.store}/node/{self.program.name}")

    @cached_property
    def scheduler(self) -> Scheduler:
        return schedulers.named(
            self.cluster.scheduler, program=self.node, queue=f"{self.store}/queue"
        )

    def run_folder(self, run: str) -> str:
        return f"{self.store}/runs/{run}"

    def ask(self, *words: str) -> Outcome:
        """Run one of our own words on the cluster; CommandFailed when it fails."""
        outcome = self.place.run(quoted([*self.node, *words]))
        if outcome.exit_code != 0:
            raise CommandFailed(
                f"`{words[0]}` failed on {self.cluster.name}", why=outcome.complaint
            )
        return outcome


def station(name: str, home: Home) -> Station:
    """The cluster called `name`, with our program in place there."""
    ready = plan_station(name, home, program=bundle(home.store / "node"))
    ready.place.send(ready.program, ready.node[-1])
    return ready


def plan_station(name: str, home: Home, *, program: Path) -> Station:
    """The same, with nothing sent yet."""
    cluster = load_cluster(name, user_profiles=home.profiles)
    return Station(
        cluster=cluster,
        place=Here(),
        store=cluster.store or str(home.store),
        python=sys.executable if cluster.is_here else cluster.python,
        program=program,
    )
