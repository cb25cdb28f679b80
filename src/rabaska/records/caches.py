"""What need not be asked or read again: profiles, programs, reports of runs, what sites showed."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from rabaska.domain.clusters import (
    Cluster,
    Observations,
    Partition,
    ProfileFact,
    SiteDataset,
    Tier,
)
from rabaska.node import files
from rabaska.node.version import __version__

_DURATIONS = ("walltime", "shortest", "usual")  # kept as seconds


def cached_profile(folder: Path, profile: Path) -> Cluster | None:
    """The cluster of a profile whose very text was found to be right before."""
    try:
        record = json.loads(_profile_file(folder, profile).read_bytes())
        if record["made_from"] == _made_from(profile):
            return _cluster(record["cluster"])
    except (OSError, ValueError, TypeError, KeyError):
        pass  # what cannot be read is checked again
    return None


def cache_profile(folder: Path, profile: Path, cluster: Cluster) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    record = {"made_from": _made_from(profile), "cluster": _plain(cluster)}
    files.write_whole(str(_profile_file(folder, profile)), json.dumps(record))


def _profile_file(folder: Path, profile: Path) -> Path:
    return folder / f"{profile.stem}.json"


def _made_from(profile: Path) -> list[str]:
    """The profile's own text, the release, and the shape that a cluster has in it."""
    shape = " ".join(field.name for field in fields(Cluster))
    return [__version__, shape, profile.read_text(encoding="utf-8")]


def _plain(value: Any) -> Any:
    if isinstance(value, Cluster | Partition | SiteDataset | Tier):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _cluster(record: dict[str, Any]) -> Cluster:
    record["partitions"] = [Partition(**_read(item)) for item in record["partitions"]]
    record["storage"] = [Tier(**_read(item)) for item in record["storage"]]
    record["datasets"] = [SiteDataset(**item) for item in record["datasets"]]
    return Cluster(**_read(record))


def _read(record: Mapping[str, Any]) -> dict[str, Any]:
    """Lists are tuples again, and seconds durations."""
    read: dict[str, Any] = {**record}
    for name, value in record.items():
        if isinstance(value, list):
            read[name] = tuple(value)
        elif name in _DURATIONS and value is not None:
            read[name] = timedelta(seconds=value)
    return read


def cached_resumption(folder: Path, project: Path, made_from: list[str]) -> str:
    """How the program of a project resumes, if the very same was read before; else ""."""
    try:
        record = json.loads(_resumption_file(folder, project).read_bytes())
        return str(record["kind"]) if record["made_from"] == [__version__, *made_from] else ""
    except (OSError, ValueError, TypeError, KeyError):
        return ""  # what cannot be read is read from the source again


def cache_resumption(folder: Path, project: Path, made_from: list[str], kind: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    record = {"made_from": [__version__, *made_from], "kind": kind}
    files.write_json(str(_resumption_file(folder, project)), record)


def _resumption_file(folder: Path, project: Path) -> Path:
    digest = hashlib.sha256(str(project).encode(errors="surrogateescape")).hexdigest()
    return folder / f"program-{digest[:16]}.json"


Report = dict[str, Any]


def cached_reports(folder: Path, cluster: str) -> dict[str, Report]:
    """The last reports of a cluster's runs, by run folder; nothing when they cannot be read."""
    try:
        value = json.loads((folder / f"{cluster}.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def cache_reports(folder: Path, cluster: str, reports: dict[str, Report]) -> None:
    """Keep the reports that carry a mark: the cluster can tell whether they still hold."""
    folder.mkdir(parents=True, exist_ok=True)
    marked = {path: report for path, report in reports.items() if report.get("mark")}
    files.write_whole(str(folder / f"{cluster}.json"), json.dumps(marked))


def cached_observations(folder: Path, profile: Path) -> Observations | None:
    try:
        record = json.loads(_observations_file(folder, profile).read_bytes())
        record["facts"] = tuple(ProfileFact(**fact) for fact in record["facts"])
        record |= {name: tuple(record[name]) for name in ("accounts", "wheelhouse", "partitions")}
        return Observations(**record)
    except (OSError, ValueError, TypeError, KeyError):
        return None  # what cannot be read is looked at again


def cache_observations(folder: Path, profile: Path, observations: Observations) -> None:
    """Queues are left out: they are asked after whenever they matter."""
    folder.mkdir(parents=True, exist_ok=True)
    lasting = replace(observations, partitions=())
    files.write_json(str(_observations_file(folder, profile)), asdict(lasting))


def _observations_file(folder: Path, profile: Path) -> Path:
    digest = hashlib.sha256(profile.read_bytes()).hexdigest()
    return folder / f"{profile.stem}-{digest[:12]}.json"
