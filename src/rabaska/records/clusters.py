"""Profiles that were checked once, so that the next command need not check them again.

Checking takes half a second of imports, and profiles change once a year.
"""

import hashlib
import pickle
from dataclasses import fields
from pathlib import Path

from rabaska.domain.clusters import Cluster
from rabaska.node import files
from rabaska.node.version import __version__


def recalled(folder: Path, profile: Path) -> Cluster | None:
    """The cluster of a profile whose very text was found to be right before."""
    try:
        content = _file(folder, profile).read_bytes()
        known = pickle.loads(content)  # noqa: S301 - only this module writes there, for its user
    except (OSError, ValueError, EOFError, AttributeError, ImportError, pickle.PickleError):
        return None
    return known if isinstance(known, Cluster) else None


def keep(folder: Path, profile: Path, cluster: Cluster) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    files.write_whole(str(_file(folder, profile)), pickle.dumps(cluster))


def _file(folder: Path, profile: Path) -> Path:
    """One for each text, each release, and each shape that a cluster has had."""
    shape = " ".join(field.name for field in fields(Cluster))
    key = hashlib.sha256(f"{__version__}\0{shape}\0{profile.stem}\0".encode())
    key.update(profile.read_bytes())
    return folder / f"{profile.stem}-{key.hexdigest()[:12]}"
