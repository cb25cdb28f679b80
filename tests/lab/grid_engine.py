"""A real Grid Engine on one host, with the lab's login node before it."""

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from .cluster import SCRIPTS
from .login import Login, add_user
from .site import Site
from .slurmconf import hosts_file
from .world import LabBroken, World

FILES = Path(__file__).parent / "grid_engine_files"
ROOT, SPOOL = "/var/lib/gridengine", "/var/spool/gridengine"
COMMON = f"{ROOT}/default/common"
ADMIN = "sgeadmin"
# SGE_ND keeps the daemons in the foreground, where the lab sees them.
ENVIRONMENT = {"SGE_ROOT": ROOT, "SGE_CELL": "default", "SGE_ND": "1"}
# Jobs are looked for at once, and their end is in the accounts at once.
HURRY = {
    "schedule_interval": "0:0:1",
    "flush_submit_sec": "1",
    "flush_finish_sec": "1",
    "reporting_params": "accounting=true reporting=false accounting_flush_time=00:00:01",
}
MASTER_PORT, EXECD_PORT = 6444, 6445  # sge-qmaster and sge-execd in /etc/services


class GridEngine:
    """A running Grid Engine; `ssh -F <ssh_config> lab` leads to its login node."""

    def __init__(self) -> None:
        self.site = Site(nodes=(), partitions=())
        self.user = self.site.user
        self.home = f"/home/{self.user}"
        self.shared = f"/scratch/{self.site.project}/{self.user}"
        self.world = World({self.home: self.site.home, "/scratch": self.site.shared})
        try:
            self._boot()
        except BaseException:
            self.world.end()
            raise

    def __enter__(self) -> "GridEngine":
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

    def run_as_user(self, words: Sequence[str], *, check: bool = True) -> str:
        """What a command on the login node printed, run as the user."""
        become = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--init-groups"]
        become += ["--reset-env", "env", f"--chdir={self.home}", *_settings()]
        done = self.world.run([*become, *words], check=check, inside_of=self.login.door.pid)
        return done.stdout + done.stderr

    def _boot(self) -> None:
        for script in SCRIPTS.iterdir():
            self.world.write(f"/usr/local/lib/lab/{script.name}", script.read_text(), mode=0o755)
        self.world.write("/etc/hosts", hosts_file(self.site))
        add_user(self.world, self.site)
        addresses = [self.site.address("control"), "login1", self.site.address("login1")]
        self.world.run(["bash", "/usr/local/lib/lab/network.sh", *addresses])
        self._make_cell()
        self._start("qmaster", MASTER_PORT)
        self._configure()
        self._start("execd", EXECD_PORT)
        self.login = Login(self.world, self.site)

    def _make_cell(self) -> None:
        """An empty cluster, as the Debian package makes one when it is installed."""
        self.world.write(f"{COMMON}/act_qmaster", "control\n")
        # What the machine's own installation may have left is not this cluster's.
        self.world.run(["rm", "-rf", SPOOL])
        for folder in ("spooldb", "qmaster", "execd"):
            self.world.run(["install", "-d", "-o", ADMIN, f"{SPOOL}/{folder}"])
        make = "/usr/share/gridengine/scripts/init_cluster"
        self.world.run(["sh", make, ROOT, "default", f"{SPOOL}/spooldb", ADMIN])
        self.world.run(["chown", "-R", f"{ADMIN}:", SPOOL, f"{ROOT}/default"])
        profile = self.world.path("/etc/profile.d/site.sh").read_text()
        self.world.write("/etc/profile.d/site.sh", f"{profile}. {COMMON}/settings.sh\n")

    def _start(self, name: str, port: int) -> None:
        self.world.start(name, [f"/usr/sbin/sge_{name}"], environment=ENVIRONMENT)
        _wait_for(lambda: self.world.listens(port), name)

    def _configure(self) -> None:
        for file in FILES.iterdir():
            self.world.write(f"/tmp/{file.name}", file.read_text())
        self._qconf("-ah", "login1")
        self._qconf("-as", "control,login1")
        self._qconf("-Ae", "/tmp/host")
        self._qconf("-Ap", "/tmp/parallel")
        self._change("-sc", "-Mc", added="gpu gpu INT <= YES YES 0 0\n")
        self._qconf("-Aq", "/tmp/queue")
        self._change("-ssconf", "-Msconf")
        self._change("-sconf", "-Mconf", file="/tmp/global")

    def add_queue(self, text: str) -> None:
        """One more queue, as `qconf -sq` writes it."""
        self.world.write("/tmp/queue-more", text)
        self._qconf("-Aq", "/tmp/queue-more")

    def disable(self, queue: str) -> None:
        self._as_admin("qmod", "-d", queue)

    def enable(self, queue: str) -> None:
        self._as_admin("qmod", "-e", queue)

    def _change(
        self, show: str, write: str, *, file: str = "/tmp/changed", added: str = ""
    ) -> None:
        text = self._qconf(show)
        for name, value in HURRY.items():
            text = re.sub(rf"(?m)^{name}\b.*(?:\\\n.*)*$", f"{name} {value}", text)
        self.world.write(file, text + added)
        self._qconf(write, file)

    def _qconf(self, *words: str) -> str:
        return self._as_admin("qconf", *words)

    def _as_admin(self, *words: str) -> str:
        become = ["setpriv", f"--reuid={ADMIN}", f"--regid={ADMIN}", "--clear-groups"]
        return self.world.run([*become, "env", *_settings(), *words]).stdout


def _settings() -> list[str]:
    return [f"{name}={value}" for name, value in ENVIRONMENT.items()]


def _wait_for(condition: Callable[[], bool], name: str) -> None:
    give_up = time.monotonic() + 30
    while not condition():
        if time.monotonic() > give_up:
            raise LabBroken(f"{name} did not come up")
        time.sleep(0.05)
