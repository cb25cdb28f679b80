"""Make data ready that is on a cluster already, or that is downloaded to it; nothing is sent."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rabaska.checkup import check_data_places
from rabaska.domain import untrusted
from rabaska.domain.amounts import say_count, say_size
from rabaska.domain.projects import IN_PLACE, Dataset, Project
from rabaska.errors import CommandFailed, DatasetError, SettingsError
from rabaska.packing.make_pack import Pack
from rabaska.remote.place import Nowhere, quoted
from rabaska.sites.questions import NO_ANSWER
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.progress import Reporter

# What a login node may be asked to pack: it is shared by all users of the cluster.
_MOST_FILES, _MOST_BYTES = 20_000, 2 * 10**9

_READY = {
    "path": str,
    "pack": re.compile(r"([^./\0][^/\0]*)?"),
    "files": untrusted.SIZE,
    "bytes": untrusted.SIZE,
    "shards": int,
    "new": bool,
    "sha256": re.compile("[0-9a-f]*"),
    "too_large": bool,
}
_ANSWER = {
    "moved?": [(int, str)],  # what is being done, how far it is, and of how much
    "problem?": {"what": str, "why": str, "hint": str},
    "ready?": _READY,
}


def locate(project: Project, cluster: ConnectedCluster) -> dict[str, str]:
    """The path of each dataset that is on the cluster; SettingsError when one is not there."""
    text = _told(project, cluster)
    for finding in check_data_places.checks(project, cluster.cluster, text):
        raise SettingsError(f"{finding.what} ({finding.where})", why=finding.why, hint=finding.fix)
    answers_of = check_data_places.read_answers(project, text)
    return check_data_places.located(project, cluster.cluster, answers_of)


def _told(project: Project, cluster: ConnectedCluster) -> str:
    """What the cluster says of the paths of datasets."""
    question = check_data_places.question(project, cluster.cluster)
    if not question or isinstance(cluster.place, Nowhere):
        return ""
    from rabaska.steps.probe_site import ask_site

    answers = ask_site(cluster.place, question, usual={})
    return answers.get(check_data_places.QUESTION, NO_ANSWER).text


def path_remedy_of(project: Project, cluster: ConnectedCluster) -> str:
    """What to write for the first `path` that is not on this computer."""
    answers = check_data_places.read_answers(project, _told(project, cluster))
    for dataset in project.datasets:
        if dataset.paths and not all(os.access(path, os.R_OK) for path in dataset.paths):
            answer = answers.get(dataset.name)
            return check_data_places.path_remedy(dataset.name, cluster.cluster, answer)
    return ""


def prepare_there(
    dataset: Dataset,
    path: str,
    cluster: ConnectedCluster,
    reporter: Reporter,
    *,
    again: bool = False,
    whole: bool = False,
) -> Pack:
    """The dataset as a pack of the cluster's store, or in place: then it has no identity.

    `path` is where it is on the cluster, if it is there; else it is downloaded. `whole` packs it
    however large it is; `again` looks at all of it, although a pack was made of it before.
    """
    if dataset.mode == IN_PLACE and path:
        reporter.step(f"data {dataset.name}: {path}, used in place on {cluster.name}")
        return in_place(path)
    ready = _ask(request(dataset, path, cluster, again=again, whole=whole), cluster, reporter)
    if ready["too_large"]:
        raise _too_large(dataset, ready, cluster)
    if dataset.is_downloaded:
        _report_download(dataset, ready, cluster, reporter)
    if dataset.mode == IN_PLACE:
        return in_place(ready["path"])
    pack = Pack(
        ready["pack"],
        Path(f"{cluster.store}/packs/{ready['pack']}"),
        ready["files"],
        ready["bytes"],
        ready["shards"],
        reused=not ready["new"],
        new=ready["new"],
    )
    look = f"`rabaska data pack {dataset.name} --on {cluster.name} --again` checks every file"
    did = "packed" if pack.new else "packed before"
    reporter.step(
        f"data {dataset.name}: {say_count(pack.files, 'file')}, {say_size(pack.bytes)}, {did} on "
        f"{cluster.name} as {pack.identity} ({say_count(pack.shards, 'shard')})"
        f"{'' if pack.new else f'; {look}'}"
    )
    return pack


def in_place(path: str) -> Pack:
    """What is used where it is: it has no identity, and nobody counted it."""
    return Pack("", Path(path), 0, 0, 0, reused=True, new=False)


def download_here(dataset: Dataset, here: ConnectedCluster, reporter: Reporter) -> Dataset:
    """The same dataset with the folder of this computer to which it was downloaded."""
    wanted = request(replace(dataset, mode=IN_PLACE), "", here)
    ready = _ask(wanted, here, reporter)
    _report_download(dataset, ready, here, reporter)
    return replace(dataset, path=Path(ready["path"]), url="", fetch="", follow_links=False)


def request(
    dataset: Dataset,
    path: str,
    cluster: ConnectedCluster,
    *,
    again: bool = False,
    whole: bool = True,
) -> dict[str, Any]:
    """What the node side is asked; see `prepare_data` there."""
    limited = not whole and not _by_transfer(cluster)
    return {
        "store": cluster.store,
        "name": dataset.name,
        "path": path,
        "url": dataset.url,
        "sha256": dataset.sha256,
        "fetch": dataset.fetch,
        "unpack": dataset.unpack,
        "pack": dataset.mode != IN_PLACE,
        "follow_links": dataset.follow_links,
        "again": again,
        "most_files": _MOST_FILES if limited else None,
        "most_bytes": _MOST_BYTES if limited else None,
    }


def _by_transfer(cluster: ConnectedCluster) -> bool:
    return bool(cluster.cluster.transfer_host) and cluster.cluster.downloads != "login"


def _ask(wanted: dict[str, Any], cluster: ConnectedCluster, reporter: Reporter) -> dict[str, Any]:
    """Have our node side do it, and report how far it is."""
    cluster.run("true")  # sends our program, if it is missing
    script = cluster.guarded(quoted([*cluster.node, "prepare-data"]))
    asked, by_transfer = json.dumps(wanted).encode(), _by_transfer(cluster)
    answer: dict[str, Any] = {}
    for line in _lines(cluster.place.stream(script, feed=asked, by_transfer=by_transfer)):
        try:
            answer = untrusted.read(line, _ANSWER)
        except untrusted.Unexpected as problem:
            raise untrusted.unusable(cluster.name, problem) from problem
        what, *amounts = answer.get("moved") or [""]
        if len(amounts) == 2 and all(isinstance(amount, int) for amount in amounts):
            reporter.moved(str(what), *amounts)
    if "problem" in answer:
        told = answer["problem"]
        raise DatasetError(told["what"], why=told["why"], hint=told["hint"])
    if "ready" not in answer:
        raise CommandFailed(
            f"data {wanted['name']} was not prepared on {cluster.name}",
            why="the connection ended before it was ready",
            hint="run the command again: what was downloaded is kept",
        )
    ready: dict[str, Any] = answer["ready"]
    return ready


def _lines(chunks: Iterator[bytes]) -> Iterator[str]:
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in lines if line.startswith(b"{"))


def _report_download(
    dataset: Dataset, ready: dict[str, Any], cluster: ConnectedCluster, reporter: Reporter
) -> None:
    where = "on this computer" if cluster.cluster.is_here else f"on {cluster.name}"
    if not ready["new"]:
        reporter.step(f"data {dataset.name}: downloaded {where} before")
        return
    reporter.step(f"data {dataset.name}: downloaded {where}")
    if ready["sha256"] and not dataset.sha256:
        reporter.step(
            f'  nobody said what it must be; `sha256 = "{ready["sha256"]}"` under '
            f"[data.{dataset.name}] refuses any other file"
        )


class TooLargeThere(DatasetError):
    """There is more to pack than a login node should be asked to."""


def _too_large(dataset: Dataset, seen: dict[str, Any], cluster: ConnectedCluster) -> TooLargeThere:
    return TooLargeThere(
        f"dataset {dataset.name} is too large to be packed on the login node of {cluster.name}",
        why=f"it has more than {say_count(seen['files'], 'file')} or {say_size(seen['bytes'])}",
        hint=f"`rabaska data pack {dataset.name} --on {cluster.name}` packs it in a job, once; "
        f'or write `as = "in place"` under [data.{dataset.name}]',
    )
