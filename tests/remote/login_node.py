"""A login node on this computer: a real sshd that lets its own user in, with a home of its own.

What ssh would start is started by bash, as sshd does for a user whose shell that is, and so it
reads `.bashrc` first; `bash -l` reads `.bash_profile`.
"""

import getpass
import os
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SSHD = "/usr/sbin/sshd"


@dataclass(frozen=True)
class LoginNode:
    folder: Path
    path: str

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def options(self) -> tuple[str, ...]:
        return ("-F", str(self.folder / "ssh_config"))

    def starts_with(self, text: str, name: str = ".bashrc") -> None:
        """A start-up file; `.bash_profile` reads `.bashrc`, as on most systems."""
        if name == ".bashrc":
            (self.home / name).write_text(text)
            text = ". ~/.bashrc\n"
        # A system's own file may have set another PATH.
        (self.home / ".bash_profile").write_text(f"export PATH={self.path}\n{text}")


@contextmanager
def login_node(folder: Path, path: str = os.environ["PATH"], settings: str = ""):
    if not os.path.exists(SSHD) or not shutil.which("ssh-keygen"):
        pytest.skip("needs sshd")
    node = LoginNode(folder, path)
    node.home.mkdir(parents=True)
    node.starts_with("")
    for key in ("host_key", "user_key"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
        subprocess.run(words, check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    _write(node, port, settings)
    if os.getuid() == 0:
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    words = [SSHD, "-D", "-e", "-f", str(folder / "sshd_config")]
    with (folder / "sshd.log").open("wb") as log:
        serving = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _wait_for(port, serving, folder)
        yield node
    finally:
        serving.terminate()
        serving.wait()


def _write(node: LoginNode, port: int, settings: str) -> None:
    folder = node.folder
    (folder / "enter").write_text(
        f"#!/bin/bash\nexport HOME={node.home} PATH={node.path}\ncd\n"
        'exec env -u SHLVL bash -c "$SSH_ORIGINAL_COMMAND"\n'
    )
    (folder / "enter").chmod(0o755)
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host_key\n"
        f"AuthorizedKeysFile {folder}/user_key.pub\nPasswordAuthentication no\nUsePAM no\n"
        f"StrictModes no\nPermitRootLogin yes\nPidFile none\nPrintMotd no\nMaxSessions 50\n"
        f"ForceCommand {folder}/enter\n{settings}"
    )
    public = (folder / "host_key.pub").read_text()
    (folder / "known_hosts").write_text(f"login {public}")
    (folder / "ssh_config").write_text(
        f"Host login\n HostName 127.0.0.1\n Port {port}\n User {getpass.getuser()}\n"
        f" HostKeyAlias login\n IdentityFile {folder}/user_key\n IdentitiesOnly yes\n"
        f" UserKnownHostsFile {folder}/known_hosts\n StrictHostKeyChecking yes\n"
    )


def _wait_for(port: int, serving: "subprocess.Popen[bytes]", folder: Path) -> None:
    for _ in range(200):
        with socket.socket() as line:
            if line.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert serving.poll() is None, (folder / "sshd.log").read_text()
        time.sleep(0.05)
    raise AssertionError("sshd does not answer")
