"""A folder of this user alone, for the sockets of connections and what is noted about them.

Neither pathlib nor contextlib: `status` reads here before it has imported anything.
"""

import os

from rabaska.errors import Unreachable
from rabaska.node import private_folders


def private_socket_folder() -> str:
    """The first of the usual places that is ours alone.

    Short, too: the path of a socket may have about 100 characters.
    """
    refused = ""
    for folder in _places():
        why = private_folders.claim(folder)
        if not why:
            return folder
        refused = refused or why
    raise Unreachable(
        "there is no private folder for ssh connections",
        why=f"{refused}; other users could use the connections in it",
        hint="set XDG_RUNTIME_DIR to a folder of your own",
    )


def _places() -> list[str]:
    # Not the folder for temporary files: on macOS its name alone is too long.
    base = os.environ.get("XDG_RUNTIME_DIR") or "/tmp"  # noqa: S108 - looked at before it is used
    name = f"rabaska-{os.getuid()}"
    return [f"{base}/{name}", os.path.expanduser(f"~/.{name}")]


def is_listening(folder: str) -> bool:
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
