"""Carry an earlier run over into a new one: its code, its data, its checkpoints and results."""

import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rabaska.domain import untrusted
from rabaska.domain.amounts import say_size
from rabaska.domain.untrusted import count
from rabaska.errors import CommandFailed, DatasetError, WrongUse
from rabaska.node.record.plan import Plan, StagedData
from rabaska.node.record.run_folder import INCOMPLETE
from rabaska.packing.code_snapshot import is_as_named
from rabaska.packing.pack_cache import complete_manifest
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.remote.fetch_record import NOTE
from rabaska.remote.place import Parcel, SourceGone, quoted, surely
from rabaska.steps.carry import code_parcel, parcel_of
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.progress import Reporter, progress_of
from rabaska.steps.run_identity import guarded, refuse_other

_TRIES = 3
_NAMED = 5  # files in one sentence
# `carried/<n>` leads to what the program wrote; there is one, but while a job begins.
_NEWEST = """cd {run}/carried || exit 1
newest=$(ls | grep -E '^[0-9]+$' | sort -n | tail -n 1); [ -n "$newest" ] || exit 1
"""
_COPY = """cp -a "$newest/." {new}/kept/000/ || exit 1
[ ! -e ../patterns.json ] || cp -p ../patterns.json {new}/
du -sk {new}/kept/000 | cut -f 1"""


def complete(cluster: ConnectedCluster, plan: Plan, home: Home) -> None:
    """Send what its site deleted of what a run needs, as far as this computer still has it."""
    code = home.store / "code" / f"{plan.code}.tar"
    data = [home.store / "packs" / dataset.pack for dataset in plan.datasets if dataset.pack]
    parcels = [code_parcel(code, cluster)] if is_as_named(code) else []
    parcels += [parcel_of(pack, cluster) for pack in data if complete_manifest(pack)]
    if parcels:
        cluster.place.deliver(parcels, cluster)
    _refuse_missing(plan, cluster)


def _refuse_missing(plan: Plan, cluster: ConnectedCluster) -> None:
    """DatasetError or WrongUse before a job waits in the queue for what is on neither computer."""
    packs = {dataset.pack: dataset.name for dataset in plan.datasets if dataset.pack}
    answer = cluster.ask("stored", cluster.store, plan.code, *packs).output
    try:
        missing = untrusted.read(answer, {"missing": [str]})["missing"]
    except untrusted.Unexpected as problem:
        raise untrusted.unusable(cluster.name, problem) from problem
    if plan.code in missing:
        raise WrongUse(
            f"the code of run {plan.run} is neither on {cluster.name} nor on this computer",
            why="a site deletes what was not used for long",
            hint=f"`rabaska rerun {plan.run} --with-code new --from-checkpoint` continues with the "
            "code of today",
        )
    for pack, name in packs.items():
        if pack in missing:
            raise DatasetError(
                f"{pack}, the data of run {plan.run}, is neither on {cluster.name} nor on this "
                "computer",
                why="a site deletes what was not used for long",
                hint=f"`rabaska pack` makes it again from a folder of this computer, `rabaska data "
                f"pack {name} --on {cluster.name} --again` from one that is there; then "
                f"`rabaska resume {plan.run}`",
            )


def recover_inputs(plan: Plan, source: ConnectedCluster, home: Home, reporter: Reporter) -> None:
    """Bring the run's code and data to this computer, as far as they are not here."""
    code = home.store / "code" / f"{plan.code}.tar"
    if not is_as_named(code):
        _recover_code(code, source)
    for dataset in plan.datasets:
        if dataset.pack and not complete_manifest(home.store / "packs" / dataset.pack):
            _recover_pack(dataset, source, home, reporter)


def _recover_code(code: Path, source: ConnectedCluster) -> None:
    code.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=code.parent, suffix=".partial") as folder:
        copy = Path(folder) / code.name
        with copy.open("wb") as stream:
            reading = quoted(["cat", f"{source.store}/code/{code.name}"])
            stream.writelines(source.place.stream(reading))
        if not is_as_named(copy):
            raise CommandFailed(
                f"the code of the run cannot be had from {source.name}",
                why=f"{source.store}/code/{code.name} is not there, or damaged",
                hint="`rabaska rerun --with-code new` sends the project's code as it is now",
            )
        copy.replace(code)


def _recover_pack(
    dataset: StagedData, source: ConnectedCluster, home: Home, reporter: Reporter
) -> None:
    packs = home.store / "packs"
    packs.mkdir(parents=True, exist_ok=True)
    moved = progress_of(f"fetching data {dataset.name}", reporter)
    with tempfile.TemporaryDirectory(dir=packs, suffix=".partial") as folder:
        copy = Path(folder) / dataset.pack
        try:
            source.place.bring(f"{source.store}/packs/{dataset.pack}", copy, source, moved=moved)
            (copy / NOTE).unlink(missing_ok=True)
        except SourceGone:
            pass
        if not complete_manifest(copy):
            raise CommandFailed(
                f"data {dataset.name} of the run cannot be had from {source.name}",
                why=f"pack {dataset.pack} is neither on this computer nor complete there",
                hint="`rabaska rerun --with-code new` packs the project's data as it is now",
            )
        _put_in_place(copy, packs / dataset.pack)


def _put_in_place(pack: Path, target: Path) -> None:
    """Rename a complete pack to `target`, unless another command brought it meanwhile."""
    if target.exists() and not complete_manifest(target):
        target.rename(pack.with_name("damaged"))
    try:
        pack.replace(target)
    except OSError:
        if not complete_manifest(target):
            raise


def complete_run(new: str, target: ConnectedCluster) -> None:
    """Say that all that the run `new` starts from is there: it may be submitted."""
    mark = quoted([f"{target.run_folder(new)}/{INCOMPLETE}"])
    outcome = surely(lambda: target.place.run(f"rm -f {mark}"))
    if outcome.exit_code != 0:
        raise CommandFailed(f"run {new} cannot be submitted", why=outcome.complaint)


def carry_results(
    record: RunRecord,
    source: ConnectedCluster,
    target: ConnectedCluster,
    new: str,
    home: Home,
    reporter: Reporter,
) -> None:
    """Copy what the run wrote into the folder of the new run `new`, before its first job.

    `complete_run` says that it is there.
    """
    folder = target.run_folder(new)
    if source.name == target.name:
        size = _copy_there(record, source, folder)
    else:
        size = _send(record, source, target, folder, home, reporter)
    reporter.step(f"carried over from {record.name}: {say_size(size)} of results and checkpoints")


def _copy_there(record: RunRecord, cluster: ConnectedCluster, new: str) -> int:
    script = (_NEWEST + _COPY).format(run=quoted([record.path]), new=quoted([new]))
    outcome = cluster.place.run(guarded(record, script))
    refuse_other(record, outcome.exit_code)
    if outcome.exit_code != 0:
        raise CommandFailed(
            f"the results of {record.name} could not be copied", why=outcome.complaint
        )
    kilobytes = outcome.output.split()
    return (count(kilobytes[-1]) or 0) * 1024 if kilobytes else 0


def _send(
    record: RunRecord,
    source: ConnectedCluster,
    target: ConnectedCluster,
    new: str,
    home: Home,
    reporter: Reporter,
) -> int:
    """By way of this computer, as one file: names, times and links stay as they are."""
    home.store.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.store, suffix=".partial") as scratch:
        brought = Path(scratch) / "carried"
        _bring(record, source, brought, reporter)
        archive = Path(scratch) / f"{record.id or record.name}.tar"
        _pack(brought, archive)
        size = archive.stat().st_size
        there = f"{new}/carried-over.tar"
        moved = progress_of(f"sending to {target.name}", reporter)
        target.place.deliver([Parcel(archive, there)], target, moved)
    # Which files are checkpoints, where its jobs found that out.
    learned = source.place.run(guarded(record, quoted(["cat", f"{record.path}/patterns.json"])))
    unpacking = f"cd {quoted([new])} && tar -xf carried-over.tar -C kept/000 && rm carried-over.tar"
    keeping = " && cat > patterns.json" if learned.exit_code == 0 else ""
    outcome = target.place.run(unpacking + keeping, feed=learned.output.encode())
    if outcome.exit_code != 0:
        raise CommandFailed(
            f"the results of {record.name} could not be unpacked on {target.name}",
            why=outcome.complaint,
        )
    return size


def _bring(record: RunRecord, source: ConnectedCluster, folder: Path, reporter: Reporter) -> None:
    finding = guarded(record, _NEWEST.format(run=quoted([record.path])) + 'echo "$newest"')
    moved = progress_of(f"fetching {record.name}", reporter)
    for _ in range(_TRIES):
        found = source.place.run(finding)
        refuse_other(record, found.exit_code)
        number = found.output.split()
        if found.exit_code != 0 or not number or count(number[-1]) is None:
            raise CommandFailed(
                f"run {record.name} has no results to carry over", why=found.complaint
            )
        try:
            came = source.place.bring(
                f"{record.path}/carried/{number[-1]}", folder, source, moved=moved
            )
        except SourceGone:
            continue
        _refuse_unread(record, (*came.unread, *came.unfinished))
        if came.refused:
            reporter.warn(f"not carried over: {', '.join(came.refused[:_NAMED])}")
        return
    raise CommandFailed(f"the results of {record.name} could not be read")


def _refuse_unread(record: RunRecord, unread: Sequence[str]) -> None:
    if unread:
        raise CommandFailed(
            f"not everything of {record.name} could be read", why=", ".join(unread[:_NAMED])
        )


def _pack(folder: Path, archive: Path) -> None:
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(folder.rglob("*")):
            if path.name != NOTE:
                tar.add(path, path.relative_to(folder).as_posix(), recursive=False)
