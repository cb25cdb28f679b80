"""Profiles that were checked once, so that the next command need not check them again.

Checking takes half a second of imports, and profiles change once a year.
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from rabaska.domain.clusters import Cluster, Partition, Tier
from rabaska.node import files
from rabaska.node.version import __version__

_DURATIONS = ("walltime", "shortest")  # kept as seconds


def recalled(folder: Path, profile: Path) -> Cluster | None:
    """The cluster of a profile whose very text was found to be right before."""
    try:
        told = json.loads(_file(folder, profile).read_bytes())
        if told["made_from"] == _made_from(profile):
            return _cluster(told["cluster"])
    except (OSError, ValueError, TypeError, KeyError):
        pass  # what cannot be read is checked again
    return None


def keep(folder: Path, profile: Path, cluster: Cluster) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    told = {"made_from": _made_from(profile), "cluster": _plain(cluster)}
    files.write_whole(str(_file(folder, profile)), json.dumps(told))


def _file(folder: Path, profile: Path) -> Path:
    return folder / f"{profile.stem}.json"


def _made_from(profile: Path) -> list[str]:
    """The profile's own text, the release, and the shape that a cluster has in it."""
    shape = " ".join(field.name for field in fields(Cluster))
    return [__version__, shape, profile.read_text(encoding="utf-8")]


def _plain(value: Any) -> Any:
    if isinstance(value, Cluster | Partition | Tier):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value


def _cluster(told: dict[str, Any]) -> Cluster:
    told["partitions"] = [Partition(**_read(each)) for each in told["partitions"]]
    told["storage"] = [Tier(**_read(each)) for each in told["storage"]]
    return Cluster(**_read(told))


def _read(told: Mapping[str, Any]) -> dict[str, Any]:
    """Lists are tuples again, and seconds durations."""
    read: dict[str, Any] = {**told}
    for name, value in told.items():
        if isinstance(value, list):
            read[name] = tuple(value)
        elif name in _DURATIONS and value is not None:
            read[name] = timedelta(seconds=value)
    return read
