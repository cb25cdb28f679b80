"""Fetch: bring a run's results home, while it runs and after."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rabaska.domain import untrusted
from rabaska.errors import CommandFailed, NoSuchRun, ResultsMissing, WrongUse
from rabaska.node import files, private_files
from rabaska.node.record.jobs import not_kept
from rabaska.node.record.run_folder import RunFolder
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.remote.fetch_record import FetchResult, read_record
from rabaska.remote.local_disk import unwritable
from rabaska.remote.place import Moved, SourceGone, quoted, surely
from rabaska.steps.connect import ConnectedCluster, connect_for
from rabaska.steps.nothing_written import why_nothing
from rabaska.steps.progress import Reporter, SilentReporter, progress_of
from rabaska.steps.query_status import status
from rabaska.steps.run_identity import in_folder, refuse_other
from rabaska.steps.sync_trackers import SyncResult, sync_wandb


def refuse_others(folder: Path, record: RunRecord, *, is_default: bool) -> None:
    """WrongUse when the folder holds what was fetched of another run."""
    here = read_record(folder)
    owner = here.owner or _by_plan(folder)
    if owner:
        is_other, name = owner.get("id") != _identity(record), owner.get("name", "")
    else:  # an older version began here; only in the run's own folder we know for which run
        is_other, name = bool(here.known) and not is_default, ""
    if is_other:
        raise WrongUse(
            f"{folder} holds the results of {_called(name, record)}",
            why=f"those of {record.name} would replace them and mix with them",
            hint="choose another folder: "
            f"`rabaska fetch {record.name} --to {_free(folder, record)}`",
        )


def claim(folder: Path, record: RunRecord) -> None:
    """Note whose results come, so that an interrupted fetch is known as well."""
    try:
        read_record(folder).claim({"id": _identity(record), "name": record.name})
    except OSError as problem:
        raise unwritable(problem, folder) from problem


def _identity(record: RunRecord) -> str:
    return record.id or f"{record.cluster}:{record.path}"


def _by_plan(folder: Path) -> dict[str, str]:
    """The run as its fetched plan tells, for folders that older versions fetched into."""
    try:
        plan = files.read_json(str(folder / "run" / "run.json")) or {}
    except (OSError, ValueError):
        return {}
    return {"id": str(plan["id"]), "name": str(plan.get("name", ""))} if plan.get("id") else {}


def _called(name: str, record: RunRecord) -> str:
    if not name:
        return "a run that nobody noted"
    return f"another run named {name}" if name == record.name else f"run {name}"


def _free(folder: Path, record: RunRecord) -> Path:
    """A folder that is not there yet."""
    path, number = folder / record.name, 2
    while path.exists():
        path, number = folder / f"{record.name}-{number}", number + 1
    return path


_SHOWN = 5  # names in one sentence
# What opens a server in the job, and what only its user may see, is no result.
_NOT_BROUGHT = ("carried/*", "kept/*", "output", "*.partial", "secrets.json", "servers/*")
_SAVE_LOG = "saved.jsonl"  # ours, though it is next to what the program wrote
_TRIES = 5  # a chain seldom hands over twice during one fetch


@dataclass(frozen=True)
class Fetched:
    run: str
    folder: Path
    files: int  # how many came now; what was here already is not brought again
    own_files: int = 0  # of those, how many are logs and records, not the program's
    written: int = 0  # how many files of the program are here, whenever they came
    kept: tuple[str, ...] = ()  # changed here since they came, so they were not replaced
    refused: tuple[str, ...] = ()  # links that lead out, and git repositories: they did not come
    unread: tuple[str, ...] = ()  # what could not be read there, and why
    unfinished: tuple[str, ...] = ()  # still being written, so they are left for the next fetch
    not_kept: tuple[str, ...] = ()  # what the run itself could not keep, and is gone
    aside: tuple[str, ...] = ()  # as what is kept that was here, and newer there
    synced: tuple[str, ...] = ()  # offline logs of W&B that were uploaded


def fetch(
    record: RunRecord,
    home: Home,
    *,
    to: Path | None = None,
    leave_out: Sequence[str] = (),
    reporter: Reporter | None = None,
    sync: bool | None = None,
) -> Fetched:
    """Copy output, checkpoints, logs and records into `<project>/results/<run>`.

    W&B's offline logs among them are uploaded if the user has said so once, with `sync`.
    """
    cluster = connect_for(record, home)
    folder = to or results_folder(record)
    refuse_others(folder, record, is_default=to is None)
    reporter = reporter or SilentReporter()
    moved = progress_of(f"fetching {record.name}", reporter)
    log_before = read_record(folder).known.get(_SAVE_LOG)
    with private_files.AsUser():  # results are for whoever may see the project
        came = _bring_carried(record, cluster, folder, leave_out, moved)
        records = cluster.place.bring(
            record.path, folder / "run", cluster, leave_out=_NOT_BROUGHT, moved=moved
        )
    save_log = int(read_record(folder).known.get(_SAVE_LOG) != log_before)
    fetched = Fetched(
        record.name,
        folder,
        came.files + records.files,
        records.files + save_log,
        _written(folder),
        (*came.kept, *records.kept),
        (*came.refused, *records.refused),
        (*came.unread, *records.unread),
        (*came.unfinished, *records.unfinished),
        tuple(not_kept(RunFolder(str(folder / "run")), str(folder / "output"))),
        (*came.aside, *records.aside),
    )
    if not fetched.written and not fetched.unread and not fetched.unfinished:
        reporter.warn(f"{why_nothing(status(record, home), folder)}; its logs and records came")
    _tell_of_what_did_not_come(fetched, reporter)
    synced = sync_wandb(record, home, folder, sync=sync)
    _tell_of_sync(synced, record.name, reporter)
    return replace(fetched, synced=synced.synced)


def _tell_of_sync(synced: SyncResult, run: str, reporter: Reporter) -> None:
    logs = f"{synced.logs} offline {'log' if synced.logs == 1 else 'logs'} of W&B"
    if synced.synced:
        reporter.step(f"synced to W&B: {_some(synced.synced)}")
    if synced.problem:
        reporter.warn(f"not all of {logs} could be synced: {synced.problem}")
    if synced.unasked:
        reporter.warn(
            f"{logs} arrived; `rabaska fetch {run} --sync` uploads them with the login of this "
            "computer, now and after each fetch; `--no-sync` does not, and asks no more"
        )


def _written(folder: Path) -> int:
    """Files that the program wrote: everything else that comes is ours."""
    places = [folder / "output", folder / "checkpoints"]
    return sum(len(names) for place in places for _, _, names in os.walk(place))


def _tell_of_what_did_not_come(fetched: Fetched, reporter: Reporter) -> None:
    if fetched.kept:
        reporter.warn(
            f"not replaced, because newer here: {_some(fetched.kept)}; "
            "remove them here and fetch again to have them as they are there"
        )
    if fetched.aside:
        reporter.warn(f"not as it came from there, and older: kept here as {_some(fetched.aside)}")
    links = [each for each in fetched.refused if " -> " in each]
    others = [each for each in fetched.refused if each not in links]
    if others:
        reporter.warn(
            f"not brought, because git would run what their settings name: {_some(others)}"
        )
    if links:
        reporter.warn(
            f"not brought, because they lead out of the results: {_some(links)}; "
            "let the program write such a link relative to its own folder, or copy the file"
        )
    if fetched.unfinished:
        reporter.warn(
            f"still being written, so left for the next fetch: {_some(fetched.unfinished)}"
        )


def refuse_incomplete(fetched: Fetched) -> None:
    """Raise when something there could not be read, or never came so far; all else is here."""
    if fetched.unread:
        raise CommandFailed(
            f"not everything of {fetched.run} could be fetched",
            why=f"these could not be read there: {_some(fetched.unread)}",
            hint="make them readable there (`chmod -R u+rX`), or leave them out with `--exclude`, "
            "and fetch again; what came is here",
        )
    if fetched.not_kept:
        raise ResultsMissing(
            f"not all results of {fetched.run} are there",
            why=f"its jobs could not keep these files next to the code: {_some(fetched.not_kept)}",
            hint=f"`rabaska status {fetched.run}` says why; what was kept is here",
        )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    # Names may hold bytes that are no UTF-8, and that no terminal takes.
    shown = (os.fsencode(name).decode("utf-8", "replace") for name in names[:_SHOWN])
    return ", ".join(shown) + more


def results_folder(record: RunRecord) -> Path:
    """In the project's folder; where nobody knows it, or it was moved, in the one we are in."""
    known = bool(record.project) and Path(record.project).is_dir()
    return (Path(record.project) if known else Path.cwd()) / "results" / record.name


def _bring_carried(
    record: RunRecord,
    cluster: ConnectedCluster,
    folder: Path,
    leave_out: Sequence[str],
    moved: Moved,
) -> FetchResult:
    """Bring what the newest job carries, wherever a job that begins meanwhile moves it."""
    for _ in range(_TRIES):
        names = _carried(record, cluster)
        if not names:
            break
        claim(folder, record)
        source = f"{record.path}/carried/{max(names, key=int)}"
        try:
            return cluster.place.bring(source, folder, cluster, leave_out=leave_out, moved=moved)
        except SourceGone:
            continue
    raise NoSuchRun(
        f"run {record.name} has nothing to fetch", why=f"{record.path} holds no results"
    )


def _carried(record: RunRecord, cluster: ConnectedCluster) -> list[str]:
    """The jobs that hold something; there is one, but for the moment in which it is renamed."""
    script = in_folder(record, f"ls {quoted([record.path + '/carried'])}")
    outcome = surely(lambda: cluster.place.run(script))
    refuse_other(record, outcome.exit_code)
    return [name for name in outcome.output.split() if untrusted.count(name) is not None]
