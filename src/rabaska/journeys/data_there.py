"""Data there: the packs, downloads and datasets of the site that a cluster has."""

from dataclasses import dataclass

from rabaska.records.home import Home
from rabaska.steps.connect import connect
from rabaska.steps.store_contents import store_contents

_KINDS = {"packs": "pack", "downloads": "downloaded"}


@dataclass(frozen=True)
class DataThere:
    """One thing that a job on the cluster could read."""

    name: str
    dataset: str  # the name in rabaska.toml of what was packed or downloaded
    kind: str  # pack, downloaded or site
    files: int  # 0: not known
    bytes: int
    path: str
    about: str = ""


def data_there(on: str, home: Home) -> list[DataThere]:
    """What lies in the store of a cluster, and what its profile says that the site keeps."""
    cluster = connect(on, home)
    kept, _ = store_contents(cluster)
    ours = [
        DataThere(
            name=item.name,
            dataset=item.name.rpartition("-")[0],
            kind=_KINDS[item.kind],
            files=0,  # a pack's are inside its shards
            bytes=item.size,
            path=f"{cluster.store}/{item.path}",
            about=_KINDS[item.kind],
        )
        for item in kept
        if item.kind in _KINDS and not item.name.endswith(".partial")
    ]
    sites = [
        DataThere(
            name=f"site:{each.name}",
            dataset=each.name,
            kind="site",
            files=each.files,
            bytes=each.size,
            path=each.path,
            about="; ".join(text for text in (each.about, each.layout) if text),
        )
        for each in cluster.cluster.datasets
    ]
    return [*ours, *sites]
