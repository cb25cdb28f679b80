"""Whose folder a run folder is: two runs may have had one name, and only one of them is meant."""

from pathlib import Path

from rabaska.errors import NoSuchRun, WrongUse
from rabaska.records.run_index import RunRecord
from rabaska.remote.place import quoted, surely
from rabaska.steps.connect import ConnectedCluster

OTHER = 98  # how a guarded script ends where the folder is another run's
SUBMITTED = 95  # and where the run was submitted meanwhile
_GONE = 93  # and one that needs the folder, where there is none


def guarded(record: RunRecord, script: str) -> str:
    """A script that does nothing where the run's folder holds another run."""
    plan = quoted([f"{record.path}/run.json"])
    # Keys of the plan itself stand one space from the edge. Old runs have no id, and neither has a
    # damaged plan: only an id that is not ours tells of another run.
    any_id, ours = (f"grep -q {quoted([_line(each)])} {plan}" for each in ("", record.id))
    others = f"{any_id} && ! {ours}" if record.id else any_id
    return f"[ ! -e {plan} ] || ! {{ {others}; }} || exit {OTHER}\n{script}"


def guarded_since(record: RunRecord, submission: str, script: str) -> str:
    """The same; it does nothing either where the run was submitted after `submission`, a mark."""
    file, mark = quoted([f"{record.path}/submissions.jsonl"]), f'"submission": "{submission}"'
    # Of the last one that began: an older one may be answered later. A torn line is none.
    last = (
        f"grep '}}$' {file} | grep -o '\"submission\": \"[^\"]*\"' | awk '!seen[$0]++' | tail -n 1"
    )
    same = f'[ "$({last})" = {quoted([mark if submission else ""])} ]'
    return guarded(record, f"[ ! -e {file} ] || {same} || exit {SUBMITTED}\n{script}")


def _line(identity: str) -> str:
    return f'^ "id": "{identity}"' if identity else '^ "id": "[0-9a-f]'


def in_folder(record: RunRecord, script: str) -> str:
    """A guarded script that does nothing, either, where there is no folder."""
    return guarded(record, f"[ -d {quoted([record.path])} ] || exit {_GONE}\n{script}")


def confirm(record: RunRecord, cluster: ConnectedCluster) -> None:
    """NoSuchRun when the folder at the run's path is not there, or another run's."""
    refuse_other(record, surely(lambda: cluster.place.run(in_folder(record, "true"))).exit_code)


def refuse_other(record: RunRecord, exit_code: int) -> None:
    if exit_code == OTHER:
        raise NoSuchRun(
            f"run {record.name} is not on {record.cluster}",
            why=f"{record.path} {IS_ANOTHERS}",
            hint=f"`rabaska forget {record.name}` drops it from the list, and "
            f"`rabaska status --all --on {record.cluster}` lists what is there",
        )
    if exit_code == _GONE:
        raise gone(record)


def gone(record: RunRecord) -> NoSuchRun:
    """What to say of a run whose folder, or the plan in it, is not there."""
    if record.job_id:
        return NoSuchRun(
            f"run {record.name} is not on {record.cluster} any more",
            why=f"somebody deleted its folder {record.path}, or what is in it",
            hint=after_deletion(record),
        )
    return NoSuchRun(
        f"run {record.name} was never created on {record.cluster}",
        why=f"there is no run in {record.path}: the command that made it was interrupted",
        hint=after_deletion(record),
    )


def after_deletion(record: RunRecord) -> str:
    """What is left to do with a run whose folder somebody deleted."""
    fetched = Path(record.project or ".", "results", record.name)
    stays = f"what was fetched of it stays in {fetched}; " if fetched.is_dir() else ""
    drop = f"`rabaska forget {record.name}` drops it from the list"
    return f"{stays}{drop}; `rabaska run` starts another one"


def refuse_submitted(record: RunRecord, exit_code: int) -> None:
    if exit_code == SUBMITTED:
        raise WrongUse(
            f"run {record.name} was submitted again meanwhile",
            hint=f"`rabaska status {record.name}` shows its status",
        )


IS_ANOTHERS = "belongs to another run of that name"
