"""What runs that are over reported last, so that clusters need not tell it again."""

import json
from pathlib import Path
from typing import Any

from rabaska.node import files

Report = dict[str, Any]


def recalled(folder: Path, cluster: str) -> dict[str, Report]:
    """The last reports of a cluster's runs, by run folder; nothing when they cannot be read."""
    try:
        value = json.loads((folder / f"{cluster}.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def keep(folder: Path, cluster: str, reports: dict[str, Report]) -> None:
    """Keep the reports that carry a mark: the cluster can tell whether they still hold."""
    folder.mkdir(parents=True, exist_ok=True)
    marked = {path: report for path, report in reports.items() if report.get("mark")}
    files.write_whole(str(folder / f"{cluster}.json"), json.dumps(marked))
