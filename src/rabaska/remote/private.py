"""A folder of this user alone, for the sockets of connections and what is noted about them.

Neither pathlib nor contextlib: `status` reads here before it has imported anything.
"""

import os
import stat

from rabaska.errors import Unreachable


def private_folder() -> str:
    """Short, too: the path of a socket may have about 100 characters."""
    # Not the folder for temporary files: on macOS its name alone is too long.
    base = os.environ.get("XDG_RUNTIME_DIR") or "/tmp"  # noqa: S108 - checked below
    folder = f"{base}/rabaska-{os.getuid()}"
    _make(folder)
    found = os.lstat(folder)
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise Unreachable(
            f"{folder} is not private",
            why="somebody else could use the connections kept there",
            hint=f"remove it, or `chmod 700 {folder}`",
        )
    return folder


def _make(folder: str) -> None:
    try:
        os.mkdir(folder, mode=0o700)
    except FileExistsError:
        return


def somebody_listens(folder: str) -> bool:
    """Whether a socket in `folder` is alive: as good as `ssh -O check`, without a process.

    OpenSSH silently opens a full connection where the socket is stale, so we ask first.
    """
    return any(_listens(f"{folder}/{name}") for name in os.listdir(folder))


def _listens(path: str) -> bool:
    from _socket import AF_UNIX, socket  # what is around it takes longer than the question

    line = socket(AF_UNIX)
    try:
        line.settimeout(5)
        line.connect(path)
    except OSError:
        return False
    finally:
        line.close()
    return True
