"""Cancel: ask a run to stop, and take what waits out of the queue."""

import json
import time
from collections.abc import Sequence
from dataclasses import replace

from rabaska.domain.jobs import JobId
from rabaska.domain.runs import RunState, RunStatus
from rabaska.errors import CommandFailed
from rabaska.node.login.wait_for_exit import LEFT
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.remote.place import Outcome, quoted, surely
from rabaska.steps.connect import ConnectedCluster, connect_for
from rabaska.steps.query_status import status
from rabaska.steps.read_status import another, carried
from rabaska.steps.run_identity import guarded, refuse_other

_OVER = (RunState.FINISHED, RunState.FAILED, RunState.CANCELLED)
_LOOKS = 10  # a second apart, for the answer of a submission that was under way
_MARK = "== "
_ANOTHER = "=! "  # then the id and the name of a job that is not the run's
_SECRETS = "=* secrets"  # they are there, for a run that may be resumed
_TELL = f"""echo "{_MARK}$(echo "${{said:-exit code $?}}" | tr '\\n' ' ')" """


def cancel(record: RunRecord, home: Home) -> RunStatus:
    """The run's status after it was asked to stop; a run that is over is left as it is.

    Where the scheduler's command kills at once, the job at work is given the time that it has at
    its limit, to save and leave, and only then is it deleted.
    What has left its scheduler's memory cannot be cancelled there, and need not be: a job that
    is still at work sees STOP at its next sign of life, and no other one goes past it.
    """
    before = status(record, home)
    if before.state in _OVER:
        return before
    cluster = connect_for(record, home)
    jobs = JobId(before.job_id).each if before.job_id else ()
    ours = _carried(before)
    at_work = () if cluster.scheduler.capabilities.lets_save else _at_work(before, jobs)
    # STOP first: a job that begins between the two commands sees it and leaves at once.
    script = "\n".join(
        [
            _stop_script(record.path),
            *_cancel_lines([job for job in jobs if job not in at_work], ours, cluster),
            *([quoted([*cluster.node, "wait-for-exit", record.path])] if at_work else []),
            *_cancel_lines(at_work, ours, cluster),
            f"[ ! -e {quoted([record.path + '/secrets.json'])} ] || echo '{_SECRETS}'",
        ]
    )
    script, run = guarded(record, script), cluster.run if at_work else cluster.place.run
    outcome = surely(lambda: run(script))
    refuse_other(record, outcome.exit_code)
    late = before.state is RunState.SUBMITTING
    after = _cancelled_late(before, record, home) if late else status(record, home)
    refused, others = _told(_MARK, outcome), _told(_ANOTHER, outcome)
    unclear = [said for said in refused if not cluster.scheduler.capabilities.is_gone(said)]
    if outcome.exit_code != 0 or (unclear and after.state not in _OVER):
        why = unclear[0] if unclear else outcome.complaint
        raise CommandFailed(
            f"run {record.name} could not be cancelled",
            why=why,
            hint=_hint(why, cluster),
        )
    problems = [another(*words.split(" ", 1)) for words in others]
    gone = refused and len(refused) + len(others) == len(jobs)
    if gone and LEFT not in outcome.output.splitlines():
        problems.append(f"its scheduler had no job of it any more ({refused[0]})")
    if _SECRETS in outcome.output.splitlines() and after.state is not RunState.FINISHED:
        removing = f"`rabaska forget {record.name} --secrets`"
        problems.append(f"its secrets stay there, to resume it; {removing} deletes them")
    return replace(after, problems=tuple(dict.fromkeys([*after.problems, *problems])))


def _hint(said: str, cluster: ConnectedCluster) -> str:
    if cluster.scheduler.capabilities.is_on_lost_node(said):
        return (
            "the node of its job does not answer; the run goes no further, and the job ends "
            "when the node is back or the site removes it"
        )
    return "the same command can be given again"


def _cancelled_late(before: RunStatus, record: RunRecord, home: Home) -> RunStatus:
    """The same for a submission that was under way; its job sees STOP if its answer comes later."""
    cluster = connect_for(record, home)
    for _ in range(_LOOKS):
        after = status(record, home)
        if after.job_id != before.job_id:
            lines = _cancel_lines(JobId(after.job_id).each, _carried(after), cluster)
            surely(lambda: cluster.place.run(guarded(record, "\n".join(lines))))  # noqa: B023
            return status(record, home)
        if after.state is not RunState.STOPPING:
            return after
        time.sleep(1)
    return after


def _at_work(before: RunStatus, jobs: Sequence[JobId]) -> tuple[JobId, ...]:
    """The job that began and has not ended: it saves and leaves when it sees STOP."""
    began = [job.id for job in before.jobs[-1:] if job.ended is None]
    return tuple(job for job in jobs if any(job.holds(key) for key in began))


def _carried(run: RunStatus) -> list[str]:
    return carried(run.name, [run.submission], run.about)


def _cancel_lines(
    jobs: Sequence[JobId], ours: Sequence[str], cluster: ConnectedCluster
) -> list[str]:
    """The last job first, so that none begins meanwhile; each refusal becomes a line."""
    return [_cancel_line(job, ours, cluster) for job in reversed(jobs)]


def _cancel_line(job: JobId, ours: Sequence[str], cluster: ConnectedCluster) -> str:
    """Cancel a job that carries what is ours, or tells nothing; asked in the same moment.

    A server that was set up anew gives ids again. One that does not answer what a job carries is
    not asked to cancel it.
    """
    cancel = f"said=$({quoted(cluster.scheduler.cancel_command([job]))} 2>&1) || {_TELL}"
    asking = quoted(cluster.scheduler.carried_command(job))
    if not asking:
        return cancel
    words = " ".join(quoted(["-e", word]) for word in ours)
    return f"""\
if ! carried=$({asking} 2>/dev/null); then said=$({asking} 2>&1); {_TELL}
elif [ -z "$carried" ] || printf '%s\\n' "$carried" | grep -qxF {words}; then {cancel}
else echo "{_ANOTHER}{job.key} $(printf '%s\\n' "$carried" | head -n 1)"
fi"""


def _told(mark: str, outcome: Outcome) -> list[str]:
    lines = outcome.output.splitlines()
    return [line.removeprefix(mark).strip() for line in lines if line.startswith(mark)]


def _stop_script(folder: str) -> str:
    content = json.dumps({"time": time.time(), "reason": "cancelled by its user"})
    partial, final = quoted([f"{folder}/STOP.partial"]), quoted([f"{folder}/STOP"])
    written = f"printf '%s\\n' {quoted([content])} > {partial} && mv -f {partial} {final}"
    # Somebody may have deleted the folder; its jobs are cancelled all the same.
    return f"[ ! -d {quoted([folder])} ] || {{ {written}; }} || exit 1"
