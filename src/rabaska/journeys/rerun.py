"""Rerun: a new run like an earlier one, with what is different shown first."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from rabaska.domain.run_changes import Difference, differences
from rabaska.domain.runs import Draw, RunState, RunStatus, names_for
from rabaska.errors import WrongUse
from rabaska.node.record.plan import Plan
from rabaska.packing.code_snapshot import changed_files
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.remote.place import surely
from rabaska.steps.carry_like import EarlierRun, RerunOptions, carry_like, preview_like
from rabaska.steps.carry_over import carry_results, complete_run
from rabaska.steps.connect import ConnectedCluster, connect_for
from rabaska.steps.new_run import Submitted, create_run, report_if_stopped, submit_run
from rabaska.steps.plan_run import plan_run
from rabaska.steps.progress import Reporter, SilentReporter
from rabaska.steps.query_status import status
from rabaska.steps.read_plan import read_plan
from rabaska.steps.run_identity import guarded_since, refuse_other, refuse_submitted

_FILES_NAMED = 5

Shown = Callable[[Sequence[Difference]], None]  # what is different, before anything is submitted
Ready = Callable[[RunRecord], None]  # the new run, complete, just before it is submitted


def rerun(
    record: RunRecord,
    home: Home,
    options: RerunOptions,
    reporter: Reporter | None = None,
    *,
    shown: Shown = lambda _differences: None,
    ready: Ready = lambda _made: None,
    draw: Draw | None = None,
) -> Submitted:
    """Submit a run like `record`; what is different is `shown` before it is submitted."""
    reporter = reporter or SilentReporter()
    with report_if_stopped("nothing was submitted, and no run was made", reporter):
        source = connect_for(record, home)
        earlier = EarlierRun(record, read_plan(record, source), source)
        seen = _with_checkpoint(record, home) if options.from_checkpoint else None
        carried = carry_like(earlier, options, home, reporter)
        shown(_differences(earlier.plan, plan_run(carried, record.name).plan, home))
    labels = options.labels
    if not labels.like:
        labels = replace(labels, like=f"{record.name} on {record.cluster}")
    names = names_for(carried.project.name, draw)
    planned, made = create_run(carried, names, home, reporter, labels=labels, incomplete=bool(seen))
    there = f"run {made.name} was made and is not submitted; `rabaska delete {made.name}`"
    with report_if_stopped(f"{there} removes it", reporter):
        if seen:
            carry_results(record, source, carried.cluster, made.name, home, reporter)
            _refuse_resumed(record, source, seen)
            complete_run(made.name, carried.cluster)
        ready(made)
    return submit_run(planned, made, carried.cluster, home, reporter)


def compare(
    record: RunRecord, home: Home, options: RerunOptions, reporter: Reporter | None = None
) -> list[Difference]:
    """What `rerun` would do otherwise; nothing is sent or submitted."""
    source = connect_for(record, home)
    earlier = EarlierRun(record, read_plan(record, source), source)
    carried = preview_like(earlier, options, home, reporter or SilentReporter())
    return _differences(earlier.plan, plan_run(carried, record.name).plan, home)


def _with_checkpoint(record: RunRecord, home: Home) -> RunStatus:
    """The status of a run that is over and has a checkpoint; WrongUse for any other."""
    now = status(record, home)
    if not now.state.over:
        raise WrongUse(
            f"run {record.name} is {now.state.value}, and still writes its checkpoints",
            hint=f"`rabaska cancel {record.name}` first, or wait for it",
        )
    if now.state is RunState.GONE or now.checkpoint is None:
        why = now.reason if now.state is RunState.GONE else "no valid one was found there"
        raise WrongUse(
            f"run {record.name} has no checkpoint",
            why=why,
            hint="without `--from-checkpoint`, the new run starts from the beginning",
        )
    return now


def _refuse_resumed(record: RunRecord, source: ConnectedCluster, seen: RunStatus) -> None:
    """WrongUse when its jobs may have written while its results were copied."""
    script = guarded_since(record, seen.submission, "true")
    outcome = surely(lambda: source.place.run(script))
    refuse_other(record, outcome.exit_code)
    refuse_submitted(record, outcome.exit_code)


def _differences(before: Plan, after: Plan, home: Home) -> list[Difference]:
    """The same, and which files of the code differ where both snapshots are here."""
    found = differences(before, after)
    old, new = (home.store / "code" / f"{plan.code}.tar" for plan in (before, after))
    if before.code != after.code and old.is_file() and new.is_file():
        files = changed_files(old, new)
        more = f" and {len(files) - _FILES_NAMED} more" if len(files) > _FILES_NAMED else ""
        named = ", ".join(files[:_FILES_NAMED]) + more
        found = [
            replace(one, after=f"{one.after}: {named}") if one.what == "code" and named else one
            for one in found
        ]
    return found
