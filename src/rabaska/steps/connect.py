"""A connected cluster: its place, its scheduler, its store, and our program there."""

import os
import posixpath
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rabaska
from rabaska import schedulers
from rabaska.domain.clusters import Cluster
from rabaska.errors import CommandFailed, Unreachable
from rabaska.node import files
from rabaska.records import caches
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.remote.place import NO_PROGRAM, Outcome, Place, quoted
from rabaska.schedulers.protocol import Scheduler
from rabaska.settings.profile_files import profile_files
from rabaska.steps.store import USUAL, resolved_store


def node_program(folder: Path) -> Path:
    """The bundle in `folder`; it is made only when a source is not what it was."""
    note, sources = folder / "newest.json", _fingerprint()
    known = _known(note)
    program = folder / str(known.get("name", ""))
    if known.get("sources") == sources and program.is_file():
        return program
    from rabaska.packing.node_bundle import bundle

    program = bundle(folder)
    files.write_json(str(note), {"sources": sources, "name": program.name})
    return program


def _known(note: Path) -> dict[str, Any]:
    try:
        value = files.read_json(str(note))
    except (OSError, ValueError):
        return {}
    return value or {}


def _fingerprint() -> list[list[str | int]]:
    """Names, sizes and times of all that goes into the bundle: ninety looks, no reading."""
    package = Path(rabaska.__file__).parent
    seen = [_look(str(package / "packing" / "node_bundle.py"))]
    for source in ("node", "training"):
        for parent, folders, names in os.walk(package / source):
            folders[:] = [folder for folder in folders if folder != "__pycache__"]
            seen += [_look(f"{parent}/{name}") for name in names]
    return sorted(seen)


def _look(path: str) -> list[str | int]:
    found = os.stat(path)  # noqa: PTH116 - twice as fast as a Path, and there are ninety
    return [path, found.st_size, found.st_mtime_ns]


if TYPE_CHECKING:
    from rabaska.domain.clusters import Observations
    from rabaska.steps.progress import Reporter

_WAY_IN = (
    "import gc, os, sys; gc.disable(); sys.path.insert(0, sys.argv[1]); "
    "from rabaska.node.__main__ import main; "
    "code = main(sys.argv[2:]); sys.stdout.flush(); os._exit(code)"
)


@dataclass(frozen=True)
class ConnectedCluster:
    """A cluster, the way to it, and our node side there."""

    cluster: Cluster
    place: Place
    store: str
    python: str
    program: Path  # our node side on this computer; it is sent under the same name

    @property
    def node(self) -> tuple[str, ...]:
        """The words that start our node side on the cluster."""
        return (self.python, f"{self.store}/node/{self.program.name}")

    @property
    def name(self) -> str:
        return self.cluster.name

    @cached_property
    def scheduler(self) -> Scheduler:
        return scheduler_of(self.cluster, self.node, f"{self.store}/queue")

    def find_command(self, run: str) -> tuple[str, ...]:
        """What asks the queue for a job of `run` whose id was lost; nothing where it cannot."""
        from rabaska.schedulers.spelling import job_name

        words = self.scheduler.capabilities.find
        return tuple(word.replace("{name}", job_name(run)) for word in words)

    def run_folder(self, run: str) -> str:
        return f"{self.store}/runs/{run}"

    def run(self, script: str, *, feed: bytes = b"", again: str = "") -> Outcome:
        """Run a script that uses our node side; it is sent first where it is missing.

        Asking and doing are one round trip, because it is nearly always there. For `again`
        see `Place.run`.
        """
        outcome = self.place.run(self.guarded(script), feed=feed, again=again)
        if outcome.exit_code != NO_PROGRAM:
            return outcome
        self.send_program()
        outcome = self.place.run(self.guarded(script), feed=feed)
        if outcome.exit_code == NO_PROGRAM:
            raise CommandFailed(
                f"rabaska's own program on {self.cluster.name} is not used",
                why=f"{posixpath.dirname(self.node[-1])} belongs to another user, who could "
                "change what runs there in your name",
                hint="change `store` under [storage] in the cluster's profile to a folder of your "
                "own, and start another run",
            )
        return outcome

    def guarded(self, script: str) -> str:
        """A script that uses our node side, and does nothing where it is missing."""
        # Owned by us, too: a program that somebody else put there, or can replace, is none of ours.
        program = self.node[-1]
        folder = posixpath.dirname(program)
        ours = f"[ -O {quoted([folder])} ] && [ -O {quoted([program])} ]"
        return f"{ours} || exit {NO_PROGRAM}\n{script}"

    def send_program(self) -> None:
        self.place.send(self.program, self.node[-1])

    def quickly(self, *words: str) -> str:
        """The script of a word that is asked often, run by the compiled copy where there is one.

        Without site packages and the user's variables, for our node side needs neither, and by
        the shortest way in and out: what Python imports to run a zip, and takes apart when it
        ends, costs more than our own modules.
        """
        program = quoted([self.node[-1]])
        ready = f'program={program}; [ -O "$program".compiled ] && program=$program.compiled'
        return (
            f'{ready}; {quoted([self.python])} -ISc {quoted([_WAY_IN])} "$program" {quoted(words)}'
        )

    def ask(self, *words: str) -> Outcome:
        """Run one of our own words on the cluster; CommandFailed when it fails."""
        outcome = self.run(quoted([*self.node, *words]))
        if outcome.exit_code != 0:
            raise CommandFailed(
                f"`{words[0]}` failed on {self.cluster.name}", why=outcome.complaint
            )
        return outcome


def scheduler_of(cluster: Cluster, node: tuple[str, ...] = (), queue: str = "") -> Scheduler:
    """The scheduler of a cluster; to ask it about jobs, nobody has to be connected."""
    return schedulers.named(
        cluster.scheduler,
        program=node,
        queue=queue,
        gpus_as_gres=cluster.gpus_as_gres,
        names_cores=cluster.names_cores,
    )


def connect(
    name: str,
    home: Home,
    reporter: "Reporter | None" = None,
    *,
    profile: Cluster | None = None,
) -> ConnectedCluster:
    """The cluster called `name`, ready for new runs; `profile` where it was read already.

    A `reporter` is told that the cluster is retired and, at first use, where it differs from its
    profile: profiles hold facts that nobody could verify, so they are compared once.
    """
    cluster, observed = profile or cluster_named(name, home), observations_of(name, home)
    place, program = place_of(cluster), node_program(home.store / "node")
    if reporter and cluster.retirement:
        reporter.warn(cluster.retirement)
    elif reporter and cluster.probe and not cluster.is_here and observed is None:
        from rabaska.steps.probe_site import compare_profile

        observed = compare_profile(cluster, place, home, reporter)
    return _connected(cluster, observed, place, home, program)


def _connected(
    cluster: Cluster, observed: "Observations | None", place: Place, home: Home, program: Path
) -> ConnectedCluster:
    from rabaska.domain.clusters import updated

    cluster = updated(cluster, observed)
    store = str(home.store) if cluster.is_here else resolved_store(cluster, place)
    return _at(cluster, place, store, program)


def connect_for(record: RunRecord, home: Home) -> ConnectedCluster:
    """The cluster of a run; its store is where the run is, so nothing needs to be asked."""
    cluster = cluster_named(record.cluster, home)
    store = posixpath.dirname(posixpath.dirname(record.path))
    return _at(cluster, place_of(cluster), store, node_program(home.store / "node"))


def connect_for_preview(name: str, home: Home, *, program: Path) -> ConnectedCluster:
    """The cluster for a plan that is only shown: by its profile where it does not answer."""
    cluster = cluster_named(name, home)
    why = cluster.retirement
    if not why:
        observed, place = observations_of(name, home), place_of(cluster)
        try:
            return _connected(cluster, observed, place, home, program)
        except Unreachable as problem:
            why = problem.what
    from rabaska.remote.place import Nowhere

    return _at(cluster, Nowhere(why), cluster.store or USUAL, program)


def cluster_named(name: str, home: Home) -> Cluster:
    """The cluster called `name`; its profile is checked when it was written or changed."""
    profile = profile_files(home.profiles).get(name)
    known = caches.cached_profile(home.checked, profile) if profile else None
    if known:
        return known
    from rabaska.settings.profiles import load_cluster  # pydantic: five times Python's own start

    cluster = load_cluster(name, user_profiles=home.profiles)
    if profile and home.folder.is_dir():
        caches.cache_profile(home.checked, profile, cluster)
    return cluster


def observations_of(name: str, home: Home) -> "Observations | None":
    """What a cluster showed of itself when it was visited first, or checked last."""
    from rabaska.records.caches import cached_observations

    profile = profile_files(home.profiles).get(name)
    return cached_observations(home.seen, profile) if profile else None


def _at(cluster: Cluster, place: Place, store: str, program: Path) -> ConnectedCluster:
    python = sys.executable if cluster.is_here else cluster.python
    return ConnectedCluster(
        cluster=cluster, place=place, store=store, python=python, program=program
    )


def place_of(cluster: Cluster) -> Place:
    """This computer, or the login node at the other end of ssh; only one of them is imported."""
    if cluster.is_here:
        from rabaska.remote.this_computer import Here

        return Here()
    from rabaska.remote.login_node import Ssh
    from rabaska.remote.ssh_connection import Connection

    options, umask = cluster.ssh_options, cluster.umask
    login = Connection(cluster.host, options, umask=umask)
    if not cluster.transfer_host:
        return Ssh(login)
    return Ssh(login, Connection(cluster.transfer_host, options, umask=umask))
