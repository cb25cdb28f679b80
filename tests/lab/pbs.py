"""An installed OpenPBS or PBS Pro with two nodes.

Nothing installs it: it is found by /etc/pbs.conf or PBS_EXEC, or in /opt/pbs, its usual place.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from .batch import MAIL, BatchLab, NotInstalled

HOME = "/var/spool/pbs"
MAILER = "/usr/local/lib/lab/sendmail"
CONF = """\
PBS_EXEC={prefix}
PBS_HOME=/var/spool/pbs
PBS_SERVER=control
PBS_START_SERVER={server}
PBS_START_SCHED={server}
PBS_START_COMM={server}
PBS_START_MOM={mom}
PBS_CORE_LIMIT=unlimited
PBS_SCP=/usr/bin/scp
"""
# On a node: its own spool. Files are shared, so results are copied where they are;
# limits, that of memory too, are looked at every second.
NODE = """\
mount -t tmpfs -o mode=755 lab-spool /var/spool/pbs
mount --bind /etc/pbs.conf.node /etc/pbs.conf
"$1/libexec/pbs_habitat"
printf '%s\\n' '$clienthost control' '$usecp *:/ /' '$min_check_poll 1' '$max_check_poll 1' \
    '$enforce mem' >/var/spool/pbs/mom_priv/config
/usr/sbin/sshd -f /etc/ssh/lab_sshd_config
exec "$1/sbin/pbs_mom" -N
"""
SETTINGS = (
    "create resource ngpus type=long, flag=nh",
    "set server flatuid = True",
    "set server scheduler_iteration = 2",
    "set server node_fail_requeue = 10",
    "set server job_history_enable = True",
    "set queue workq resources_max.walltime = 01:00:00",
    f"set server mailer = {MAILER}",
    "set server mail_from = pbs@control",
    "set server scheduling = True",
)


def installed() -> str:
    """The folder of an installed PBS."""
    conf = Path("/etc/pbs.conf")
    told = re.findall(r"(?m)^PBS_EXEC=(.+)$", conf.read_text()) if conf.exists() else []
    for folder in (*told, os.environ.get("PBS_EXEC", ""), "/opt/pbs"):
        # Torque has a program of this name too, and none of the other.
        if all(Path(folder, "sbin", name).exists() for name in ("pbs_server", "pbs_comm")):
            return folder
    raise NotInstalled("no OpenPBS was found by /etc/pbs.conf or PBS_EXEC, nor in /opt/pbs")


class Pbs(BatchLab):
    scheduler = "pbs"
    queue = "workq"
    server_daemons = ("pbs_server.bin",)

    def prepare(self) -> None:
        self.prefix = installed()
        self.world.write("/etc/pbs.conf", CONF.format(prefix=self.prefix, server=1, mom=0))
        self.world.write("/etc/pbs.conf.node", CONF.format(prefix=self.prefix, server=0, mom=1))
        self.world.write("/usr/local/lib/lab/pbs_node.sh", NODE, mode=0o755)
        self.link_programs(Path(self.prefix, "bin"))
        # What the machine's own installation may have left is not this cluster's.
        self.world.run(["rm", "-rf", HOME])
        # The server keeps its jobs in a database; its socket lies where Debian's package has it.
        self.world.run(["install", "-d", "-o", "postgres", "/run/postgresql"])
        self.world.run([f"{self.prefix}/libexec/pbs_habitat"], timeout=120)
        config = f"{HOME}/sched_priv/sched_config"
        text = self.path(config).read_text()
        text = re.sub(r'(?m)^(resources: "[^"]*)"', r'\1, ngpus"', text)
        # Jobs in their order: then the server says when it expects to start the first of them.
        text = re.sub(r"(?m)^strict_ordering:.*$", "strict_ordering: true\tALL", text)
        self.world.write(config, text)
        self.world.write(MAILER, MAIL, mode=0o755)
        for name in ("pbs_comm", "pbs_sched"):
            self.world.run([f"{self.prefix}/sbin/{name}"])

    def serve(self) -> None:
        self.world.run([f"{self.prefix}/sbin/pbs_server"], timeout=120)
        ask = [f"{self.prefix}/bin/qstat", "-B"]
        self.wait_until(lambda: self.world.run(ask, check=False).returncode == 0)

    def node_command(self, name: str) -> Sequence[str]:
        return ["bash", "/usr/local/lib/lab/pbs_node.sh", self.prefix]

    def configure(self) -> None:
        for line in SETTINGS:
            self.tell(line)
        for node in self.site.nodes:
            self.tell(f"create node {node.name}")
            self.tell(f"set node {node.name} resources_available.ncpus = {node.cores}")
            self.tell(f"set node {node.name} resources_available.ngpus = {node.gpus}")

    def admin(self, *words: str, check: bool = True) -> str:
        done = self.world.run([f"{self.prefix}/bin/{words[0]}", *words[1:]], check=check)
        return done.stdout + done.stderr

    def idle_nodes(self) -> set[str]:
        said = self.admin("pbsnodes", "-a", check=False)
        found = re.findall(r"(?m)^(\S+)\n(?: .*\n)*? +state = free$", said)
        return set(found)

    def keep_history(self, kept: bool) -> None:
        self.tell(f"set server job_history_enable = {kept}")
