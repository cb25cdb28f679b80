"""Delete the folder of a run on its cluster."""

import posixpath
from pathlib import Path

from rabaska.errors import CommandFailed, WrongUse
from rabaska.records.run_index import RunRecord
from rabaska.remote.place import quoted, surely
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.run_identity import guarded, guarded_since, refuse_other, refuse_submitted

_NOT_OURS = 96  # how the script ends where the folder is no run folder of ours
# By its place, its owner and what is in it; and never through a link. It is renamed first, so that
# a run is there or not, whenever the connection breaks.
_DELETE = """
remove() {{ rm -rf {doomed} 2>/dev/null || {{ chmod -R u+rwX {doomed}; rm -rf {doomed}; }}; }}
cd {runs} || exit 1
if [ -e {name} ] || [ -L {name} ]; then
  [ ! -L {name} ] && [ -d {name} ] && [ -O {name} ] || exit {not_ours}
  [ -f {name}/run.json ] && [ -d {name}/logs ] || exit {not_ours}
  remove && mv {name} {doomed} || exit 1
fi
remove
"""


def refuse_path(record: RunRecord) -> None:
    """Only `<store>/runs/<name>` is ever deleted, whatever a record says."""
    folder, name = posixpath.split(record.path)
    is_ours = (
        record.path.startswith("/")
        and posixpath.normpath(record.path) == record.path
        and name == record.name
        and posixpath.basename(folder) == "runs"
        and len(Path(folder).parts) > 2
    )
    if not is_ours:
        raise _not_ours(record, "a run folder is called <store>/runs/<run>")


def renamed(path: str) -> str:
    """What a run folder is called while it is deleted."""
    return f"{path}.deleting.partial"


def delete_folder(
    record: RunRecord, cluster: ConnectedCluster, *, since: str | None = None
) -> None:
    """Delete a run's folder, and nothing else; what is not surely its own is refused.

    With `since`, so is a run whose last submission is not that one any more.
    """
    refuse_path(record)
    folder, name = posixpath.split(record.path)
    script = _DELETE.format(
        runs=quoted([folder]),
        name=quoted([f"./{name}"]),
        doomed=quoted([renamed(f"./{name}")]),
        not_ours=_NOT_OURS,
    )
    safe = guarded(record, script) if since is None else guarded_since(record, since, script)
    outcome = surely(lambda: cluster.place.run(safe))
    refuse_other(record, outcome.exit_code)
    refuse_submitted(record, outcome.exit_code)
    if outcome.exit_code == _NOT_OURS:
        raise _not_ours(record, "it is a link, somebody else's, or has no run.json and logs")
    if outcome.exit_code != 0:
        raise CommandFailed(
            f"the folder of {record.name} could not be deleted",
            why=outcome.complaint,
            hint="the same command can be given again",
        )


def _not_ours(record: RunRecord, why: str) -> WrongUse:
    return WrongUse(
        f"{record.path} on {record.cluster} is not deleted",
        why=f"it is not certain that it is the folder of a run: {why}",
        hint=f"`rabaska forget {record.name}` drops the run from the list",
    )
