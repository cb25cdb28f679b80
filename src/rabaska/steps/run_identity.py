"""Whose folder a run folder is: two runs may have had one name, and only one of them is meant."""

from rabaska.errors import NoSuchRun
from rabaska.records.run_index import RunRecord
from rabaska.remote.place import quoted, surely
from rabaska.steps.connect import ConnectedCluster

OTHER = 98  # how a guarded script ends where the folder is another run's


def guarded(record: RunRecord, script: str) -> str:
    """A script that does nothing where the run's folder holds another run."""
    plan = quoted([f"{record.path}/run.json"])
    # Keys of the plan itself stand one space from the edge. Old runs have no id, and neither has a
    # damaged plan: only an id that is not ours tells of another run.
    any_id, ours = (f"grep -q {quoted([_line(each)])} {plan}" for each in ("", record.id))
    others = f"{any_id} && ! {ours}" if record.id else any_id
    return f"[ ! -e {plan} ] || ! {{ {others}; }} || exit {OTHER}\n{script}"


def _line(identity: str) -> str:
    return f'^ "id": "{identity}"' if identity else '^ "id": "[0-9a-f]'


def confirm(record: RunRecord, cluster: ConnectedCluster) -> None:
    """NoSuchRun when the folder at the run's path is another run's."""
    refuse_other(record, surely(lambda: cluster.place.run(guarded(record, "true"))).exit_code)


def refuse_other(record: RunRecord, exit_code: int) -> None:
    if exit_code == OTHER:
        raise NoSuchRun(
            f"run {record.name} is not on {record.cluster}",
            why=f"{record.path} {IS_ANOTHERS}",
            hint=f"`rabaska forget {record.name}` drops it from the list, and "
            f"`rabaska status --all --on {record.cluster}` lists what is there",
        )


IS_ANOTHERS = "belongs to another run of that name"
