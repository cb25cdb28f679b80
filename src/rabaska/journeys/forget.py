"""Forget: the secrets of a run that is over and that nobody will resume."""

from rabaska.domain.runs import RunState
from rabaska.errors import CommandFailed, WrongUse
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.remote.place import quoted, surely
from rabaska.steps.connect import connect_for
from rabaska.steps.query_status import status
from rabaska.steps.run_identity import guarded, refuse_other


def delete_secrets(record: RunRecord, home: Home) -> None:
    """Delete secrets.json in the run's folder; a run with jobs to come still needs it."""
    now = status(record, home)
    if now.state is RunState.GONE:
        return
    if not now.state.over:
        raise WrongUse(
            f"run {record.name} is {now.state.value}, and needs its secrets",
            hint=f"`rabaska cancel {record.name}` first",
        )
    cluster = connect_for(record, home)
    script = guarded(record, f"rm -f {quoted([f'{record.path}/secrets.json'])}")
    outcome = surely(lambda: cluster.place.run(script))
    refuse_other(record, outcome.exit_code)
    if outcome.exit_code != 0:
        raise CommandFailed(
            f"the secrets of {record.name} could not be deleted", why=outcome.complaint
        )
