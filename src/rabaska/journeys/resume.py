"""Resume: another round of jobs for a run that stopped before it was finished."""

import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from rabaska.domain.jobs import JobSpec
from rabaska.domain.projects import Project
from rabaska.domain.run_changes import Changes, Difference, differences, option_for
from rabaska.domain.runs import Checks, RunState, RunStatus
from rabaska.errors import CommandFailed, NoSuchRun, SubmissionRefused, Unreachable, WrongUse
from rabaska.journeys.rerun import rerun
from rabaska.node.record import plan as plans
from rabaska.node.record.plan import Plan
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord, remember
from rabaska.remote.place import quoted
from rabaska.steps.carry_like import RerunOptions
from rabaska.steps.carry_over import complete
from rabaska.steps.changed_since import changed_since
from rabaska.steps.connect import ConnectedCluster, connect_for
from rabaska.steps.like_run import changed_plan, changed_spec, kept_though_changed, project_now
from rabaska.steps.new_run import Submitted, report_if_stopped
from rabaska.steps.plan_run import MORE, more_script, script
from rabaska.steps.progress import Reporter, SilentReporter
from rabaska.steps.query_status import status
from rabaska.steps.read_plan import read_plan
from rabaska.steps.run_identity import guarded, guarded_since, refuse_other, refuse_submitted
from rabaska.steps.submit import submit

# The code of a run stays as it was submitted.
_ELSE = (
    "`rabaska run` after a change that loads model, optimizer and counter, or with "
    "`--jobs 1 --at-most 1` and a longer `--walltime`, gets further"
)


@dataclass(frozen=True)
class ResumeOptions:
    """How the next jobs differ from those before."""

    jobs: int | None = None  # None: as many as before
    changes: Changes = field(default_factory=Changes)
    on: str = ""  # another cluster
    checks: Checks = field(default_factory=Checks)  # there


def resume(
    record: RunRecord,
    home: Home,
    options: ResumeOptions | None = None,
    *,
    reporter: Reporter | None = None,
) -> Submitted:
    """Submit the run again; it goes on from its newest valid checkpoint.

    On another cluster it goes on as a new run, and the old one says where.
    """
    reporter, options = reporter or SilentReporter(), options or ResumeOptions()
    now = status(record, home)
    _refuse(record, now)
    _warn_of_beginning_again(now, reporter)
    if options.on and options.on != record.cluster:
        return _move(record, home, options, now, reporter)
    with report_if_stopped(f"nothing was submitted; run {record.name} is as it was", reporter):
        cluster = connect_for(record, home)
        plan = read_plan(record, cluster)
        project = project_now(record, record.cluster)
        spec, changed = _next_jobs(plan, project, cluster, options, reporter)
        _report_unused(record, changed_since(plan, project, record.cluster, home), now, reporter)
        complete(cluster, plan, home)
    hint = f"`rabaska status {record.name}` shows what became of it"
    with report_if_stopped(f"run {record.name} was being submitted; {hint}", reporter):
        put = f".{uuid.uuid4().hex}.partial"
        if changed != plan:
            _written(f"name=run.json{put}", plans.dumps(changed), plan, cluster)
        name, last = _write_script(changed, cluster, spec, put), now.submission
        job = submit(
            spec, cluster, script_name=name, resume=True, since=last, put=put, reporter=reporter
        )
    remember(home.runs, replace(record, job_id=job.native))
    return Submitted(record.name, job, record.cluster, record.path)


def _next_jobs(
    plan: Plan,
    project: Project | None,
    cluster: ConnectedCluster,
    options: ResumeOptions,
    reporter: Reporter,
) -> tuple[JobSpec, Plan]:
    """The jobs to submit and the plan they need; what changes, and what does not, is reported."""
    changes, jobs = options.changes, options.jobs or plan.jobs
    spec = changed_spec(plan, cluster, changes, jobs=jobs, now=project)
    changed = changed_plan(plan, spec, cluster) if changes else plan
    _report(reporter, differences(plan, changed))
    for kept in kept_though_changed(changed, cluster, project, changes):
        option = option_for(kept)
        how = f"; `{option}` changes it" if option else ""
        reporter.step(f"{kept.what} stays {kept.before}: rabaska.toml says {kept.after}{how}")
    return spec, changed


def _report_unused(record: RunRecord, changed: str, now: RunStatus, reporter: Reporter) -> None:
    """Say what of the project's changes the run does not take up, and what does."""
    if changed:
        again = f"rabaska rerun {record.name} --with-code new --from-checkpoint"
        other = f"`{again if now.checkpoint else 'rabaska run'}` uses what is there now"
        reporter.warn(f"code and environment stay as submitted, though changed: {changed}; {other}")


def _refuse(record: RunRecord, now: RunStatus) -> None:
    if now.moved:
        raise WrongUse(
            f"run {record.name} went on as {now.moved}",
            hint=f"`rabaska rerun {record.name} --from-checkpoint` starts another run from here",
        )
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
        raise WrongUse(
            f"run {record.name} is finished",
            hint=f"`rabaska fetch {record.name}` brings its results; `rabaska rerun "
            f"{record.name} --from-checkpoint -- ARGS` trains further, with other arguments",
        )
    if now.state is RunState.UNKNOWN and now.job_id:
        raise Unreachable(
            f"whether run {record.name} is still at work could not be found out",
            why=now.reason,
            hint=f"ask again in a moment; `rabaska cancel {record.name}` ends what is left of it",
        )
    if not now.state.over and now.state is not RunState.UNKNOWN:
        raise WrongUse(f"run {record.name} is {now.state.value}; there is nothing to resume")


def _warn_of_beginning_again(now: RunStatus, reporter: Reporter) -> None:
    if now.starts_over:
        reporter.warn(
            f"this run starts over, and its next job will too: {now.starts_over}; {_ELSE}"
        )
    elif now.begins_again and now.checkpoint:
        reporter.warn(f"its next job {now.begins_again}; {_ELSE}")


def _report(reporter: Reporter, found: Sequence[Difference]) -> None:
    for one in found:
        reporter.step(f"{one.what}: {one.before} -> {one.after}")


def _move(
    record: RunRecord, home: Home, options: ResumeOptions, now: RunStatus, reporter: Reporter
) -> Submitted:
    """Go on elsewhere: a new run with this one's code, data, checkpoints and results."""
    like = RerunOptions(
        from_checkpoint=now.checkpoint is not None,
        on=options.on,
        changes=options.changes,
        jobs=options.jobs,
        checks=options.checks,
    )
    if now.checkpoint is None:
        reporter.warn("it has no checkpoint, so it starts from the beginning there")
    cluster, marked = connect_for(record, home), False

    def say_where(made: RunRecord) -> None:
        nonlocal marked
        _say_where(record, now, made, cluster)
        marked = True

    shown = partial(_report, reporter)
    try:
        return rerun(record, home, like, reporter, shown=shown, ready=say_where)
    except SubmissionRefused:
        if marked:  # by us, and nothing went on elsewhere
            cluster.place.run(guarded(record, f"rm -f {quoted([f'{record.path}/MOVED'])}"))
        raise


_MOVED = 94  # how the script ends where another command was quicker
# By a link, which only one command can make, and which is there complete or not at all.
_MARK = """cd {run} && printf '%s\\n' {content} > {partial} || exit 1
ln {partial} MOVED; made=$?; rm -f {partial}
[ $made = 0 ] || {{ [ -e MOVED ] && exit {moved}; exit 1; }}"""


def _say_where(
    record: RunRecord, now: RunStatus, made: RunRecord, cluster: ConnectedCluster
) -> None:
    """Leave a note in the old run's folder, for `status` from any computer.

    Before the new run is submitted: whoever is killed meanwhile has one run to resume, not two.
    """
    content = json.dumps({"run": made.name, "cluster": made.cluster, "time": time.time()})
    script = _MARK.format(
        run=quoted([record.path]),
        content=quoted([content]),
        partial=quoted([f"MOVED.{made.id}.partial"]),
        moved=_MOVED,
    )
    outcome = cluster.place.run(guarded_since(record, now.submission, script))
    refuse_other(record, outcome.exit_code)
    refuse_submitted(record, outcome.exit_code)
    hint = f"`rabaska delete {made.name}` removes the copy, which was not submitted"
    if outcome.exit_code == _MOVED:
        raise WrongUse(f"another command continues {record.name} elsewhere", hint=hint)
    if outcome.exit_code != 0:
        raise CommandFailed(
            f"{record.name} could not be marked as continued", why=outcome.complaint, hint=hint
        )


def _write_script(plan: Plan, cluster: ConnectedCluster, spec: JobSpec, put: str) -> str:
    """A script of its own for each round, so that the one that ran stays to be read."""
    setup = tuple(plan.request.setup)
    if plan.growth.words:
        _written(f"name={MORE}{put}", more_script(spec, cluster, setup), plan, cluster)
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
