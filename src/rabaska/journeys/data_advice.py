"""Data advice: measure a folder, here or on a cluster, and say whether packing it pays."""

import os
from dataclasses import fields, replace
from pathlib import Path

from rabaska.domain import untrusted
from rabaska.domain.data_placement import DatasetSize, TierSpeed, best_mode, place
from rabaska.domain.projects import Dataset, Project
from rabaska.errors import DatasetError, WrongUse
from rabaska.journeys.data import query
from rabaska.node.data import storage_speed
from rabaska.packing.pack_advice import Advice, few_large_files
from rabaska.packing.pack_advice import advise as measured
from rabaska.records.home import Home
from rabaska.settings.project_file import load
from rabaska.steps.connect import ConnectedCluster, connect
from rabaska.steps.prepare_data import locate

# What the node side answers; see `measure` there.
_MEASURED = {
    "path?": str,
    "free?": int,
    "files?": (int, None),
    "write?": float,
    "read?": float,
    "seconds_to_make?": untrusted.TIME,
    "seconds_to_read?": untrusted.TIME,
    "why?": str,
}
_SAMPLED = {
    "files": untrusted.SIZE,
    "bytes": untrusted.SIZE,
    "seconds_per_file": untrusted.TIME,
    "shrinks_to": float,
    "complete": bool,
}


def advise(folder: Path, home: Home, on: str = "") -> Advice:
    """What was measured of a folder, of this disk and, with `on`, of a cluster's storage."""
    home.store.mkdir(parents=True, exist_ok=True)
    advice = measured(folder, storage_speed.measured(os.fspath(home.store))["read"])
    return _for_cluster(advice, connect(on, home)) if on else advice


def advise_there(name: str, folder: Path, home: Home, on: str) -> Advice:
    """The same for a dataset of the project around `folder` that is on the cluster already."""
    project = load(folder, cluster=on)
    cluster = connect(on, home)
    paths = locate(replace(project, datasets=_called(project, name)), cluster)
    if name not in paths:
        raise WrongUse(
            f"dataset `{name}` is not on {on}",
            hint=f"`rabaska data advise FOLDER --on {on}` measures a folder of this computer",
        )
    seen = query(cluster, _SAMPLED, "sample-folder", paths[name])
    if not seen["files"]:
        raise DatasetError(f"there is no file in {paths[name]} on {on}", hint="check `at`")
    size = DatasetSize(seen["files"], seen["bytes"])
    few = few_large_files(size.files, size.bytes)
    figures = (seen["seconds_per_file"], 0.0, seen["shrinks_to"])
    advice = Advice(size.files, size.bytes, *figures, not few, best_mode(size, None))
    found = _for_cluster(advice, cluster)
    read = next((tier.read for tier in found.tiers if tier.path == cluster.store), 0.0)
    return replace(found, speed=read, pack=found.pack and not few)


def _called(project: Project, name: str) -> tuple[Dataset, ...]:
    datasets = tuple(dataset for dataset in project.datasets if dataset.name == name)
    if not datasets:
        known = ", ".join(dataset.name for dataset in project.datasets)
        raise WrongUse(
            f"there is no folder or dataset `{name}`",
            why=f"the datasets in rabaska.toml are: {known or 'none'}",
        )
    return datasets


def _for_cluster(advice: Advice, cluster: ConnectedCluster) -> Advice:
    """The same with the figures of a cluster, whose storage decides there."""
    tiers, queue = _tiers(cluster), cluster.cluster.partition("")
    memory = queue.memory_per_gpu if queue else 0
    (placed,) = place([("it", advice.bytes)], cluster.cluster, queue, memory)
    speeds = {tier.path: tier for tier in tiers if not tier.why}
    shared = speeds.get(cluster.store)
    return replace(
        advice,
        pack=shared.packing_pays(advice.dataset) if shared else advice.pack,
        mode=best_mode(advice.dataset, speeds.get(placed.read)),
        tiers=tiers,
        tier=placed.read,
        why=placed.why,
        python_only=query(cluster, {"why": str}, "compiled")["why"],
    )


def _tiers(cluster: ConnectedCluster) -> tuple[TierSpeed, ...]:
    """Every storage of a cluster that its login node can reach, measured in one round trip."""
    local = cluster.cluster.local_space or cluster.scheduler.in_job().local_space
    folders = {"store": cluster.store, "node": local, **cluster.cluster.tiers}
    words = [f"{name}={path}" for name, path in folders.items() if path]
    answer = query(cluster, {str: _MEASURED}, "measure", *words)
    names = {field.name for field in fields(TierSpeed)} - {"tier"}
    return tuple(
        TierSpeed(tier=name, **{key: figures[key] for key in names & figures.keys()})
        for name, figures in answer.items()
    )
