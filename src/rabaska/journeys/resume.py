"""Resume: another round of jobs for a run that stopped before it was finished."""

import re
from dataclasses import replace

from rabaska.domain import untrusted
from rabaska.domain.jobs import JobId, JobSpec
from rabaska.domain.runs import RunState
from rabaska.errors import CommandFailed, NoSuchRun, Unreachable, WrongUse
from rabaska.node.record.plan import Plan, WrongFormat, from_json
from rabaska.records.home import Home
from rabaska.records.run_index import NAME, RunRecord, remember
from rabaska.remote.place import quoted, surely
from rabaska.steps.carry import complete
from rabaska.steps.connect import ConnectedCluster, connect_for
from rabaska.steps.plan_run import MORE, more_script, script, spec_of
from rabaska.steps.progress import Reporter
from rabaska.steps.query_status import status
from rabaska.steps.run_identity import guarded, refuse_other
from rabaska.steps.submit import submit

# The code of a run stays as it was submitted.
_ELSE = (
    "`rabaska run` after a change that loads model, optimizer and counter, or with "
    "`--jobs 1 --at-most 1` and a longer `--walltime`, gets further"
)

# What of a plan becomes a path on this computer, from which files are sent.
_PLAN = {
    "run": NAME,
    "code": re.compile("[0-9A-Za-z]*"),
    "datasets": [{"pack": re.compile(r"(?!\.)[^/\x00]+")}],
}
# And what its next job is made of.
_ABOUT = {
    "setup": [str],
    "account": str,
    "queue": str,
    "features": [str],
    "mail": str,
    "native": [str],
    "resources": {"walltime": untrusted.TIME},
}
_NO_PLAN = 97  # how the script that reads a plan ends where there is none


def resume(
    record: RunRecord, home: Home, *, jobs: int | None = None, teller: Reporter | None = None
) -> JobId:
    """Submit the run again; it goes on from its newest valid checkpoint."""
    now = status(record, home)
    if now.state is RunState.SUBMITTING:
        raise WrongUse(
            f"run {record.name} is being submitted: {now.reason}",
            hint=f"`rabaska wait {record.name}` waits for it; nothing is submitted twice",
        )
    if now.state is RunState.GONE:
        raise NoSuchRun(
            f"run {record.name} is not on {record.cluster}", why=now.reason, hint=now.hint
        )
    if now.state is RunState.FINISHED:
        raise WrongUse(f"run {record.name} is finished", hint="`rabaska fetch` brings its results")
    if now.state is RunState.UNKNOWN and now.job_id:
        raise Unreachable(
            f"whether run {record.name} is still at work could not be found out",
            why=now.reason,
            hint="ask again in a moment; `rabaska cancel` first, if nothing of it should go on",
        )
    if not now.state.over and now.state is not RunState.UNKNOWN:
        raise WrongUse(f"run {record.name} is {now.state.value}; there is nothing to resume")
    if now.starts_over and teller:
        teller.warn(f"this run starts over, and its next job will too: {now.starts_over}; {_ELSE}")
    elif now.begins_again and now.checkpoint and teller:
        teller.warn(f"its next job {now.begins_again}; {_ELSE}")
    there = connect_for(record, home)
    plan = read_plan(record, there)
    _refuse_incomplete(plan, record)
    complete(there, plan, home)
    spec = spec_of(plan, there, jobs=jobs or plan.jobs)
    name = _write_script(plan, there, spec)
    last = now.submission
    job = submit(spec, there, script_name=name, resume=True, since=last, reporter=teller)
    remember(home.runs, replace(record, job_id=job.native))
    return job


def read_plan(record: RunRecord, there: ConnectedCluster) -> Plan:
    file = quoted([record.path + "/run.json"])
    reading = guarded(record, f"[ -e {file} ] || exit {_NO_PLAN}\ncat {file}")
    outcome = surely(lambda: there.place.run(reading))
    refuse_other(record, outcome.exit_code)
    if outcome.exit_code == _NO_PLAN:
        raise NoSuchRun(
            f"run {record.name} was never created on {record.cluster}",
            why=f"{record.path} has no run.json: the command that made the run was interrupted, "
            "or somebody deleted it",
            hint=f"`rabaska forget {record.name}` drops it from the list; `rabaska run` begins "
            "another one",
        )
    if outcome.exit_code != 0:
        raise CommandFailed(f"the plan of {record.name} cannot be read", why=outcome.complaint)
    try:
        return from_json(untrusted.read(outcome.output, _PLAN))
    except (WrongFormat, ValueError, TypeError, KeyError, AttributeError) as problem:
        raise _damaged(record, problem) from None


def _refuse_incomplete(plan: Plan, record: RunRecord) -> None:
    try:
        untrusted.checked(plan.about, _ABOUT)
    except untrusted.Unexpected as problem:
        raise _damaged(record, problem) from None


def _damaged(record: RunRecord, problem: Exception) -> CommandFailed:
    return CommandFailed(
        f"the plan of {record.name} is damaged",
        why=f"{record.path}/run.json: {problem}",
        hint=f"`rabaska fetch {record.name}` brings what the run saved; "
        "`rabaska run` begins another one",
    )


def _write_script(plan: Plan, there: ConnectedCluster, spec: JobSpec) -> str:
    """A script of its own for each round, so that the one that ran stays to be read."""
    setup = tuple(plan.about["setup"])
    if plan.growth.words:
        _written(f"name={MORE}", more_script(spec, there, setup), plan, there)
    return _written(_NAMING, script(spec, there, setup), plan, there)


# The first free number, which no other resume at this moment gets.
_NAMING = """{ n=$(ls job.sh job-[0-9]*.sh 2>/dev/null | wc -l); name=job-$((n + 1)).sh
until (set -C; : > "$name") 2>/dev/null; do
  [ -e "$name" ] || { : > "$name"; exit 1; }
  n=$((n + 1)); name=job-$((n + 1)).sh
done; }"""


def _written(naming: str, text: str, plan: Plan, there: ConnectedCluster) -> str:
    """The name that the shell words `naming` gave to a script of the run."""
    outcome = there.place.run(
        f"cd {quoted([there.run_folder(plan.run)])} && {naming}"
        ' && cat > "$name.$$.partial" && mv -f "$name.$$.partial" "$name" && echo "$name"',
        feed=text.encode(),
    )
    if outcome.exit_code != 0:
        raise CommandFailed(f"no script could be written for {plan.run}", why=outcome.complaint)
    return outcome.output.strip()
