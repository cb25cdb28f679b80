"""Commands that submit a run again, or one like it: resume, rerun."""

from collections.abc import Callable, Sequence

import click

from rabaska.cli import terminal
from rabaska.cli.find_run import chosen_run, project_folder, run_and_goal
from rabaska.cli.options import (
    Command,
    WithArguments,
    check_options,
    complete_cluster,
    jobs_option,
    json_option,
    label_options,
    quiet_option,
    request_options,
    run_argument,
)
from rabaska.domain.run_changes import Difference, TypedChanges, read_changes
from rabaska.domain.runs import Checks, Draw, Labels
from rabaska.records.home import attempt, home


def _goal_option(text: str) -> Callable[[Command], Command]:
    return click.option(
        "--on", default="", metavar="CLUSTER", shell_complete=complete_cluster, help=text
    )


@click.command()
@run_argument
@_goal_option("Continue on this cluster; or where the run is, if this computer does not know it.")
@jobs_option("How many jobs to add; default: as many as before.")
@request_options
@check_options
@json_option
def resume(
    run: str,
    *,
    on: str,
    jobs: int | None,
    requests: TypedChanges,
    checks: Checks,
    as_json: bool,
) -> None:
    """Continue a stopped run from its newest valid checkpoint.

    Code and data stay as they were submitted. What its jobs request stays too, unless an option
    changes it. On another cluster the run continues under a new name, with its code, its data,
    its checkpoints and its results; the old run says where.
    """
    from rabaska.journeys.resume import ResumeOptions
    from rabaska.journeys.resume import resume as journey

    record, goal = run_and_goal(run, on)
    options = ResumeOptions(jobs, read_changes(**requests), goal, checks)
    with terminal.steps(quiet=as_json) as reporter:
        resumed = journey(record, home(), options, reporter=reporter)
    if as_json:
        said = {"run": resumed.run, "job_id": resumed.job_id.native, "cluster": resumed.cluster}
        terminal.json(said)
    elif resumed.run != record.name:
        terminal.note(f"run {record.name}: continues as {resumed.run} on {resumed.cluster}")
        terminal.data(resumed.run)
    else:
        terminal.note(f"run {record.name}: resumed, id {resumed.job_id}")


@click.command(cls=WithArguments)
@run_argument
@click.option(
    "--with-code",
    type=click.Choice(["same", "new"]),
    default="same",
    show_default=True,
    help="The code that was submitted then, or the project's code and data as they are now.",
)
@click.option(
    "--from-checkpoint", is_flag=True, help="Start from its newest checkpoint, with its results."
)
@_goal_option("Run on this cluster; or where the run is, if this computer does not know it.")
@jobs_option("How many jobs to submit; default: as many as before.")
@request_options
@check_options
@label_options
@click.option("--dry-run", is_flag=True, help="Only show what would be different.")
@quiet_option
@json_option
@click.argument("extra", nargs=-1, metavar="[-- ARGS...]", type=click.UNPROCESSED)
@click.pass_obj
def rerun(
    draw: Draw | None,
    /,
    run: str,
    *,
    with_code: str,
    from_checkpoint: bool,
    on: str,
    jobs: int | None,
    requests: TypedChanges,
    labels: Labels,
    checks: Checks,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
    extra: tuple[str, ...],
) -> None:
    """Start a new run like an earlier one; words after -- change its arguments.

    An option after -- that the run had gets the new value; others are added. What is different
    from the earlier run is shown first.
    """
    from rabaska.journeys import rerun as journey
    from rabaska.steps.carry_like import RerunOptions

    record, goal = run_and_goal(run, on) if run else (chosen_run(""), on)
    options = RerunOptions(
        arguments=extra,
        new_code=with_code == "new",
        from_checkpoint=from_checkpoint,
        on=goal,
        changes=read_changes(**requests),
        jobs=jobs,
        labels=labels,
        checks=checks,
    )
    if dry_run:
        with terminal.steps(quiet=quiet or as_json) as reporter:
            found = journey.compare(record, home(), options, reporter)
        terminal.json(found) if as_json else _show(record.name, found, by=terminal.data)
        return
    tried = attempt(home(), project_folder())
    with tried, terminal.steps(quiet=quiet or as_json) as reporter:
        submitted = journey.rerun(
            record,
            home(),
            options,
            reporter,
            shown=lambda found: None if as_json else _show(record.name, found, by=reporter.step),
            draw=draw,
        )
    terminal.json(submitted) if as_json else terminal.data(submitted.run)


def _show(run: str, found: Sequence[Difference], *, by: Callable[[str], None]) -> None:
    by(f"different from {run}:" if found else f"nothing is different from {run}")
    for one in found:
        by(f"  {one.what}: {one.before} -> {one.after}")
