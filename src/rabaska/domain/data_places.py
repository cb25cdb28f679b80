"""Where data on a cluster is: a path there, a dataset of the site, or a disk of the nodes."""

from collections.abc import Sequence
from dataclasses import dataclass

from rabaska.domain.clusters import SiteDataset

SITE, NODE = "site:", "node:"


@dataclass(frozen=True)
class DataPlace:
    path: str  # may hold shell variables
    nodes_only: bool = False  # whether a login node does not see it


def data_place(at: str, datasets: Sequence[SiteDataset]) -> DataPlace | None:
    """What `at` means on a cluster with these datasets; None if it has no dataset of that name."""
    if at.startswith(NODE):
        return DataPlace(at.removeprefix(NODE), nodes_only=True)
    if not at.startswith(SITE):
        return DataPlace(at)
    name = at.removeprefix(SITE)
    found = (each for each in datasets if each.name.lower() == name.lower())
    return next((DataPlace(each.path, each.nodes_only) for each in found), None)
