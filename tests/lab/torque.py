"""A real Torque with two nodes, booted from the programs that are installed on this machine."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .batch import MAIL, BatchLab, NotInstalled
from .world import Daemon

# Torque alone has this program; `pbs_server` is also one of OpenPBS.
MARK = "trqauthd"
USUAL = ("/opt/torque/sbin", "/usr/local/sbin", "/usr/sbin")
SERVER_PORT = 15001
# Whichever it was built with; without one, it starts what has this name in its own folder.
MAILERS = ("/usr/sbin/sendmail", "/usr/lib/sendmail", "{spool}/server_priv/sendmail")

# A mount namespace of its own for the socket of a host's trqauthd, in which PATH is looked at too.
PRIVATE = 'mount -t tmpfs -o mode=1777 lab-tmp /tmp; exec "$@"'

# On a node: what its pbs_mom writes is the node's own, and so is the socket of its trqauthd.
NODE = """\
for each in mom_priv mom_logs spool undelivered aux checkpoint; do
    mount -t tmpfs -o mode=755 lab-spool "$1/$each"
done
chmod 1777 "$1/spool" "$1/undelivered"
mkdir "$1/mom_priv/jobs"
cp /usr/local/lib/lab/mom_config "$1/mom_priv/config"
trqauthd -D &
/usr/sbin/sshd -f /etc/ssh/lab_sshd_config
exec pbs_mom -D
"""
# The limit is looked for often, and results are on shared storage already.
MOM = """\
$pbsserver control
$usecp *:/ /
$tmpdir /lscratch
$check_poll_time 2
$status_update_time 5
$loglevel 3
"""
SETTINGS = """\
create queue batch
set queue batch queue_type = Execution
set queue batch resources_default.walltime = 00:10:00
set queue batch resources_max.walltime = 01:00:00
set queue batch enabled = True
set queue batch started = True
create queue long
set queue long queue_type = Execution
set queue long resources_max.walltime = 48:00:00
set queue long enabled = True
set queue long started = True
set server scheduling = True
set server default_queue = batch
set server scheduler_iteration = 2
set server node_check_rate = 15
set server job_stat_rate = 2
set server poll_jobs = True
set server mom_job_sync = True
set server keep_completed = 300
set server submit_hosts = login1
set server allow_node_submit = True
"""


class Torque(BatchLab):
    scheduler = "torque"
    queue = "batch"
    server_daemons = ("pbs_server", "pbs_sched")

    def prepare(self) -> None:
        self.programs = programs()
        self.spool = spool(self.programs)
        self.link_programs(self.programs)
        self.link_programs(self.programs.parent / "bin")
        self.world.write(f"{self.spool}/server_name", "control\n")
        self.world.write("/usr/local/lib/lab/mom_config", MOM)
        self.world.write("/usr/local/lib/lab/torque_node.sh", NODE, mode=0o755)
        self.world.run(["rm", "-f", f"{self.spool}/server_priv/serverdb"])
        self._authority = self._start_authority()

    def _start_authority(self) -> Daemon:
        """trqauthd for the server's host, apart from that of the login node, and there as well."""
        words = ["unshare", "-m", "sh", "-c", PRIVATE, "sh", "trqauthd", "-D"]
        authority = self.world.start("trqauthd", words)
        enter = ["nsenter", "--net=/run/netns/login1", "unshare", "-u", "sh", "-c"]
        self.world.start("trqauthd-login1", [*enter, "hostname login1; exec trqauthd -D"])
        return authority

    def serve(self) -> None:
        database = self.path(f"{self.spool}/server_priv/serverdb")
        create = [] if database.exists() else ["-f", "-t", "create"]
        self.world.start("pbs_server", ["pbs_server", "-D", *create])
        self.wait_until(lambda: self.world.listens(SERVER_PORT))
        self.admin("pbs_sched")

    def node_command(self, name: str) -> Sequence[str]:
        return ["bash", "/usr/local/lib/lab/torque_node.sh", str(self.spool)]

    def configure(self) -> None:
        # Not before: a server that creates itself empties its folder.
        for mailer in MAILERS:
            self.world.write(mailer.format(spool=self.spool), MAIL, mode=0o755)
        for line in SETTINGS.splitlines():
            self.tell(line)
        for node in self.site.nodes:
            has = f"np={node.cores},gpus={node.gpus},properties={node.gpu}"
            self.tell(f"create node {node.name} {has}")

    def admin(self, *words: str, check: bool = True) -> str:
        done = self.world.run(words, check=check, inside_of=self._authority.pid)
        return done.stdout + done.stderr

    def declare_lost(self, job: str) -> None:
        """What an administrator does of a job whose node is gone: Torque waits for it for ever."""
        self.admin("qdel", "-p", job)

    def keep_history(self, kept: bool) -> None:
        """Whether `qstat` tells of jobs that are over: for five minutes, or not at all."""
        self.tell(f"set server keep_completed = {300 if kept else 0}")

    def idle_nodes(self) -> set[str]:
        said = self.admin("pbsnodes", "-a", check=False)
        return set(re.findall(r"^(\S+)\n +state = free$", said, re.MULTILINE))


def programs() -> Path:
    """The folder of Torque's daemons, found by PATH or where it is usually installed."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *USUAL])
    found = shutil.which(MARK, path=path)
    if not found:
        raise NotInstalled(f"no Torque was found: there is no {MARK} in PATH, nor in {USUAL[0]}")
    return Path(found).resolve().parent


def spool(folder: Path) -> Path:
    """Where this Torque keeps `server_name`, as it was built."""
    about = subprocess.run(
        [folder / "pbs_server", "--about"], capture_output=True, text=True, check=False
    )
    told = re.search(r"^serverhome:\s*(\S+)", about.stdout + about.stderr, re.MULTILINE)
    return Path(told[1] if told else "/var/spool/torque")
