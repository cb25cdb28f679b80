"""The compute nodes: booting one, crashing it, cutting its cable, filling its disk."""

import os
import signal
from collections.abc import Callable, Sequence

from .site import Site
from .world import FILL, Daemon, LabBroken, World, command_name, descendants


def slurmd(name: str) -> Sequence[str]:
    return ["slurmd", "-D", "-N", name]


class Nodes:
    """`serves` gives the words that make a node one of its cluster."""

    def __init__(
        self, world: World, site: Site, serves: Callable[[str], Sequence[str]] = slurmd
    ) -> None:
        self.world, self.site, self.serves = world, site, serves
        self._running: dict[str, Daemon] = {}
        for folder in ("/lscratch", "/var/spool/slurmd"):
            world.path(folder).mkdir(parents=True, exist_ok=True)

    def boot(self, name: str) -> None:
        node = self.site.node(name)
        limits = self.site.local.mount_options or "size=50%"
        enter = ["nsenter", f"--net=/run/netns/{name}", "unshare", "-m", "-u", "-p", "--fork"]
        enter += ["--mount-proc", "--kill-child=KILL"]
        script = ["bash", "/usr/local/lib/lab/node.sh", name, str(node.gpus), limits]
        script += self.serves(name)
        self._running[name] = self.world.start(name, enter + script)

    def crash(self, name: str) -> None:
        """Take away the power: every process of the node is gone, and nobody answers for it."""
        self.cut_network(name)
        daemon = self._running.pop(name)
        daemon.send(signal.SIGKILL)
        daemon.process.wait(10)

    def reboot(self, name: str) -> None:
        if name in self._running:
            self.crash(name)
        self.restore_network(name)
        self.boot(name)

    def cut_network(self, name: str) -> None:
        """Pull the cable; what runs on the node goes on without knowing."""
        self._link(name, "down")

    def restore_network(self, name: str) -> None:
        self._link(name, "up")

    def kill_slurmd(self, name: str) -> None:
        """Kill the node's slurmd alone; its jobs go on."""
        for pid in descendants(self.pid(name)):
            if command_name(pid) == "slurmd":
                os.kill(pid, signal.SIGKILL)

    def start_slurmd(self, name: str) -> None:
        self.world.start(name, slurmd(name), inside_of=self.pid(name))

    def fill_disk(self, name: str, *, leave: int = 0) -> None:
        """Fill the node's local disk but for `leave` bytes."""
        self.run(name, ["bash", "-c", FILL, "/lscratch", str(leave)])

    def free_disk(self, name: str) -> None:
        self.run(name, ["rm", "-f", "/lscratch/filler"])

    def run(self, name: str, words: list[str]) -> str:
        """Run a command on the node as root, beside Slurm, and return what it printed."""
        return self.world.run(words, inside_of=self.pid(name)).stdout

    def pid(self, name: str) -> int:
        """The node's first process, as this machine counts."""
        if name not in self._running:
            raise LabBroken(f"{name} is not running")
        return self._running[name].pid

    def last_words(self, name: str) -> str:
        return self._running[name].last_words

    def _link(self, name: str, state: str) -> None:
        count = self.site.hosts.index(name)
        self.world.run(["ip", "link", "set", f"host{count}", state])
