"""Delete: remove the folders of runs that are over, on their cluster."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rabaska.domain import untrusted
from rabaska.domain.runs import RunState, RunStatus
from rabaska.errors import CommandFailed, Unreachable, WrongUse
from rabaska.journeys.fetch import fetch, refuse_incomplete, refuse_others, results_folder
from rabaska.node.login.send_results import GONE
from rabaska.records import run_index
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.records.series_files import remove_copy
from rabaska.remote.fetch_record import FetchRecord, read_record
from rabaska.remote.place import quoted, surely
from rabaska.steps.connect import ConnectedCluster, connect_for
from rabaska.steps.delete_folder import delete_folder, refuse_path, renamed
from rabaska.steps.progress import Reporter, SilentReporter
from rabaska.steps.query_status import statuses
from rabaska.steps.run_identity import guarded, refuse_other

_FILE = {"path": str, "size": int, "mtime_ns": int, "link": (str, None), "problem?": str}
_FILES_NAMED = 5


@dataclass(frozen=True)
class Doomed:
    """A run whose folder can be deleted, and what would be lost with it."""

    record: RunRecord
    state: RunState
    is_there: bool  # else only this computer's list still has it
    not_fetched: tuple[str, ...] = ()  # the program's files and logs that are nowhere else
    size: int = 0  # of those, in bytes
    submission: str = ""  # the last one, when it was seen to be over


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
            fetched.append(_fetched(one.record, home, reporter))
        if one.is_there:
            delete_folder(one.record, connect_for(one.record, home), since=one.submission)
        run_index.forget(home.runs, one.record)
        remove_copy(home, one.record)
        deleted.append(one.record.name)
    return Deletion(doomed, tuple(deleted), tuple(fetched))


def _fetched(record: RunRecord, home: Home, reporter: Reporter) -> str:
    """Fetch the run; CommandFailed where something of it is still nowhere else."""
    came = fetch(record, home, reporter=reporter)
    refuse_incomplete(came)
    left = sorted(_not_fetched(record, connect_for(record, home)))
    if left:
        more = f" and {len(left) - _FILES_NAMED} more" if len(left) > _FILES_NAMED else ""
        named = ", ".join(left[:_FILES_NAMED])
        raise CommandFailed(
            f"run {record.name} was fetched and not deleted",
            why=f"these files are not here as they are there: {named}{more}",
            hint=f"copy them yourself; `rabaska delete {record.name}` without `--fetch` deletes "
            "them too",
        )
    return str(came.folder)


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
    there = quoted([record.path, renamed(record.path)])
    script = guarded(record, f'for each in {there}; do [ ! -e "$each" ] || echo there; done')
    outcome = surely(lambda: cluster.place.run(script))
    refuse_other(record, outcome.exit_code)
    if outcome.exit_code != 0:
        raise CommandFailed(f"{record.path} could not be inspected", why=outcome.complaint)
    if "there" not in outcome.output.split():
        return Doomed(record, now.state, is_there=False)
    missing = _not_fetched(record, cluster)
    return Doomed(
        record,
        now.state,
        is_there=True,
        not_fetched=tuple(sorted(missing)),
        size=sum(missing.values()),
        submission=now.submission,
    )


def _not_fetched(record: RunRecord, cluster: ConnectedCluster) -> dict[str, int]:
    """The sizes of what the program wrote and printed that is not here as it is there."""
    folder = results_folder(record)
    results, records = read_record(folder), read_record(folder / "run")
    try:
        refuse_others(folder, record, is_default=True)
    except WrongUse:  # what came is of another run
        results, records = FetchRecord(folder, {}), FetchRecord(folder, {})
    run = quoted([record.path])
    newest = f"$(ls {run}/carried | grep -E '^[0-9]+$' | sort -n | tail -n 1)"
    missing = {}
    for part in ("output", "checkpoints"):
        for path, size, time in _listed(record, cluster, f'{run}/carried/"{newest}"/{part}'):
            if not results.has(f"{part}/{path}", size, time):
                missing[f"{part}/{path}"] = size
    for path, size, time in _listed(record, cluster, f"{run}/logs"):
        printed = path.startswith("job-") and path.endswith(".log")
        if printed and not records.has(f"logs/{path}", size, time):
            missing[f"logs/{path}"] = size
    return missing


def _listed(
    record: RunRecord, cluster: ConnectedCluster, folder: str
) -> Iterator[tuple[str, int, int]]:
    """Path, size and time of each file below `folder`, a shell word; none where it is not there."""
    listing = f"{quoted([*cluster.node, 'send-results', 'list'])} {folder}"
    said = surely(lambda: cluster.run(guarded(record, listing)))
    refuse_other(record, said.exit_code)
    if said.exit_code == GONE:
        return
    if said.exit_code != 0:
        raise CommandFailed(
            f"what {record.name} wrote could not be listed, and nothing was deleted",
            why=said.complaint,
            hint=f"`rabaska forget {record.name}` only drops it from the list",
        )
    try:
        found = untrusted.read_lines(said.output, _FILE)
    except untrusted.Unexpected as problem:
        raise untrusted.unusable(cluster.name, problem) from problem
    for one in found:
        if not one["link"]:
            yield str(one["path"]), int(one["size"]), int(one["mtime_ns"])
