"""What clusters showed of themselves, until the text of their profile changes."""

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path

from rabaska.domain.seen import Fact, Seen
from rabaska.node import files


def recalled(folder: Path, profile: Path) -> Seen | None:
    try:
        told = json.loads(_file(folder, profile).read_bytes())
        told["facts"] = tuple(Fact(**fact) for fact in told["facts"])
        told |= {name: tuple(told[name]) for name in ("accounts", "wheelhouse", "partitions")}
        return Seen(**told)
    except (OSError, ValueError, TypeError, KeyError):
        return None  # what cannot be read is looked at again


def keep(folder: Path, profile: Path, seen: Seen) -> None:
    """Queues are left out: they are asked after whenever they matter."""
    folder.mkdir(parents=True, exist_ok=True)
    lasting = replace(seen, partitions=())
    files.write_json(str(_file(folder, profile)), asdict(lasting))


def _file(folder: Path, profile: Path) -> Path:
    digest = hashlib.sha256(profile.read_bytes()).hexdigest()
    return folder / f"{profile.stem}-{digest[:12]}.json"
