"""Delete: remove the folders of runs that are over, on their cluster."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rabaska.domain import untrusted
from rabaska.domain.runs import RunState, RunStatus
from rabaska.errors import CommandFailed, Unreachable, WrongUse
from rabaska.journeys.fetch import fetch, refuse_incomplete, results_folder
from rabaska.records import run_index
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.remote.fetch_record import read_record
from rabaska.remote.place import quoted, surely
from rabaska.steps.connect import ConnectedCluster, connect_for
from rabaska.steps.delete_folder import delete_folder, refuse_path
from rabaska.steps.progress import Reporter, SilentReporter
from rabaska.steps.query_status import statuses
from rabaska.steps.run_identity import guarded, refuse_other

_FILE = {"path": str, "size": int, "mtime_ns": int, "link": (str, None), "problem?": str}


@dataclass(frozen=True)
class Doomed:
    """A run whose folder can be deleted, and what would be lost with it."""

    record: RunRecord
    state: RunState
    is_there: bool  # else only this computer's list still has it
    not_fetched: tuple[str, ...] = ()  # files of the program that are nowhere else
    size: int = 0  # of those, in bytes


@dataclass(frozen=True)
class Deletion:
    """What may be deleted, and what was; nothing is in a preview."""

    doomed: tuple[Doomed, ...]
    deleted: tuple[str, ...] = ()  # names
    fetched: tuple[str, ...] = field(default=())  # folders


def preview(records: Sequence[RunRecord], home: Home) -> Deletion:
    """What would be deleted; WrongUse where one of the runs is not over."""
    return Deletion(tuple(_doomed(run, home) for run in _over(records, home)))


def delete(
    records: Sequence[RunRecord],
    home: Home,
    *,
    bring: bool = False,
    reporter: Reporter | None = None,
) -> Deletion:
    """Delete the runs' folders and drop them from the list; with `bring`, fetch each before."""
    reporter = reporter or SilentReporter()
    doomed, deleted, fetched = preview(records, home).doomed, [], []
    for one in doomed:
        if bring and one.is_there:
            came = fetch(one.record, home, reporter=reporter)
            refuse_incomplete(came)
            fetched.append(str(came.folder))
        if one.is_there:
            delete_folder(one.record, connect_for(one.record, home))
        run_index.forget(home.runs, one.record)
        deleted.append(one.record.name)
    return Deletion(doomed, tuple(deleted), tuple(fetched))


def _over(records: Sequence[RunRecord], home: Home) -> list[tuple[RunRecord, RunStatus]]:
    """Each with its status; all are asked before anything is deleted."""
    told = list(zip(records, statuses(records, home, explained=False), strict=True))
    for record, now in told:
        if now.state is RunState.UNKNOWN:
            raise Unreachable(
                f"whether run {record.name} is over could not be found out",
                why=now.reason,
                hint="ask again in a moment; nothing was deleted",
            )
        if not now.state.over:
            raise WrongUse(
                f"run {record.name} is {now.state.value}",
                why="its jobs still need its folder",
                hint=f"`rabaska cancel {record.name}` first; nothing was deleted",
            )
    return told


def _doomed(run: tuple[RunRecord, RunStatus], home: Home) -> Doomed:
    record, now = run
    cluster = connect_for(record, home)
    refuse_path(record)
    script = guarded(record, f"[ -e {quoted([record.path])} ] && echo there; true")
    outcome = surely(lambda: cluster.place.run(script))
    refuse_other(record, outcome.exit_code)
    if outcome.exit_code != 0:
        raise CommandFailed(f"{record.path} could not be inspected", why=outcome.complaint)
    if "there" not in outcome.output.split():
        return Doomed(record, now.state, is_there=False)
    missing = _not_fetched(record, cluster)
    names = tuple(sorted(missing))
    size = sum(missing.values())
    return Doomed(record, now.state, is_there=True, not_fetched=names, size=size)


def _not_fetched(record: RunRecord, cluster: ConnectedCluster) -> dict[str, int]:
    """The sizes of the program's files that are not on this computer as they are there."""
    known = read_record(results_folder(record))
    run = quoted([record.path])
    finding = f"newest=$(ls {run}/carried | grep -E '^[0-9]+$' | sort -n | tail -n 1)\n"
    lines: list[dict[str, object]] = []
    for part in ("output", "checkpoints"):
        listing = (
            f'{quoted([*cluster.node, "send-results", "list"])} {run}/carried/"$newest"/{part}'
        )
        said = cluster.run(guarded(record, finding + listing))
        if said.exit_code != 0:
            continue  # nothing was ever written there
        try:
            found = untrusted.read_lines(said.output, _FILE)
        except untrusted.Unexpected as problem:
            raise untrusted.unusable(cluster.name, problem) from problem
        lines += [{**one, "path": f"{part}/{one['path']}"} for one in found]
    return {
        str(one["path"]): int(str(one["size"]))
        for one in lines
        if not one["link"]
        and known.wants(str(one["path"]), int(str(one["size"])), int(str(one["mtime_ns"])))
    }
