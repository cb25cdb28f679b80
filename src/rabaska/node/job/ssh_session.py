"""An ssh server for one connection, and what it starts: inside the job, as `rabaska exec` would.

It serves a connection that is there already, with the keys in `servers/ssh` of the run folder, and
listens nowhere. `ssh-session RUNFOLDER JOB` is what it starts for every shell, command and file
transfer: in the folder and the environment of the program.
"""

import os
import pwd
import shlex
import shutil
import socket
import subprocess
import sys
from typing import Callable, List, Optional

from .. import own_program
from ..record.events import say
from ..record.run_folder import RunFolder
from . import exec_command

_PLACES = "/usr/sbin:/usr/local/sbin:/sbin:/usr/bin:/usr/local/bin"
_TRANSFERS = (
    "/usr/lib/openssh/sftp-server",
    "/usr/libexec/openssh/sftp-server",
    "/usr/lib/ssh/sftp-server",
    "/usr/libexec/sftp-server",
)
# Of the connection, and not of the program.
_KEPT = ("TERM", "LANG", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "COLORTERM")
_CONFIG = """\
HostKey {keys}/host_key
AuthorizedKeysFile {keys}/authorized_keys
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PermitUserRC no
PrintMotd no
X11Forwarding no
AllowAgentForwarding no
GatewayPorts no
AllowTcpForwarding local
LogLevel ERROR
AcceptEnv LANG COLORTERM
Subsystem sftp {sftp}
ForceCommand {session}
"""


def server(run: RunFolder, job: str) -> "Optional[Callable[[], socket.socket]]":
    """What makes a connection to an ssh server; None where the node has none."""
    program = shutil.which("sshd", path=_PLACES)
    if program is None:
        say("this node has no sshd, the ssh server")
        return None
    keys = os.path.join(run.path, "servers", "ssh")
    own = [sys.executable, own_program.own_path(), "ssh-session", run.path, job]
    transfer = next((path for path in _TRANSFERS if os.path.exists(path)), _TRANSFERS[0])
    config = os.path.join(keys, "config-{}".format(job))
    session = " ".join(shlex.quote(word) for word in own)
    descriptor = os.open(config, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w") as stream:
        stream.write(_CONFIG.format(keys=keys, sftp=transfer, session=session))
    if os.getuid() == 0:
        os.makedirs("/run/sshd", 0o755, exist_ok=True)  # which it wants to see
    words = [program, "-i", "-e", "-f", config]

    def connect() -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            subprocess.Popen(words, stdin=theirs.fileno(), stdout=theirs.fileno())
        return ours

    return connect


def main(argv: List[str]) -> int:
    """What the ssh server starts instead of what was asked for, which it starts in the job."""
    asked = os.environ.get("SSH_ORIGINAL_COMMAND", "")
    shell = pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    words = [shell, "-c", asked] if asked else [shell, "-i"]
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return exec_command.main(argv[:2] + ["--"] + words, kept)
