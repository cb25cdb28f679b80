"""The folder where this computer keeps what it remembers."""

import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rabaska.errors import SettingsError

_ROOMS = (
    "runs", "searches", "store", "reports", "checked", "seen", "clusters", "live", "notified",
    "events", "ssh",
)  # fmt: skip
_FILES = ("settings.toml",)
_OWN = "set RABASKA_HOME to a folder of your own"


@dataclass(frozen=True)
class Home:
    """Its rooms, by name."""

    folder: Path

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def searches(self) -> Path:
        return self.folder / "searches"

    @property
    def store(self) -> Path:
        """Packs, snapshots and, for the cluster `here`, runs and environments."""
        return self.folder / "store"

    @property
    def reports(self) -> Path:
        return self.folder / "reports"

    @property
    def checked(self) -> Path:
        """Profiles as they were understood, see `records.caches`."""
        return self.folder / "checked"

    @property
    def seen(self) -> Path:
        """What clusters showed of themselves, see `records.caches`."""
        return self.folder / "seen"

    @property
    def live(self) -> Path:
        """The numbers of runs as they last arrived, see `records.series_files`."""
        return self.folder / "live"

    @property
    def notified(self) -> Path:
        """What somebody was told already, see `records.notified`."""
        return self.folder / "notified"

    @property
    def profiles(self) -> Path:
        return self.folder / "clusters"


def home() -> Home:
    """`RABASKA_HOME`, or the platform's usual folder for a program's data; closed to others."""
    chosen = os.environ.get("RABASKA_HOME")
    if chosen:
        chosen_home = Home(Path(chosen).expanduser().absolute())
    else:
        import platformdirs

        chosen_home = Home(platformdirs.user_data_path("rabaska", appauthor=False))
    _close(str(chosen_home.folder))
    return chosen_home


def made_home() -> Home:
    """The same, made where it is missing."""
    chosen_home = home()
    chosen_home.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return chosen_home


def _close(folder: str) -> None:
    """What an older rabaska left open is closed; a folder that holds other things as well was not
    made for us, and only our own rooms in it are closed."""
    rooms = [f"{folder}/{room}" for room in _ROOMS]
    for path in _steps(folder):
        _refuse_step(path)
    for path in [folder, *rooms]:
        _refuse_owner(path)
    if not _is_open(folder):
        _refuse_writers(folder)  # root's
        return
    alone = set(os.listdir(folder)) <= {*_ROOMS, *_FILES}  # noqa: PTH208
    for path in rooms:
        _refuse_writers(path)
    for path in [folder] if alone else rooms:
        if _is_open(path):
            os.chmod(path, 0o700)  # noqa: PTH101
    _refuse_writers(folder)


def _steps(folder: str) -> list[str]:
    """Folders and links on the way there, as it is spelled and as it is."""
    steps = []
    for path in {folder, os.path.realpath(folder)}:
        while path != os.path.dirname(path):  # noqa: PTH120 - each command comes here
            steps.append(path)
            path = os.path.dirname(path)  # noqa: PTH120
    return steps


def _refuse_step(path: str) -> None:
    """A folder above ours may be a colleague's, but none that anybody could have made or moved."""
    try:
        mode = os.stat(os.path.dirname(path)).st_mode  # noqa: PTH116, PTH120
    except OSError:
        return
    if not mode & stat.S_IWOTH:
        return
    if not mode & stat.S_ISVTX:
        raise SettingsError(
            f"everybody may rename {path}",
            why="they could replace it, and rabaska would run what they put there",
            hint=_OWN,
        )
    _refuse_owner(path)


def _refuse_owner(path: str) -> None:
    """Whoever owns a folder of ours could have their own code run by us."""
    try:
        owners = {os.lstat(path).st_uid, os.stat(path).st_uid}  # noqa: PTH116
    except OSError:
        return  # it is made by us, when it is needed
    if not owners <= {os.getuid(), 0}:
        raise SettingsError(
            f"{path} belongs to another user",
            why="its owner could change what rabaska keeps and runs there",
            hint=_OWN,
        )


def _refuse_writers(path: str) -> None:
    """Whoever may write there could put something of theirs in the place of ours."""
    from rabaska.node.private_files import others_write

    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return
    if others_write(status):
        raise SettingsError(
            f"others may write to {path}",
            why="they could change what rabaska keeps and runs there",
            hint=f"{_OWN}, or `chmod go-w {path}` if you know every file in it",
        )


def _is_open(folder: str) -> bool:
    """Whether it is ours, and others may look into it."""
    try:
        status = os.stat(folder)  # noqa: PTH116 - each command comes here
    except OSError:
        return False
    return status.st_uid == os.getuid() and bool(status.st_mode & 0o077)


@contextmanager
def attempt(home: Home, project: Path | None) -> Iterator[None]:
    """Note that a run of the project is tried; if all goes well, there is nothing to note."""
    file = _attempt_file(home, project) if project else None
    # A note is not worth a failed run.
    if file:
        with suppress(OSError):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file.touch()
    yield
    if file:
        with suppress(OSError):
            file.unlink(missing_ok=True)


def failed_attempt(home: Home, project: Path | None) -> float:
    """When a run of the project was tried last, if no run came of it; else 0.0."""
    try:
        return _attempt_file(home, project).stat().st_mtime if project else 0.0
    except OSError:
        return 0.0


def _attempt_file(home: Home, project: Path) -> Path:
    return home.seen / f"attempt-{zlib.crc32(str(project).encode()):08x}"
