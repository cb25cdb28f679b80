"""A folder of this user alone, for the sockets of connections and what is noted about them.

Neither pathlib nor the like: `status` reads here before it has imported anything.
"""

import os
import stat
from contextlib import suppress

from rabaska.errors import Unreachable


def private_folder() -> str:
    """Short, too: the path of a socket may have about 100 characters."""
    # Not the folder for temporary files: on macOS its name alone is too long.
    base = os.environ.get("XDG_RUNTIME_DIR") or "/tmp"  # noqa: S108 - checked below
    folder = f"{base}/rabaska-{os.getuid()}"
    with suppress(FileExistsError):
        os.mkdir(folder, mode=0o700)
    found = os.lstat(folder)
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise Unreachable(
            f"{folder} is not private",
            why="somebody else could use the connections kept there",
            hint=f"remove it, or `chmod 700 {folder}`",
        )
    return folder


def somebody_listens(folder: str) -> bool:
    """Whether a socket in `folder` is alive: as good as `ssh -O check`, without a process.

    OpenSSH silently opens a full connection where the socket is stale, so we ask first.
    """
    import socket  # takes longer than the question

    for name in os.listdir(folder):
        with socket.socket(socket.AF_UNIX) as line, suppress(OSError):
            line.settimeout(5)
            line.connect(f"{folder}/{name}")
            return True
    return False
