"""What git knows of a project: which of its files are its own."""

import os
import shutil
import subprocess
from pathlib import Path


def own_files(folder: Path) -> list[str] | None:
    """Tracked files and new ones that .gitignore does not leave out.

    None outside of git, and where git knows nothing of the folder's content (a project inside
    an ignored folder): then everything is the project's own.
    """
    if not shutil.which("git"):
        return None
    listing = subprocess.run(
        ["git", "-C", str(folder), "ls-files", "-co", "--exclude-standard", "-z"],
        capture_output=True,
        check=False,
    )
    names = [os.fsdecode(name) for name in listing.stdout.split(b"\0") if name]
    return names if listing.returncode == 0 and names else None
