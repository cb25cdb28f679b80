"""The login node: an sshd in its own network, a key made on the spot, and the ssh_config to use."""

import contextlib
import os
import signal
import socket
import subprocess
from pathlib import Path

from . import front_door
from .site import Site
from .world import Daemon, World, command_name, descendants

UID = 23170
SSHD = """\
HostKey /etc/ssh/lab_host_key
AuthorizedKeysFile .ssh/authorized_keys
PasswordAuthentication no
UsePAM no
PidFile none
PrintMotd no
UseDNS no
MaxSessions 50
Subsystem sftp internal-sftp
"""


class Login:
    """One login node, reached with `ssh -F <ssh_config> lab`."""

    def __init__(self, world: World, site: Site) -> None:
        self.world, self.site = world, site
        self.home = f"/home/{site.user}"
        self.ssh_config = world.base / "ssh_config"
        self._make_keys()
        self.port = 0
        self.open()

    def open(self) -> None:
        """Listen; on a port the kernel chose, and on the same one when opened again."""
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", self.port))
            listener.listen(64)
            self.port = listener.getsockname()[1]
            self.door = self._start_door(listener.fileno())
        self._write_ssh_config()

    def close(self) -> None:
        """Stop listening: connections that exist live on, new ones are refused."""
        self.door.send(signal.SIGKILL)
        self.door.process.wait(10)

    def freeze(self) -> None:
        """Fall silent: connections stay open and nobody answers, nor does a new one get through."""
        send(signal.SIGSTOP, [self.door.pid, *self.connections()])

    def thaw(self) -> None:
        # nsenter stops itself when the program it waits for is stopped, so all are woken.
        send(signal.SIGCONT, [self.door.process.pid, *descendants(self.door.process.pid)])

    def kill_connections(self) -> int:
        """Cut every connection, and return how many processes served them."""
        serving = self.connections()
        send(signal.SIGKILL, serving)
        return len(serving)

    def connections(self) -> list[int]:
        """The sshd processes that serve someone now."""
        return [pid for pid in descendants(self.door.pid) if command_name(pid) == "sshd"]

    def _start_door(self, listener: int) -> Daemon:
        self.world.write("/usr/local/lib/lab/front_door.py", Path(front_door.__file__).read_text())
        enter = ["nsenter", "--net=/run/netns/login1", "unshare", "-m", "-u", "sh", "-c"]
        serve = "hostname login1; exec python3 /usr/local/lib/lab/front_door.py $0"
        words = [*enter, serve, str(listener)]
        return self.world.start("login1", words, pass_fds=[listener])

    def _make_keys(self) -> None:
        for name in ("host_key", "user_key"):
            file = self.world.base / name
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(file)]
            subprocess.run(command, check=True)
        host = self.world.base / "host_key"
        self.world.write("/etc/ssh/lab_host_key", host.read_text(), mode=0o600)
        self.world.write("/etc/ssh/lab_sshd_config", SSHD)
        self.world.path("/run/sshd").mkdir(mode=0o755)
        public = (self.world.base / "user_key.pub").read_text()
        self.world.write(f"{self.home}/.ssh/authorized_keys", public, mode=0o600)
        self.world.run(["chown", "-R", f"{UID}:{UID}", self.home])

    def _write_ssh_config(self) -> None:
        public = (self.world.base / "host_key.pub").read_text()
        known = self.world.base / "known_hosts"
        known.write_text(f"lab {public}")
        self.ssh_config.write_text(f"""\
Host lab
    HostName 127.0.0.1
    Port {self.port}
    User {self.site.user}
    HostKeyAlias lab
    IdentityFile {self.world.base}/user_key
    IdentitiesOnly yes
    UserKnownHostsFile {known}
    StrictHostKeyChecking yes
""")


def send(number: int, pids: list[int]) -> None:
    for pid in pids:
        # A connection may have ended by itself since it was listed.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def add_user(world: World, site: Site) -> None:
    """Add the unprivileged user, and others, to the lab's own copy of /etc/passwd."""
    for number, name in enumerate((site.user, *site.others), start=UID):
        _add_account(world, name, number)
    user, home = site.user, f"/home/{site.user}"
    scratch = f"/scratch/{site.project}/{user}"
    world.path(scratch).mkdir(parents=True)
    world.run(["chown", f"{UID}:{UID}", home, scratch])
    world.write("/etc/profile.d/site.sh", f"export SCRATCH={scratch}\n{banner(site)}")
    if site.banner:
        # bash reads this file for commands that come over ssh, which print the banner too.
        world.write("/etc/bash.bashrc", banner(site))


def _add_account(world: World, name: str, number: int) -> None:
    # Without PAM, sshd takes the usual "!" for a locked account and refuses keys too.
    lines = {
        "/etc/passwd": f"{name}:x:{number}:{number}::/home/{name}:/bin/bash\n",
        "/etc/group": f"{name}:x:{number}:\n",
        "/etc/shadow": f"{name}:*:19000:0:99999:7:::\n",
    }
    for file, line in lines.items():
        with world.path(file).open("a") as stream:
            stream.write(line)
    world.path(f"/home/{name}").mkdir(parents=True, exist_ok=True)
    world.run(["chown", f"{number}:{number}", f"/home/{name}"])


def banner(site: Site) -> str:
    if not site.banner:
        return ""
    return f"cat <<'END_OF_BANNER'\n{site.banner}\nEND_OF_BANNER\n"
