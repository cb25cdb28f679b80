"""Globus: a pack goes to a cluster by the site's own service, and is taken up when it is there."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from posixpath import relpath
from typing import Any

from rabaska.domain import untrusted
from rabaska.domain.projects import Dataset, Project
from rabaska.errors import DamagedPack, SettingsError, WrongUse
from rabaska.node.login.take_up_pack import ABSENT, DAMAGED, ON_ITS_WAY, TAKEN, THERE
from rabaska.packing.make_pack import Pack
from rabaska.records.home import Home
from rabaska.remote import globus as program
from rabaska.settings.project_file import check_data, load
from rabaska.steps.connect import ConnectedCluster, connect
from rabaska.steps.pack_dataset import pack_dataset
from rabaska.steps.prepare_data import download_here
from rabaska.steps.progress import Reporter

ARRIVING = "arriving"  # the folder of the store into which others bring packs
YOUR_ENDPOINT = "YOUR-ENDPOINT"
_STATES = (THERE, ABSENT, ON_ITS_WAY, DAMAGED, TAKEN)
_ANSWER = {"state": re.compile("|".join(_STATES)), "have": untrusted.SIZE, "problems": [str]}


@dataclass(frozen=True)
class GlobusTransfer:
    """A pack, how it gets to a cluster, and how far it is."""

    dataset: str
    pack: str
    bytes: int
    state: str  # there, absent, on its way, taken, or started
    have: int  # bytes that have arrived
    command: tuple[str, ...]  # begins the transfer
    task: str = ""  # of a transfer that was started just now


def globus(
    folder: Path,
    name: str,
    on: str,
    home: Home,
    reporter: Reporter,
    *,
    start: bool = False,
    endpoint: str = "",
) -> GlobusTransfer:
    """Take up the pack of a dataset that has arrived; else say, or start, what brings it.

    `endpoint` is this computer's; left out, the one of its Globus Connect Personal.
    """
    project = load(folder, cluster=on)
    dataset = _dataset(project, name)
    cluster = connect(on, home, reporter)
    if not cluster.cluster.globus:
        raise SettingsError(
            f"the profile of {on} names no Globus endpoint",
            hint='write `globus = "ID"` under [reach] in the profile; the site\'s pages tell the '
            "id, and so does `globus endpoint search`",
        )
    pack = _pack(project, dataset, home, reporter)
    size = sum(path.stat().st_size for path in pack.folder.iterdir())
    target = f"{cluster.store}/{ARRIVING}/{pack.identity}"
    words = program.transfer_command(
        f"{endpoint or program.local_endpoint() or YOUR_ENDPOINT}:{pack.folder}/",
        f"{cluster.cluster.globus}:{_on_endpoint(target, cluster.cluster.globus_root)}/",
        f"rabaska {pack.identity}",
    )
    told = _take_up(pack, cluster)
    transfer = GlobusTransfer(
        dataset.name, pack.identity, size, told["state"], told["have"], tuple(words)
    )
    if start and told["state"] == ABSENT:
        _refuse_without_endpoint(words)
        return replace(transfer, state="started", task=program.start_transfer(words))
    return transfer


def _dataset(project: Project, name: str) -> Dataset:
    for dataset in project.datasets:
        if dataset.name == name:
            if dataset.at:
                raise WrongUse(
                    f"dataset `{name}` is on the cluster already",
                    why=f"rabaska.toml says where: {dataset.at}",
                    hint=f"`rabaska data pack {name} --on CLUSTER` packs it there",
                )
            return dataset
    known = ", ".join(dataset.name for dataset in project.datasets)
    raise WrongUse(
        f"there is no dataset `{name}`", why=f"the datasets in rabaska.toml are: {known or 'none'}"
    )


def _pack(project: Project, dataset: Dataset, home: Home, reporter: Reporter) -> Pack:
    if dataset.is_downloaded:
        dataset = download_here(dataset, connect("here", home), reporter)
    check_data(replace(project, command=(), datasets=(dataset,)))
    return pack_dataset(dataset, home, reporter)


def _on_endpoint(path: str, root: str) -> str:
    """The path as the endpoint spells it, which may show only a part of the file system."""
    return f"/{relpath(path, root)}" if root else path


def _take_up(pack: Pack, cluster: ConnectedCluster) -> dict[str, Any]:
    arriving, packs = f"{cluster.store}/{ARRIVING}", f"{cluster.store}/packs"
    answer = cluster.ask("take-up", arriving, packs, pack.identity).output
    try:
        told: dict[str, Any] = untrusted.read(answer, _ANSWER)
    except untrusted.Unexpected as problem:
        raise untrusted.unusable(cluster.name, problem) from problem
    if told["state"] == DAMAGED:
        raise DamagedPack(
            f"what arrived of {pack.identity} on {cluster.name} is damaged",
            why="; ".join(told["problems"]),
            hint="begin the same transfer again: it replaces only files that differ",
        )
    return told


def _refuse_without_endpoint(words: list[str]) -> None:
    if any(word.startswith(YOUR_ENDPOINT) for word in words):
        raise WrongUse(
            "this computer is no Globus endpoint",
            why="`globus endpoint local-id` names none",
            hint="install Globus Connect Personal, or name an endpoint that sees the pack with "
            "`--from ID`",
        )


__all__ = ["ABSENT", "ON_ITS_WAY", "TAKEN", "THERE", "GlobusTransfer", "globus"]
