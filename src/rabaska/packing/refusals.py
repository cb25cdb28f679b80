"""What cannot be packed is refused before anything is read; a full disk is named."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rabaska.domain.secrets import file_looks_secret, keeps_secrets
from rabaska.errors import DatasetError, NoSpace


def refuse_name(name: str) -> None:
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
        return
    raise DatasetError(
        f"a dataset cannot be called {name!r}",
        why="its name becomes the name of a folder on clusters",
        hint="use letters, digits, `-`, `_` and `.`",
    )


def refuse_unfit(source: Path, store: Path) -> None:
    """Refuse what is no folder, or holds the store that its pack would go into."""
    if not source.exists():
        raise DatasetError(
            f"there is no folder {source}",
            hint="check the path under [data] in rabaska.toml",
        )
    if not source.is_dir():
        raise DatasetError(
            f"{source} is not a folder",
            why="a dataset is a folder of files",
            hint="put the file into a folder of its own and name that under [data]",
        )
    if store.resolve().is_relative_to(source.resolve()):
        raise DatasetError(
            f"{source} cannot be packed into itself",
            why=f"packs are kept in {store}, inside it",
            hint="set RABASKA_HOME to a folder outside the dataset",
        )


def refuse_secrets(path: str) -> None:
    """Refuse keys and passwords as data: somebody else's rabaska.toml may name any folder."""
    real = os.path.realpath(path)
    is_secret = Path(real).is_file() and file_looks_secret(real)
    # Not Path.home, which fails for a user without a name.
    home = os.path.realpath(os.path.expanduser("~"))
    if not is_secret and not keeps_secrets(real, home):
        return
    raise DatasetError(
        f"{path} is not packed: keys and passwords are kept there",
        why=f"it is {real}, and what is packed is sent to the cluster, where the program reads it",
        hint="check [data] in rabaska.toml; copy what is really data into a folder of its own",
    )


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def space_needed(store: Path, act: str) -> Iterator[None]:
    """Turn a full disk or quota into NoSpace; any other error stays what it is."""
    try:
        yield
    except OSError as problem:
        if problem.errno not in _FULL:
            raise
        raise NoSpace(
            f"no space left to {act}",
            why=f"{problem.strerror} in {store}",
            hint="free some space, or set RABASKA_HOME to a folder on a larger disk",
        ) from problem
