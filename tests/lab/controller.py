"""The host `control`: munged, and slurmctld on a clock that may be warped."""

import os
import signal
import time

from .clock import Clock
from .site import Site
from .world import Daemon, LabBroken, World

PORT = 6817  # Slurm's own default


class Controller:
    def __init__(self, world: World, site: Site) -> None:
        self.world = world
        self.clock = Clock(site.warp)
        self._daemon: Daemon | None = None

    def start(self, *, patience: float = 30) -> None:
        """Start slurmctld and wait until it listens: who asks too early waits a whole second."""
        environment = self.clock.environment()
        daemon = self.world.start("slurmctld", ["slurmctld", "-D"], environment=environment)
        self._daemon = daemon
        give_up = time.monotonic() + patience
        while not self.world.listens(PORT):
            if not daemon.running or time.monotonic() > give_up:
                raise LabBroken(f"slurmctld did not start\n{daemon.last_words}")
            time.sleep(0.005)

    def stop(self, *, kill: bool = False) -> None:
        """Stop slurmctld; killed, it may forget the last seconds, as a real one does."""
        if self._daemon is None:
            return
        self._daemon.send(signal.SIGKILL if kill else signal.SIGTERM)
        self._daemon.process.wait(30)
        self._daemon = None

    def freeze(self) -> None:
        """Fall silent: what is asked now is answered after `thaw`, when nobody may listen."""
        if self._daemon is not None:
            self._daemon.send(signal.SIGSTOP)

    def thaw(self) -> None:
        # nsenter stops itself when the program it waits for is stopped, so both are woken.
        if self._daemon is not None:
            os.kill(self._daemon.process.pid, signal.SIGCONT)
            self._daemon.send(signal.SIGCONT)

    @property
    def last_words(self) -> str:
        return self._daemon.last_words if self._daemon else "it was stopped"

    @property
    def crashed(self) -> bool:
        """Whether slurmctld ended though nobody stopped it."""
        return self._daemon is not None and not self._daemon.running


def start_munged(world: World) -> None:
    world.write("/etc/munge/lab.key", os.urandom(64).hex(), mode=0o600)
    run = "/run/munge"
    words = ["munged", "-F", "--force", "--num-threads=4", "--key-file=/etc/munge/lab.key"]
    words += [f"--socket={run}/munge.socket.2", f"--pid-file={run}/pid"]
    words += [f"--log-file={run}/log", f"--seed-file={run}/seed"]
    munged = world.start("munged", words)
    while not world.path(f"{run}/munge.socket.2").exists():
        if not munged.running:
            raise LabBroken(f"munged did not start\n{munged.last_words}")
        time.sleep(0.005)
