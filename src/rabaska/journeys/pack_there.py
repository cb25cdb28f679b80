"""Pack there: data that is on a cluster becomes a pack in its store, at once or by a job."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rabaska.domain.data_places import NODE
from rabaska.domain.projects import Chain, Dataset, EnvironmentRecipe, Project
from rabaska.domain.runs import Checks
from rabaska.domain.secrets import Secrets
from rabaska.errors import DatasetError, WrongUse
from rabaska.journeys.run import run
from rabaska.node.login.prepare_data import IN_JOB, REQUEST
from rabaska.packing.make_pack import Pack
from rabaska.records.home import Home
from rabaska.settings.project_file import check_data, load
from rabaska.steps.carry import parcel_of, ready_dataset
from rabaska.steps.connect import ConnectedCluster, connect
from rabaska.steps.prepare_data import TooLargeThere, locate, prepare_there, request
from rabaska.steps.progress import Reporter, progress_of

_LONGEST_NAME = 60


@dataclass(frozen=True)
class PackedThere:
    """A dataset of the project in a cluster's store."""

    name: str
    cluster: str
    pack: str = ""  # empty while its job has not packed it
    files: int = 0
    bytes: int = 0
    shards: int = 0
    run: str = ""  # whose job packs it


@dataclass(frozen=True)
class PackThereOptions:
    again: bool = False  # look at all files, although a pack was made of them before
    by_job: bool | None = None  # None: if there is too much for a login node
    overrides: dict[str, object] | None = None  # of rabaska.toml, for the job


def pack_there(
    folder: Path,
    names: Sequence[str],
    on: str,
    home: Home,
    reporter: Reporter,
    options: PackThereOptions,
) -> list[PackedThere]:
    """Pack these datasets of the project around `folder`, or all of them, on a cluster."""
    project = load(folder, cluster=on, overrides=options.overrides)
    project = replace(project, datasets=_chosen(project, names))
    cluster = connect(on, home, reporter)
    check_data(replace(project, command=()))
    places = locate(project, cluster)
    packing = _Packing(project, cluster, home, reporter, options)
    return [packing.packed(dataset, places.get(dataset.name, "")) for dataset in project.datasets]


def _chosen(project: Project, names: Sequence[str]) -> tuple[Dataset, ...]:
    known = [dataset.name for dataset in project.datasets]
    for name in names:
        if name not in known:
            raise WrongUse(
                f"there is no dataset `{name}`",
                why=f"the datasets in rabaska.toml are: {', '.join(known) or 'none'}",
            )
    chosen = [dataset for dataset in project.datasets if not names or dataset.name in names]
    # Who asks for a pack gets one, however the program reads the data now.
    return tuple(
        replace(each, mode="files" if each.at or each.is_downloaded else each.mode)
        for each in chosen
    )


@dataclass(frozen=True)
class _Packing:
    project: Project
    cluster: ConnectedCluster
    home: Home
    reporter: Reporter
    options: PackThereOptions

    def packed(self, dataset: Dataset, path: str) -> PackedThere:
        if dataset.at.startswith(NODE):
            raise DatasetError(
                f"dataset {dataset.name} is on the nodes' own disks",
                why="jobs read it there, and no login node sees it",
            )
        if self._comes_from_here(dataset):
            return self._sent(dataset, path)
        if self.options.by_job:
            return self._job(dataset, path)
        whole, again = self.options.by_job is False, self.options.again
        try:
            pack = prepare_there(
                dataset, path, self.cluster, self.reporter, again=again, whole=whole
            )
        except TooLargeThere:
            return self._job(dataset, path)
        return self._described(dataset, pack)

    def _comes_from_here(self, dataset: Dataset) -> bool:
        cluster = self.cluster.cluster
        return bool(
            dataset.paths
            or cluster.is_here
            or (dataset.is_downloaded and cluster.downloads == "nowhere")
        )

    def _sent(self, dataset: Dataset, path: str) -> PackedThere:
        """What lies on this computer is sent ahead of the run that will need it."""
        cluster = self.cluster
        pack = ready_dataset(dataset, path, cluster, self.home, self.reporter)
        moved = progress_of(f"sending to {cluster.name}", self.reporter)
        cluster.place.deliver([parcel_of(pack.folder, cluster)], cluster, moved)
        return self._described(dataset, pack)

    def _described(self, dataset: Dataset, pack: Pack) -> PackedThere:
        sizes = (pack.files, pack.bytes, pack.shards)
        return PackedThere(dataset.name, self.cluster.name, pack.identity, *sizes)

    def _job(self, dataset: Dataset, path: str) -> PackedThere:
        """A run of one job whose program is our own: it is followed and cancelled like any."""
        wanted = json.dumps(request(dataset, path, self.cluster, again=self.options.again))
        # An address may be signed, and a command may hold a token: neither is for a command line.
        handed = Secrets({REQUEST: wanted})
        packing = replace(
            self.project,
            name=f"pack-{dataset.name}"[:_LONGEST_NAME],
            command=(*self.cluster.node, "prepare-data", IN_JOB),
            resume=(),
            launch="program",
            datasets=(),
            environment=EnvironmentRecipe(handed=handed),
            chain=Chain(at_most=1),
            keep=(),
            resources=replace(self.project.resources, gpus=0, gpu_model="", nodes=1, tasks=1),
        )
        unchecked = Checks(wanted=False)
        submitted = run(packing, self.cluster.name, self.home, self.reporter, checks=unchecked)
        self.reporter.step(
            f"data {dataset.name}: a job packs it; `rabaska wait {submitted.run}` waits for it"
        )
        return PackedThere(dataset.name, self.cluster.name, run=submitted.run)
