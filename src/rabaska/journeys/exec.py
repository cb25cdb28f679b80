"""Execute: a command beside the running program of a run."""

from collections.abc import Sequence

from rabaska.domain.runs import Job, RunState, RunStatus
from rabaska.errors import WrongUse
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.remote.place import quoted
from rabaska.steps.connect import connect_for
from rabaska.steps.query_status import status


def execute(record: RunRecord, home: Home, words: Sequence[str], *, terminal: bool) -> int:
    """Run `words` on the node of the run's job, in its folder and environment; the exit code."""
    job = _job_at_work(status(record, home))
    cluster = connect_for(record, home)
    beside = [*cluster.node, "exec", record.path, str(job.number), "--", *words]
    command = cluster.scheduler.beside_command(job.id, beside, terminal=terminal)
    return cluster.place.attach(quoted(command), terminal=terminal)


def _job_at_work(run: RunStatus) -> Job:
    if run.state is not RunState.RUNNING or not run.jobs or run.jobs[-1].how:
        raise WrongUse(
            f"run {run.name} is {run.state.value}; a command needs a running program",
            hint="`rabaska shell` opens a shell of its own",
        )
    return run.jobs[-1]
