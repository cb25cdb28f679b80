"""Resume: another round of jobs for a run that stopped before it was finished."""

from dataclasses import replace

from rabaska.domain.jobs import JobId, JobSpec
from rabaska.domain.runs import RunState
from rabaska.errors import CommandFailed, NoSuchRun, Unreachable, WrongUse
from rabaska.node.record.plan import Plan
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord, remember
from rabaska.remote.place import quoted
from rabaska.steps.carry import complete
from rabaska.steps.connect import ConnectedCluster, connect_for
from rabaska.steps.plan_run import MORE, more_script, script, spec_of
from rabaska.steps.progress import Reporter
from rabaska.steps.query_status import status
from rabaska.steps.read_plan import read_plan
from rabaska.steps.submit import submit

# The code of a run stays as it was submitted.
_ELSE = (
    "`rabaska run` after a change that loads model, optimizer and counter, or with "
    "`--jobs 1 --at-most 1` and a longer `--walltime`, gets further"
)


def resume(
    record: RunRecord, home: Home, *, jobs: int | None = None, reporter: Reporter | None = None
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
    if now.starts_over and reporter:
        reporter.warn(
            f"this run starts over, and its next job will too: {now.starts_over}; {_ELSE}"
        )
    elif now.begins_again and now.checkpoint and reporter:
        reporter.warn(f"its next job {now.begins_again}; {_ELSE}")
    cluster = connect_for(record, home)
    plan = read_plan(record, cluster)
    complete(cluster, plan, home)
    spec = spec_of(plan, cluster, jobs=jobs or plan.jobs)
    name = _write_script(plan, cluster, spec)
    last = now.submission
    job = submit(spec, cluster, script_name=name, resume=True, since=last, reporter=reporter)
    remember(home.runs, replace(record, job_id=job.native))
    return job


def _write_script(plan: Plan, cluster: ConnectedCluster, spec: JobSpec) -> str:
    """A script of its own for each round, so that the one that ran stays to be read."""
    setup = tuple(plan.request.setup)
    if plan.growth.words:
        _written(f"name={MORE}", more_script(spec, cluster, setup), plan, cluster)
    return _written(_NAMING, script(spec, cluster, setup), plan, cluster)


# The first free number, which no other resume at this moment gets.
_NAMING = """{ n=$(ls job.sh job-[0-9]*.sh 2>/dev/null | wc -l); name=job-$((n + 1)).sh
until (set -C; : > "$name") 2>/dev/null; do
  [ -e "$name" ] || { : > "$name"; exit 1; }
  n=$((n + 1)); name=job-$((n + 1)).sh
done; }"""


def _written(naming: str, text: str, plan: Plan, cluster: ConnectedCluster) -> str:
    """The name that the shell words `naming` gave to a script of the run."""
    outcome = cluster.place.run(
        f"cd {quoted([cluster.run_folder(plan.run)])} && {naming}"
        ' && cat > "$name.$$.partial" && mv -f "$name.$$.partial" "$name" && echo "$name"',
        feed=text.encode(),
    )
    if outcome.exit_code != 0:
        raise CommandFailed(f"no script could be written for {plan.run}", why=outcome.complaint)
    return outcome.output.strip()
