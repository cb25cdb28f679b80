"""What git knows of a project: which of its files are its own."""

import os
from pathlib import Path

from rabaska.errors import CommandFailed
from rabaska.remote import programs

# The project may be somebody else's, and its `.git/config` names programs: one that watches
# files, hooks, and what fetches objects that are missing here. Looking runs none of them. Filters,
# pagers and the like are not used by `ls-files`.
_NO_PROGRAMS = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
_NO_FETCHING = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}  # the first is from 2024


def own_files(folder: Path) -> list[str] | None:
    """Tracked files and new ones that .gitignore does not leave out.

    None outside of git, and where git knows nothing of the folder's content (a project inside
    an ignored folder): then everything is the project's own.
    """
    if not programs.is_there("git"):
        if _in_repository(folder):
            raise programs.missing("git", "to know which files .gitignore leaves out")
        return None
    words = ["git", *_NO_PROGRAMS, "-C", str(folder), "ls-files", "-co", "--exclude-standard", "-z"]
    # In English, whatever the user's language.
    variables = {**os.environ, **_NO_FETCHING, "LC_ALL": "C"}
    listing = programs.run(words, capture_output=True, env=variables)
    if listing.returncode != 0:
        _refuse_failure(folder, listing.stderr.decode(errors="replace").strip())
        return None
    return [os.fsdecode(name) for name in listing.stdout.split(b"\0") if name] or None


def _in_repository(folder: Path) -> bool:
    place = folder.absolute()
    return any((above / ".git").exists() for above in (place, *place.parents))


def _refuse_failure(folder: Path, errors: str) -> None:
    """Files that .gitignore leaves out must not travel because git itself has a problem."""
    if "not a git repository" in errors:
        return
    raise CommandFailed(
        f"git cannot list the files of {folder}",
        why=f"git said: {errors}",
        hint=f"`git -C {folder} status` must work first; it says what to do",
    )
