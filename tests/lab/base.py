"""What every lab has, whatever schedules its jobs: a user, storage, hosts and a login node."""

import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from .login import Login, add_user
from .site import Site
from .slurmconf import hosts_file
from .world import LabBroken, World

SCRIPTS = Path(__file__).parent / "scripts"


class BaseLab:
    """A running cluster; `ssh -F <ssh_config> lab` leads to its login node.

    Paths such as `home` and `shared` are those of the lab; `path` says where to look from outside.
    """

    login: Login
    patience: float = 30  # seconds, where a test does not say how long to wait
    enter: tuple[str, ...] = ()  # what a user's command is started with

    def __init__(self, site: Site) -> None:
        self.site = site
        self.user = site.user
        self.home = f"/home/{self.user}"
        self.shared = f"/scratch/{site.project}/{self.user}"
        self.world = World({self.home: site.home, "/scratch": site.shared})
        try:
            self._boot()
        except BaseException:
            self.world.end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        self.world.end()

    @property
    def ssh_config(self) -> Path:
        """For `ssh -F`; it knows one host, `lab`."""
        return self.login.ssh_config

    def path(self, inside: str) -> Path:
        return self.world.path(inside)

    def run_as_user(
        self, words: Sequence[str], *, check: bool = True, timeout: float = 60, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the login node as the user, in the user's home."""
        become = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--init-groups"]
        become += ["--reset-env", "env", f"--chdir={self.home}", *self.enter]
        door = self.login.door.pid
        return self.world.run(
            [*become, *words], check=check, timeout=timeout, stdin=stdin, inside_of=door
        )

    def wait_until(
        self,
        condition: Callable[[], bool],
        *,
        patience: float | None = None,
        waiting_for: Callable[[], str] = lambda: "a condition",
    ) -> None:
        give_up = time.monotonic() + (self.patience if patience is None else patience)
        while not condition():
            if self._crashed() or time.monotonic() > give_up:
                raise LabBroken(f"waited in vain for {waiting_for()}{self._last_words()}")
            time.sleep(0.02)

    def _crashed(self) -> bool:
        """Whether there is nothing left to wait for."""
        return False

    def _last_words(self) -> str:
        """What explains a wait in vain."""
        return ""

    def _boot(self) -> None:
        raise NotImplementedError

    def _make_hosts(self) -> None:
        """The network, the hosts' names, the user, and the scripts that daemons start with."""
        for name in ("pbs", "torque"):  # of this machine; a login shell would find their qsub first
            self.path(f"/etc/profile.d/{name}.sh").unlink(missing_ok=True)
        for script in SCRIPTS.iterdir():
            self.world.write(f"/usr/local/lib/lab/{script.name}", script.read_text(), mode=0o755)
        self.world.write("/etc/hosts", hosts_file(self.site))
        add_user(self.world, self.site)
        words = [self.site.address("control")]
        for host in self.site.hosts[1:]:
            words += [host, self.site.address(host)]
        self.world.run(["bash", "/usr/local/lib/lab/network.sh", *words])
