"""Where each dataset of a run is put on its node, and what is said about it."""

import os
import time
from typing import Callable, Dict, List, NamedTuple, Optional

from .. import partial_folder
from ..data import background_copy, pack_format, pack_proof, shared_copy, stage, tier_choice
from ..data.free_space import free_memory
from ..record.events import say
from ..record.plan import IN_PLACE, Nearby, Plan, StagedData
from ..record.run_folder import RunFolder
from .stage_together import Meeting
from .this_job import Work

_READ_THROUGH = 0.5  # of the free memory: what is larger is compared as it is read, and only then
_PROOF_PATIENCE = 30.0  # seconds that a finished program waits until all its data is proven

_held: List[Callable[[], None]] = []


class DamagedDataset(NamedTuple):
    """A dataset that is not what was packed."""

    reason: str
    remedy: str


class PlacedDataset(NamedTuple):
    name: str
    path: str  # for the program
    bytes: int
    where: str
    seconds: float
    arriving: bool  # whether shards may still be on their way


Moved = Callable[[str, int, int], None]  # of which dataset, bytes so far, bytes in all


class DatasetRequest(NamedTuple):
    """One dataset that wants a place."""

    dataset: StagedData
    pack: str  # its folder in the store
    manifest: pack_format.Manifest
    target: str  # a folder of its own in the job's space
    moved: Optional[Moved] = None

    def progress(self, files: int, size: int) -> None:
        if self.moved is not None:
            self.moved(self.dataset.name, size, self.size)

    @property
    def size(self) -> int:
        return tier_choice.needed(self.manifest, as_files=self.as_files).bytes

    @property
    def as_files(self) -> bool:
        return self.dataset.mode == stage.FILES


def stage_data(work: Work, local: str, meeting: Optional[Meeting] = None) -> Dict[str, str]:
    """Bring every dataset near: its name → where the program finds it."""
    began = time.monotonic()
    # All nodes of a job are told the same path, so each must do the same.
    alone = work.plan.launch.nodes == 1
    moved = work.phases.moved
    placed = place(work.run, work.plan, local, freely=alone, moved=moved, meeting=meeting)
    for one in placed:
        say("data: {}".format(placement_line(one)))
    if placed:
        spent = round(time.monotonic() - began, 3)
        names = sorted(one.name for one in placed)
        each = [dict(one._asdict()) for one in placed]
        work.event_log.note("staged", datasets=names, placed=each, seconds=spent)
    return paths(placed)


def paths(placed: List[PlacedDataset]) -> Dict[str, str]:
    return {one.name: one.path for one in placed}


def placement_line(one: PlacedDataset) -> str:
    if one.where == IN_PLACE:
        return "{} in place, {}".format(one.name, one.path)
    size = "{} {:.1f} MB {}".format(one.name, one.bytes / 1e6, one.where)
    if one.where == tier_choice.LEFT:
        return size
    if one.arriving:
        return size + ", copied while the program runs"
    return "{}, staged in {:.1f} s".format(size, one.seconds)


def place(
    run: RunFolder,
    plan: Plan,
    local: str,
    *,
    freely: bool = False,
    moved: Optional[Moved] = None,
    meeting: Optional[Meeting] = None,
) -> List[PlacedDataset]:
    """Stage every dataset, below `local` or, when we may choose freely, where it is best.

    With `meeting`, what other nodes of the job have read comes from them.
    """
    nearby = folders_here(plan.nearby) if freely else Nearby()
    placed = []
    for number, dataset in enumerate(plan.datasets):
        if dataset.mode == IN_PLACE:
            placed.append(_left_in_place(dataset))
            continue
        began, pack = time.monotonic(), run.pack(dataset.pack)
        # Not "data": a program that reads `../data` gets a link of that name beside its code.
        target = os.path.join(local, "staged", dataset.name)
        os.makedirs(target, exist_ok=True)
        try:
            manifest = pack_format.load_manifest(pack)
            request = DatasetRequest(dataset, pack, manifest, target, moved)
            together = meeting.together(number, manifest) if meeting else None
            put = _place_freely(request, nearby) if freely else _place_locally(request, together)
        except pack_format.BadPack as problem:
            problem.remedy = _repair(plan, dataset.pack)
            raise
        placed.append(put._replace(seconds=round(time.monotonic() - began, 3)))
    return placed


def damaged(plan: Plan, data: Dict[str, str]) -> Optional[DamagedDataset]:
    """What was found wrong, on this node, with the datasets that the program reads."""
    for dataset in plan.datasets:
        if dataset.mode == IN_PLACE:
            continue
        why = pack_proof.damage(data.get(dataset.name, ""))
        if why is not None:
            reason = "data {}: pack {} is damaged: {}".format(dataset.name, dataset.pack, why)
            return DamagedDataset(reason, _repair(plan, dataset.pack))
    return None


def _repair(plan: Plan, pack: str) -> str:
    cluster = plan.origin.cluster or "here"
    on = "" if cluster == "here" else " --on {}".format(cluster)
    return "`rabaska data verify {}{} --repair`, then `rabaska resume {}`".format(
        pack, on, plan.run
    )


def not_arriving(data: Dict[str, str]) -> List[str]:
    """What keeps shards from arriving, though the program goes on without."""
    found = ((name, background_copy.stopped(path)) for name, path in data.items())
    return ["data {}: copying stopped: {}".format(*each) for each in found if each[1]]


def finish_proof() -> None:
    background_copy.finish(_PROOF_PATIENCE)


def leave() -> None:
    """Let go of what was staged, also outside the job's own space."""
    background_copy.end()
    while _held:
        _held.pop()()


def folders_here(nearby: Nearby) -> Nearby:
    """The folders as they are called on this node; "" for one that it does not have."""
    named = (os.path.expandvars(folder) for folder in nearby)
    return Nearby(*(folder if os.path.isdir(folder) else "" for folder in named))


def _left_in_place(dataset: StagedData) -> PlacedDataset:
    """Data that is read where it is; OSError when this node does not have it."""
    path = os.path.expandvars(os.path.expanduser(dataset.path))
    if not os.access(path, os.R_OK):
        found = "may not be read" if os.path.exists(path) else "is not there"
        raise NotOnNode(
            "data {}: {} {} on this node; `at` under [data.{}] names it".format(
                dataset.name, path, found, dataset.name
            )
        )
    return PlacedDataset(dataset.name, path, 0, IN_PLACE, 0.0, False)


class NotOnNode(Exception):
    """Data that is to be read where it is, and that this node does not see."""

    remedy = (
        "use a folder that the compute nodes see too; data that is on the login nodes alone is "
        'staged with `as = "files"`'
    )


def _place_locally(request: DatasetRequest, together: Optional[stage.Together]) -> PlacedDataset:
    mode = request.dataset.mode
    path = stage.stage(request.pack, request.target, mode, request.progress, together)
    return _placed(request, path, tier_choice.kind_of(request.target))


def _place_freely(request: DatasetRequest, nearby: Nearby) -> PlacedDataset:
    disk = request.target if request.as_files else nearby.shared or request.target
    wanted = tier_choice.needed(request.manifest, as_files=request.as_files)
    tier = tier_choice.choose(wanted, tier_choice.tiers_here(nearby.memory, disk))
    if request.as_files:
        if tier is None:
            raise _no_room(request)
        own = request.target if tier.folder == disk else _own_folder(request, tier.folder)
        path = stage.stage(request.pack, own, progress=request.progress)
        return _placed(request, path, tier_choice.kind_of(own))
    if tier is None or tier_choice.on_one_disk(request.pack, tier.folder):
        left = stage.link(request.pack, request.target)
        if request.size < _READ_THROUGH * free_memory():
            background_copy.begin_proof(left)
        return _placed(request, left, tier_choice.LEFT)
    return _placed(request, _arriving(request, tier, nearby), tier.kind, arriving=True)


def _placed(
    request: DatasetRequest, path: str, where: str, *, arriving: bool = False
) -> PlacedDataset:
    return PlacedDataset(request.dataset.name, path, request.size, where, 0.0, arriving)


def _own_folder(request: DatasetRequest, root: str) -> str:
    """A folder outside the job's space, removed with it; files may be written to, so not shared."""
    own = shared_copy.own_folder(root, request.manifest.identity)
    if own is None:
        return request.target
    _held.append(lambda: partial_folder.abandon(own))
    return own.path


def _arriving(request: DatasetRequest, tier: tier_choice.NodeTier, nearby: Nearby) -> str:
    use: Optional[shared_copy.Use] = None
    if tier.folder in (nearby.memory, nearby.shared):
        use = shared_copy.begin(request.pack, tier.folder, request.size)
    if use is None:
        return background_copy.begin(request.pack, request.target)
    reading, keep = use, tier.kind == tier_choice.DISK  # memory is too dear to be kept
    _held.append(lambda: shared_copy.leave(reading, keep=keep))
    return use.folder


def _no_room(request: DatasetRequest) -> tier_choice.NoTierFits:
    return tier_choice.NoTierFits(
        "the node has no space for {} ({:.0f} MB, {} files); "
        'with `as = "shards"` it is read in place'.format(
            request.dataset.name, request.manifest.bytes / 1e6, request.manifest.files
        )
    )
