"""The folder where this computer keeps what it remembers."""

import os
from dataclasses import dataclass
from pathlib import Path


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
    """`RABASKA_HOME`, or the platform's usual folder for a program's data."""
    chosen = os.environ.get("RABASKA_HOME")
    if chosen:
        return Home(Path(chosen).expanduser().absolute())
    import platformdirs

    return Home(platformdirs.user_data_path("rabaska", appauthor=False))
