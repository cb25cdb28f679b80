"""A cluster in namespaces whose scheduler is not Slurm: a login node, nodes, shared folders."""

import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from .cluster import SCRIPTS
from .login import Login, add_user
from .nodes import Nodes
from .site import Node, Site
from .slurmconf import hosts_file
from .world import LabBroken, World

NODES = (Node("node1", "k80", 2, 4, 4_000), Node("node2", "k80", 2, 4, 4_000))

# What tells other schedulers of this machine apart; a site that has one has no other.
OTHERS = (
    "sbatch", "srun", "salloc", "squeue", "sinfo", "sacct", "scancel", "scontrol", "sacctmgr",
    "sshare", "qsub", "qstat", "qdel", "qconf", "qacct", "qhost", "qrsh", "qlogin", "qalter",
    "qselect", "qhold", "qrls", "qsh", "qmod",
)  # fmt: skip

SSH = """\
Host *
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
"""


class NotInstalled(Exception):
    """There is no such batch system on this machine."""


class BatchLab:
    """A running cluster; `ssh -F <ssh_config> lab` leads to its login node.

    A scheduler says in `prepare` what its hosts need before they start, in `serve` how its
    server starts on the host `control`, and in `node_command` what a compute node runs.
    """

    scheduler = ""  # as rabaska calls it
    queue = ""  # the one that jobs go to
    server_daemons: tuple[str, ...] = ()

    def __init__(self, nodes: Sequence[Node] = NODES) -> None:
        self.site = Site(nodes=tuple(nodes), partitions=())
        self.user = self.site.user
        self.home = f"/home/{self.user}"
        self.shared = f"/scratch/{self.site.project}/{self.user}"
        self.world = World({self.home: self.site.home, "/scratch": self.site.shared})
        try:
            self._boot()
        except BaseException:
            self.world.end()
            raise

    def __enter__(self) -> "BatchLab":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        self.world.end()

    # What a scheduler says of itself

    def prepare(self) -> None:
        raise NotImplementedError

    def serve(self) -> None:
        raise NotImplementedError

    def node_command(self, name: str) -> Sequence[str]:
        raise NotImplementedError

    def configure(self) -> None:
        """What is told to a server that runs, before the first job."""

    def admin(self, *words: str, check: bool = True) -> str:
        """What a command of the administrator printed, run on the server's host."""
        raise NotImplementedError

    def idle_nodes(self) -> set[str]:
        raise NotImplementedError

    # What a test looks at

    @property
    def ssh_config(self) -> Path:
        """For `ssh -F`; it knows one host, `lab`."""
        return self.login.ssh_config

    def path(self, inside: str) -> Path:
        return self.world.path(inside)

    def jobs(self) -> list[str]:
        """The ids of the user's jobs that are not over."""
        return self.run_as_user(["qselect", "-s", "EHQRTWS"], check=False).stdout.split()

    def run_as_user(
        self, words: Sequence[str], *, check: bool = True, timeout: float = 60, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the login node as the user, in the user's home."""
        become = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--init-groups"]
        become += ["--reset-env", "env", f"--chdir={self.home}", "bash", "-lc", 'exec "$@"', "sh"]
        door = self.login.door.pid
        return self.world.run(
            [*become, *words], check=check, timeout=timeout, stdin=stdin, inside_of=door
        )

    def wait_until(self, condition: Callable[[], bool], *, patience: float = 60) -> None:
        give_up = time.monotonic() + patience
        while not condition():
            if time.monotonic() > give_up:
                raise LabBroken(f"waited in vain for {condition}")
            time.sleep(0.1)

    # Faults

    def crash_node(self, name: str) -> None:
        self.nodes.crash(name)

    def reboot_node(self, name: str) -> None:
        self.nodes.reboot(name)
        self.wait_for_nodes(name)

    def wait_for_nodes(self, *names: str) -> None:
        wanted = set(names or (node.name for node in self.site.nodes))
        self.wait_until(lambda: wanted <= self.idle_nodes(), patience=120)

    def declare_lost(self, job: str) -> None:
        """What an administrator must do of a job whose node is gone; nothing for most."""

    def stop_server(self) -> None:
        """Kill the server: nobody answers, and what runs goes on."""
        for name in self.server_daemons:
            self.world.run(["pkill", "-KILL", "-x", name], check=False)
        self.wait_until(lambda: not self._serving())

    def start_server(self) -> None:
        self.serve()

    def kill(self, pid: int, node: str) -> None:
        """Kill a process of a node, by the number it has there."""
        self.nodes.run(node, ["kill", f"-{signal.SIGKILL}", str(pid)])

    # Booting

    def _serving(self) -> bool:
        return any(
            self.world.run(["pgrep", "-x", name], check=False).returncode == 0
            for name in self.server_daemons
        )

    def _boot(self) -> None:
        for script in SCRIPTS.iterdir():
            self.world.write(f"/usr/local/lib/lab/{script.name}", script.read_text(), mode=0o755)
        self.world.write("/etc/hosts", hosts_file(self.site))
        for program in OTHERS:
            self.path(f"/usr/bin/{program}").unlink(missing_ok=True)
        for name in ("pbs", "torque"):
            self.path(f"/etc/profile.d/{name}.sh").unlink(missing_ok=True)
        add_user(self.world, self.site)
        self._connect_hosts()
        self.prepare()
        self.login = Login(self.world, self.site)
        self._let_user_into_nodes()
        self.serve()
        self.nodes = Nodes(self.world, self.site, self.node_command)
        for node in self.site.nodes:
            self.nodes.boot(node.name)
        self.configure()
        self.wait_for_nodes()

    def _let_user_into_nodes(self) -> None:
        """A key in the shared home, as sites have it where users may go to their jobs' nodes."""
        key = (self.world.base / "user_key").read_text()
        self.world.write(f"{self.home}/.ssh/id_ed25519", key, mode=0o600)
        self.world.write(f"{self.home}/.ssh/config", SSH)
        self.world.run(["chown", "-R", f"{self.user}:", f"{self.home}/.ssh"])

    def _connect_hosts(self) -> None:
        words = [self.site.address("control")]
        for host in self.site.hosts[1:]:
            words += [host, self.site.address(host)]
        self.world.run(["bash", "/usr/local/lib/lab/network.sh", *words])
