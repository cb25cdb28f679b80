"""Hosts for editors: keys of a run, an entry that ssh reads, and the line that includes it."""

import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from rabaska.domain import untrusted
from rabaska.errors import CommandFailed
from rabaska.node import files
from rabaska.remote import programs

CONFIG = "config"
_PREFIX = "rabaska-"
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+$\\-]{0,255}")


@dataclass(frozen=True)
class SshHost:
    """A run as ssh knows it."""

    name: str  # rabaska-RUN
    config: Path  # what ssh reads of it
    folder: str = ""  # of the program, on the node


def host_name(run: str) -> str:
    return _PREFIX + run


def make_keys(folder: Path, name: str) -> tuple[bytes, str]:
    """The keys of a run in a folder of ours: that of its server, and ours as servers know it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for key in ("host_key", "user_key"):
        if not (folder / f"{key}.pub").exists():
            (folder / key).unlink(missing_ok=True)
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]
            done = programs.run([*words, str(folder / key)], capture_output=True)
            if done.returncode != 0:
                raise CommandFailed(
                    "no key could be made", why=done.stderr.decode(errors="replace").strip()
                )
    public = (folder / "host_key.pub").read_text()
    files.write_whole(str(folder / "known_hosts"), f"{name} {public}".encode())
    return (folder / "host_key").read_bytes(), (folder / "user_key.pub").read_text().strip()


def write_entry(folder: Path, name: str, user: str, stream: list[str]) -> Path:
    """The entry of a run, next to its keys, and the file that holds those of all runs."""
    if not _USER.fullmatch(user):
        # One line that ssh does not understand, and it reaches no host at all any more.
        raise untrusted.unusable("", untrusted.Unexpected(f"{user!r} is the name of no user"))
    entry = [
        f"Host {name}",
        f"  HostName {name}",
        f"  HostKeyAlias {name}",
        f"  User {user}",
        f"  ProxyCommand {' '.join(_escaped(word) for word in stream)}",
        f"  IdentityFile {_quoted(folder / 'user_key')}",
        "  IdentitiesOnly yes",
        "  IdentityAgent none",
        f"  UserKnownHostsFile {_quoted(folder / 'known_hosts')}",
        "  StrictHostKeyChecking yes",
        "  ForwardAgent no",
        "  ForwardX11 no",
        "  ControlMaster no",
        "  ControlPath none",
        "  ServerAliveInterval 15",
    ]
    files.write_whole(str(folder / "entry"), ("\n".join(entry) + "\n").encode())
    return write_config(folder.parent)


def write_config(place: Path) -> Path:
    """All entries in one file, which `~/.ssh/config` includes."""
    entries = [path.read_text() for path in sorted(place.glob("*/entry"))]
    config = place / CONFIG
    text = "# Written by `rabaska code`; runs as hosts.\n" + "\n".join(entries)
    # As `write_whole`, but for the mode: ssh stops at a file that others may write to.
    partial = place / f"{CONFIG}.{os.getpid()}.partial"
    partial.unlink(missing_ok=True)
    partial.touch(0o600)
    partial.write_text(text)
    partial.replace(config)
    return config


def forget_entries(place: Path, known: set[str]) -> None:
    """Remove what is left of runs that are not known any more."""
    for folder in place.iterdir() if place.is_dir() else ():
        if folder.is_dir() and folder.name not in known:
            shutil.rmtree(folder, ignore_errors=True)


def stream_command(run: str) -> list[str]:
    """What connects ssh with the job of a run, whichever folder it is started in."""
    chosen = os.environ.get("RABASKA_HOME")
    home = ["env", f"RABASKA_HOME={Path(chosen).expanduser().absolute()}"] if chosen else []
    return [*home, sys.executable, "-m", "rabaska", "code", "--stream", run]


def is_included(config: Path) -> bool:
    try:
        lines = _own_config().read_text(errors="replace").splitlines()
    except OSError:
        return False
    return _line(config) in [line.strip() for line in lines]


def include(config: Path) -> Path:
    """Add the line to `~/.ssh/config`, before everything else: after a Host it would be its own."""
    own = _own_config()
    own.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        before, mode = own.read_bytes(), own.stat().st_mode & 0o777
    except FileNotFoundError:
        before, mode = b"", 0o600
    partial = own.with_name(f".{own.name}.{os.getpid()}.partial")
    partial.write_bytes(f"{_line(config)}\n\n".encode() + before)
    partial.chmod(mode)
    partial.replace(own)
    return own


def tried(host: SshHost) -> str:
    """The folder that a connection begins in; CommandFailed with what ssh, or `stream`, said."""
    words = ["ssh", "-F", str(host.config), "-o", "BatchMode=yes", host.name, "pwd"]
    done = programs.run(words, capture_output=True)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        told = {word: rest for word, _, rest in (line.strip().partition(" ") for line in said)}
        known = "`rabaska exec RUN -- COMMAND` and `rabaska shell` need no ssh server there"
        first = said[0] if said else f"ssh ended with exit code {done.returncode}"
        raise CommandFailed(
            f"{host.name} cannot be reached by ssh",
            why=told.get("because", first),
            hint=told["hint:"] if "because" in told and "hint:" in told else known,
        )
    return (done.stdout.decode(errors="replace").strip().splitlines() or [""])[-1]


def _own_config() -> Path:
    return (Path.home() / ".ssh" / "config").resolve()


def _line(config: Path) -> str:
    return f"Include {_quoted(config)}"


def _quoted(path: Path) -> str:
    return f'"{path}"' if " " in str(path) else str(path)


def _escaped(word: str) -> str:
    """For the shell that ssh starts, which replaces what begins with a per cent sign first."""
    return shlex.quote(word).replace("%", "%%")
