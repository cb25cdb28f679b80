"""One lab from boot to end: Slurm's daemons, its users' commands, and the faults that befall it."""

import subprocess
import time
from collections.abc import Sequence

from . import slurmconf
from .accounting import start_accounting
from .base import BaseLab
from .controller import Controller, start_munged
from .login import Login
from .modules import install_modules
from .nodes import Nodes
from .site import Site
from .world import FILL, LabBroken


class Lab(BaseLab):
    """A running Slurm cluster. Use it as a context manager, or call `end` yourself."""

    def __init__(self, site: Site | None = None) -> None:
        began = time.monotonic()
        super().__init__(site or Site())
        self.boot_seconds = time.monotonic() - began

    # What a test looks at

    def log(self, name: str) -> str:
        """What a daemon (`slurmctld`, `login1`, a node …) printed so far."""
        return (self.world.base / "log" / f"{name}.log").read_text(errors="replace")

    def sinfo(self) -> dict[str, str]:
        """Each node and its state, as `sinfo` spells it."""
        told = self.world.run(["sinfo", "-h", "-N", "-o", "%N %t"], check=False).stdout
        return dict(line.split() for line in told.splitlines() if len(line.split()) == 2)

    def job(self, job: str) -> dict[str, str]:
        """What `scontrol show job` says of a job; {} when the controller knows it no more."""
        told = self.world.run(["scontrol", "-o", "show", "job", job], check=False).stdout
        return dict(word.split("=", 1) for word in told.split() if "=" in word)

    def mails(self) -> list[str]:
        """The letters Slurm sent: job|type|words, oldest first."""
        file = self.path("/var/log/slurm/mail.log")
        return file.read_text().splitlines() if file.exists() else []

    # What a user does

    def run_as(
        self, user: str, words: Sequence[str], *, node: str = "", stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as any user, on the login node or on a compute node."""
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--reset-env"]
        where = self.nodes.pid(node) if node else self.login.door.pid
        return self.world.run([*become, *words], check=False, inside_of=where, stdin=stdin)

    def shell(self, command: str, *, check: bool = True, timeout: float = 60) -> str:
        """Run a line in the user's login shell and return what it printed."""
        return self.run_as_user(["bash", "-lc", command], check=check, timeout=timeout).stdout

    def sbatch(self, script: str, *options: str) -> str:
        """Submit the text of a job script and return the job's id."""
        words = ["sbatch", "--parsable", *options]
        return self.run_as_user(words, stdin=script).stdout.strip()

    # Waiting

    def wait_for_state(self, job: str, *states: str, patience: float = 60) -> dict[str, str]:
        """Wait until a job is in one of the states and return all that is known of it."""
        self.wait_until(
            lambda: self.job(job).get("JobState") in states,
            patience=patience,
            waiting_for=lambda: f"job {job} to be {' or '.join(states)}; it is {self.job(job)}",
        )
        return self.job(job)

    def wait_for_nodes(self, *names: str, state: str = "idle", patience: float = 30) -> None:
        wanted = set(names or (node.name for node in self.site.nodes))
        self.wait_until(
            lambda: wanted <= {name for name, now in self.sinfo().items() if now == state},
            patience=patience,
            waiting_for=lambda: f"{sorted(wanted)} to be {state}; they are {self.sinfo()}",
        )

    def _crashed(self) -> bool:
        return self.controller.crashed

    def _last_words(self) -> str:
        return f"\nslurmctld said: {self.controller.last_words}"

    # Faults

    def crash_node(self, name: str) -> None:
        self.nodes.crash(name)

    def reboot_node(self, name: str) -> None:
        self.nodes.reboot(name)

    def cut_network(self, name: str) -> None:
        self.nodes.cut_network(name)

    def restore_network(self, name: str) -> None:
        self.nodes.restore_network(name)

    def declare_down(self, name: str) -> None:
        """Have the administrator fail a node's jobs at once; it serves again when it answers."""
        words = [f"nodename={name}", "state=down", "reason=lab"]
        self.world.run(["scontrol", "update", *words])

    def fill_local_disk(self, name: str, *, leave: int = 0) -> None:
        self.nodes.fill_disk(name, leave=leave)

    def free_local_disk(self, name: str) -> None:
        self.nodes.free_disk(name)

    def fill_shared(self, *, leave: int = 0) -> None:
        """Fill the shared storage; only where the site limits it, never the machine's own disk."""
        self._fill("/scratch", self.site.shared.size, leave)

    def fill_home(self, *, leave: int = 0) -> None:
        self._fill(self.home, self.site.home.size, leave)

    def use_up_files(self, folder: str) -> None:
        """Make as many empty files there as its quota allows."""
        if not self.site.shared.files and not self.site.home.files:
            raise LabBroken(f"{folder} has no quota of files in this site")
        script = 'mkdir "$0"; n=0; while true > "$0/$n"; do n=$((n + 1)); done 2> /dev/null'
        self.world.run(["bash", "-c", script, f"{folder}/filler"])

    def free(self, folder: str) -> None:
        """Remove what filled the storage, or used up its files."""
        self.world.run(["rm", "-rf", f"{folder}/filler"])

    def stop_controller(self, *, kill: bool = False) -> None:
        self.controller.stop(kill=kill)

    def start_controller(self) -> None:
        self.controller.start()

    def restart_controller(self, *, kill: bool = False) -> None:
        self.controller.stop(kill=kill)
        self.controller.start()

    def kill_ssh_connections(self) -> int:
        """Cut every ssh connection there is, and return how many processes served them."""
        return self.login.kill_connections()

    def freeze_login(self) -> None:
        self.login.freeze()

    def thaw_login(self) -> None:
        self.login.thaw()

    # Booting

    def _boot(self) -> None:
        # With the user: slurmctld looks up the user of each account once, when it starts.
        self._make_hosts()
        self._write_files()
        start_munged(self.world)
        if self.site.accounting:
            start_accounting(self.world, self.site)
        self.controller = Controller(self.world, self.site)
        self.controller.start()
        self.nodes = Nodes(self.world, self.site)
        for node in self.site.nodes:
            self.nodes.boot(node.name)
        self.login = Login(self.world, self.site)
        self.wait_for_nodes()

    def _write_files(self) -> None:
        self.world.write("/usr/local/lib/lab/warp", f"{self.site.warp}\n")
        cgroups = self.world.cgroups
        self.world.write("/etc/slurm/slurm.conf", slurmconf.slurm_conf(self.site, cgroups=cgroups))
        self.world.write("/etc/slurm/gres.conf", slurmconf.gres_conf(self.site))
        self.world.write("/etc/slurm/cgroup.conf", slurmconf.cgroup_conf())
        install_modules(self.world)
        for folder in ("/var/spool/slurmctld", "/var/log/slurm", "/run/munge"):
            self.world.path(folder).mkdir(parents=True, exist_ok=True)
        for program in self.site.without:
            self.world.path(f"/usr/bin/{program}").unlink()

    def _fill(self, folder: str, limit: str, leave: int) -> None:
        if not limit:
            raise LabBroken(f"{folder} has no size limit in this site, so it cannot be filled")
        self.world.run(["bash", "-c", FILL, folder, str(leave)])
