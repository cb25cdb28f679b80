"""Use: the cluster that a project uses where nobody names one."""

from pathlib import Path

from rabaska.records.home import Home
from rabaska.settings.profile_files import profile_files
from rabaska.settings.profiles import unknown
from rabaska.settings.project_file import default_cluster
from rabaska.settings.write_choice import set_default_cluster


def use(folder: Path, home: Home, name: str = "") -> str:
    """The project's default cluster, after it was set to `name` where one is given."""
    if not name:
        return default_cluster(folder)
    known = profile_files(home.profiles)
    if name not in known:
        raise unknown(name, known)
    set_default_cluster(folder, name)
    return name
