"""A cluster in namespaces whose scheduler is not Slurm: a login node, nodes, shared folders."""

import signal
from collections.abc import Sequence
from pathlib import Path

from .base import BaseLab
from .login import Login
from .nodes import Nodes
from .site import Node, Site

NODES = (Node("node1", "k80", 2, 4, 4_000), Node("node2", "k80", 2, 4, 4_000))

# What tells other schedulers of this machine apart; a site that has one has no other.
OTHERS = (
    "sbatch", "srun", "salloc", "squeue", "sinfo", "sacct", "scancel", "scontrol", "sacctmgr",
    "sshare", "qsub", "qstat", "qdel", "qconf", "qacct", "qhost", "qrsh", "qlogin", "qalter",
    "qselect", "qhold", "qrls", "qsh", "qmod",
)  # fmt: skip

# What stands for sendmail: it keeps what it is given, and to whom.
MAIL = """\
#!/bin/sh
{ echo "sent: $*"; cat; echo; } >>/var/mail/lab
"""

SSH = """\
Host *
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
"""


class NotInstalled(Exception):
    """There is no such batch system on this machine."""


class BatchLab(BaseLab):
    """A running cluster of a login node and compute nodes.

    A scheduler says in `prepare` what its hosts need before they start, in `serve` how its
    server starts on the host `control`, and in `node_command` what a compute node runs.
    """

    scheduler = ""  # as rabaska calls it
    queue = ""  # the one that jobs go to
    server_daemons: tuple[str, ...] = ()
    patience = 60
    enter = ("bash", "-lc", 'exec "$@"', "sh")

    def __init__(self, nodes: Sequence[Node] = NODES) -> None:
        super().__init__(Site(nodes=tuple(nodes), partitions=()))

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

    def tell(self, line: str) -> None:
        """One line of `qmgr`."""
        self.admin("qmgr", "-c", line)

    def idle_nodes(self) -> set[str]:
        raise NotImplementedError

    def link_programs(self, folder: Path) -> None:
        """Have every host find the programs of a folder."""
        for program in folder.iterdir():
            link = self.path(f"/usr/local/bin/{program.name}")
            link.unlink(missing_ok=True)
            link.symlink_to(program)

    # What a test looks at

    def jobs(self) -> list[str]:
        """The ids of the user's jobs that are not over."""
        return self.run_as_user(["qselect", "-s", "EHQRTWS"], check=False).stdout.split()

    def mails(self) -> str:
        """All that the server sent, with the words that sendmail was started with."""
        sent = self.path("/var/mail/lab")
        return sent.read_text() if sent.exists() else ""

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
        for program in OTHERS:
            self.path(f"/usr/bin/{program}").unlink(missing_ok=True)
        self._make_hosts()
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
