"""A real Grid Engine on one host, with the lab's login node before it."""

import re
from pathlib import Path

from .base import BaseLab
from .login import Login
from .site import Site

FILES = Path(__file__).parent / "grid_engine_files"
ROOT, SPOOL = "/var/lib/gridengine", "/var/spool/gridengine"
COMMON = f"{ROOT}/default/common"
ADMIN = "sgeadmin"
# SGE_ND keeps the daemons in the foreground, where the lab sees them.
ENVIRONMENT = {"SGE_ROOT": ROOT, "SGE_CELL": "default", "SGE_ND": "1"}
SETTINGS = tuple(f"{name}={value}" for name, value in ENVIRONMENT.items())
# Jobs are looked for at once, and their end is in the accounts at once.
HURRY = {
    "schedule_interval": "0:0:1",
    "flush_submit_sec": "1",
    "flush_finish_sec": "1",
    "reporting_params": "accounting=true reporting=false accounting_flush_time=00:00:01",
}
MASTER_PORT, EXECD_PORT = 6444, 6445  # sge-qmaster and sge-execd in /etc/services


class GridEngine(BaseLab):
    """A running Grid Engine."""

    enter = SETTINGS

    def __init__(self) -> None:
        super().__init__(Site(nodes=(), partitions=()))

    def queued(self) -> str:
        """What `qstat` prints; nothing once all jobs are over."""
        return self.run_as_user(["qstat"]).stdout

    def _boot(self) -> None:
        self._make_hosts()
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
        self.wait_until(lambda: self.world.listens(port), waiting_for=lambda: name)

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
        return self.world.run([*become, "env", *SETTINGS, *words]).stdout
