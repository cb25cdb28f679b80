"""The folder where this computer keeps what it remembers."""

import os
from dataclasses import dataclass
from pathlib import Path

from rabaska.errors import SettingsError

_ROOMS = ("runs", "store", "reports", "checked", "seen", "clusters")


@dataclass(frozen=True)
class Home:
    """Its rooms, by name."""

    folder: Path

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def store(self) -> Path:
        """Packs, snapshots and, for the cluster `here`, runs and environments."""
        return self.folder / "store"

    @property
    def reports(self) -> Path:
        return self.folder / "reports"

    @property
    def checked(self) -> Path:
        """Profiles as they were understood, see `records.clusters`."""
        return self.folder / "checked"

    @property
    def seen(self) -> Path:
        """What clusters showed of themselves, see `records.seen`."""
        return self.folder / "seen"

    @property
    def profiles(self) -> Path:
        return self.folder / "clusters"


def home() -> Home:
    """`RABASKA_HOME`, or the platform's usual folder for a program's data; closed to others."""
    chosen = os.environ.get("RABASKA_HOME")
    if chosen:
        found = Home(Path(chosen).expanduser().absolute())
    else:
        import platformdirs

        found = Home(platformdirs.user_data_path("rabaska", appauthor=False))
    _close(str(found.folder))
    return found


def made_home() -> Home:
    """The same, made where it is missing."""
    found = home()
    found.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return found


def _close(folder: str) -> None:
    """What an older rabaska left open is closed; a folder that holds other things as well was not
    made for us, and only our own rooms in it are closed."""
    _refuse_others(folder)
    if not _is_open(folder):
        return
    rooms = [f"{folder}/{room}" for room in _ROOMS]
    alone = set(os.listdir(folder)) <= {*_ROOMS}  # noqa: PTH208
    for path in [folder] if alone else rooms:
        if _is_open(path):
            os.chmod(path, 0o700)  # noqa: PTH101


def _refuse_others(folder: str) -> None:
    """Whoever owns the folder could have their own code run by us."""
    try:
        owner = os.lstat(folder).st_uid
    except OSError:
        return  # it is made by us, when it is needed
    if owner not in (os.getuid(), 0):
        raise SettingsError(
            f"{folder} belongs to another user",
            why="its owner could change what rabaska keeps and runs there",
            hint="set RABASKA_HOME to a folder of your own",
        )


def _is_open(folder: str) -> bool:
    """Whether it is ours, and others may look into it."""
    try:
        found = os.stat(folder)  # noqa: PTH116 - each command comes here
    except OSError:
        return False
    return found.st_uid == os.getuid() and bool(found.st_mode & 0o077)
