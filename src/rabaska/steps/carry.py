"""Bring data, code and environment to a cluster: once, for as many runs as are planned."""

import os
import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from rabaska.domain.amounts import say_count, say_size
from rabaska.domain.jobs import JobSpec
from rabaska.domain.projects import IN_PLACE, Dataset, Project
from rabaska.domain.secrets import Secrets
from rabaska.environments.recipes import Environment
from rabaska.node.data.pack_format import INDEX, load_manifest
from rabaska.node.record.plan import StagedData
from rabaska.packing.code_files import not_code
from rabaska.packing.code_snapshot import CodeSnapshot, snapshot
from rabaska.packing.make_pack import Pack
from rabaska.packing.shrinking import compression_pays, shrinks_to
from rabaska.records.caches import cache_resumption, cached_resumption
from rabaska.records.home import Home
from rabaska.remote.git_commit import Revision, revision
from rabaska.remote.place import Parcel
from rabaska.remote.programs import own_files
from rabaska.settings.project_file import FILE
from rabaska.steps.connect import ConnectedCluster, connect
from rabaska.steps.environment import collected, known, prepare, promised, resolve
from rabaska.steps.pack_dataset import pack_dataset
from rabaska.steps.prepare_data import download_here, in_place, locate, prepare_there
from rabaska.steps.progress import Reporter, progress_of


def ready_dataset(
    dataset: Dataset, path: str, cluster: ConnectedCluster, home: Home, reporter: Reporter
) -> Pack:
    """A dataset as the cluster has it, or as a pack on this computer that can be sent.

    `path` is where it is on the cluster, if it is there.
    """
    if dataset.is_downloaded and (cluster.cluster.is_here or _sends_downloads(cluster)):
        here = cluster if cluster.cluster.is_here else connect("here", home)
        dataset = download_here(dataset, here, reporter)
    elif dataset.at and cluster.cluster.is_here:
        dataset = replace(dataset, path=Path(path))
    if not dataset.paths:
        return prepare_there(dataset, path, cluster, reporter)
    if dataset.mode == IN_PLACE:
        return prepare_there(dataset, str(dataset.path), cluster, reporter)
    return pack_dataset(dataset, home, reporter)


def _sends_downloads(cluster: ConnectedCluster) -> bool:
    return cluster.cluster.downloads == "nowhere"


@dataclass(frozen=True)
class Carried:
    """A project whose code, data and environment are on its cluster: runs can be planned."""

    project: Project
    job: JobSpec  # under the project's name; each run gives it its own
    cluster: ConnectedCluster
    code: str  # the digest of its snapshot
    packs: tuple[Pack, ...]  # one for each dataset
    setup: tuple[str, ...]  # lines of the job script that enter the environment
    secrets: Secrets
    resumes: str  # how its program resumes, as its source shows; see `Plan.resumes`
    revision: Revision = field(default_factory=Revision)  # of the project's git repository
    datasets: tuple[StagedData, ...] | None = None  # as an earlier run had them; None: its packs


def carry(
    project: Project,
    job: JobSpec,
    cluster: ConnectedCluster,
    home: Home,
    reporter: Reporter,
    *,
    resumes: str = "",
    check: Callable[[Environment], None] | None = None,
) -> Carried:
    """Pack, prepare and send; nothing is submitted.

    `resumes` is for those who have read the program's source already; `check` may refuse the
    environment, before anything else is packed or sent.
    """
    places = locate(project, cluster)
    secrets = collected(project.environment, os.environ, reporter)
    # First of all: a package that is missing there would make everything else useless.
    nodes = project.resources.nodes
    environment = prepare(project.environment, cluster, reporter, nodes=nodes)
    if check:
        check(environment)
    packs = tuple(
        ready_dataset(dataset, places.get(dataset.name, ""), cluster, home, reporter)
        for dataset in project.datasets
    )
    code = take_snapshot(project, home, reporter)
    push(cluster, code, packs, reporter, before=environment.built.sent if environment.built else 0)
    setup, resumes = environment.setup, resumes or _resumes(project, code.digest, home)
    now = revision(project.folder)
    return Carried(project, job, cluster, code.digest, packs, setup, secrets, resumes, now)


def preview_carry(
    project: Project,
    job: JobSpec,
    cluster: ConnectedCluster,
    home: Home,
    scratch: Path,
    reporter: Reporter,
) -> Carried:
    """What `carry` would bring; nothing is packed, built, sent, or written outside `scratch`."""
    code = taken(project, home, scratch, reporter)
    places = locate(project, cluster)
    packs = tuple(
        _not_yet_packed(dataset, places.get(dataset.name, "")) for dataset in project.datasets
    )
    setup = resolve(project.environment, cluster, nodes=project.resources.nodes).setup
    secrets = promised(project.environment)
    resumes = read_resumption(project)
    git = revision(project.folder)
    return Carried(project, job, cluster, code.digest, packs, setup, secrets, resumes, git)


def _resumes(project: Project, code: str, home: Home) -> str:
    """How the program resumes; its source is read once, until it or its command changes."""
    made_from = [code, *project.command, "", *project.resume]
    kind = cached_resumption(home.checked, project.folder, made_from)
    if not kind:
        kind = read_resumption(project)
        cache_resumption(home.checked, project.folder, made_from, kind)
    return kind


def read_resumption(project: Project) -> str:
    """How the program resumes, as its source shows: one of the kinds in `node.record.plan`."""
    from rabaska.checkup.subject import resumption_of, started_by
    from rabaska.scouting import scripts

    return resumption_of(project, started_by(project, scripts.find(project.folder))).kind


def _not_yet_packed(dataset: Dataset, path: str) -> Pack:
    if dataset.mode == IN_PLACE:
        return in_place(path or str(dataset.path or f"({dataset.source}, downloaded first)"))
    name = dataset.name
    return Pack(
        identity=f"{name}-(packed first)", folder=Path(), files=0, bytes=0, shards=0, reused=False
    )


def push(
    cluster: ConnectedCluster,
    snapshot: CodeSnapshot,
    packs: tuple[Pack, ...],
    reporter: Reporter,
    *,
    before: int = 0,
) -> None:
    """Send snapshot and packs; their names are their digests, so what is there is not sent.

    All are asked after in one question: a project that did not change needs no more than that.
    What was sent `before`, in bytes, counts too.
    """
    code = code_parcel(snapshot.path, cluster)
    data = [parcel_of(pack.folder, cluster) for pack in packs if is_ours(pack, cluster)]
    moved = progress_of(f"sending to {cluster.name}", reporter)
    sent = cluster.place.deliver([code, *data], cluster, moved)
    total = sent.missing + before
    if total and not cluster.cluster.is_here:
        spread = f", spread over {sent.stripes} servers of Lustre" if sent.stripes > 1 else ""
        reporter.step(f"sent to {cluster.name}: {say_size(total)}{spread}")


def is_ours(pack: Pack, cluster: ConnectedCluster) -> bool:
    """Whether it lies on this computer; what a cluster packed itself need not be sent."""
    there = pack.folder == Path(f"{cluster.store}/packs/{pack.identity}")
    return bool(pack.identity) and (cluster.cluster.is_here or not there)


def code_parcel(snapshot: Path, cluster: ConnectedCluster) -> Parcel:
    """A snapshot of the code on its way."""
    return Parcel(snapshot, f"{cluster.store}/code/{snapshot.name}")


def parcel_of(pack: Path, cluster: ConnectedCluster, *, doubted: bool = False) -> Parcel:
    """A pack on its way; when the copy there is `doubted`, it is proven byte by byte."""
    manifest = load_manifest(str(pack))
    digests = {shard.name: shard.digest for shard in manifest.shards}
    return Parcel(
        pack,
        f"{cluster.store}/packs/{pack.name}",
        {**digests, INDEX: manifest.index_sha256},
        doubted,
        shrinks=lambda: compression_pays(shrinks_to(str(pack))),
    )


def take_snapshot(project: Project, home: Home, reporter: Reporter) -> CodeSnapshot:
    code = taken(project, home, home.store / "code", reporter)
    reporter.step(f"code: {say_count(code.files, 'file')}, snapshot {code.digest[:12]}")
    return code


def taken(project: Project, home: Home, folder: Path, reporter: Reporter) -> CodeSnapshot:
    """A snapshot in `folder`; what may hold secrets stays behind, and is named."""
    code = snapshot(
        project.folder,
        folder,
        exclude=not_code(project, home.folder),
        include=project.include,
        listed=own_files,
        secrets=known(project.environment, os.environ),
    )
    files = [name for name in code.withheld if posixpath.basename(name) != FILE]
    if files:
        reporter.warn(
            f"not sent, for it may hold secrets: {', '.join(files)}; `secrets` under "
            "[environment] hands keys to the program, `include` under [code] sends the file"
        )
    for name in {*code.withheld} - {*files}:
        reporter.warn(
            f"{name} is not sent with the code, for a secret in it could not be taken out; name "
            "the variable in `secrets` under [environment] instead"
        )
    return code
