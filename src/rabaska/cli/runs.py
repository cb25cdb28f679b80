"""Commands about a run: status, logs, wait, cancel, resume, fetch, show, forget, shell, exec."""

import sys
from pathlib import Path
from typing import Any

import click

from rabaska.cli import terminal
from rabaska.cli import terminal as showing
from rabaska.cli.options import (
    chosen_run,
    complete_cluster,
    found_on_option,
    jobs_option,
    json_option,
    on_option,
    quiet_option,
    run_argument,
)
from rabaska.domain.runs import RunState
from rabaska.records import run_index as records
from rabaska.records.home import home


@click.command()
@run_argument
@click.option("-a", "--all", "everything", is_flag=True, help="Every run this computer knows.")
@click.option(
    "--on",
    default="",
    metavar="CLUSTER",
    shell_complete=complete_cluster,
    help="Runs on this cluster, also those that this computer does not know.",
)
@json_option
def status(run: str, *, on: str, everything: bool, as_json: bool) -> None:
    """Show how a run stands, job by job; without a name, the newest run.

    With --on and no name, every run on that cluster is listed. What was submitted from another
    computer, or forgotten, is remembered from then on.
    """
    from rabaska.cli import quick_status

    if on and not run:
        quick_status.status_on(on, as_json=as_json)
    else:
        quick_status.status(run, on=on, everything=everything, as_json=as_json)


@click.command()
@run_argument
@found_on_option
@click.option("-f", "--follow", is_flag=True, help="Go on as it is written, to the run's end.")
@click.option("--job", type=click.IntRange(1), help="Only what this job printed.")
@json_option
def logs(run: str, *, on: str, follow: bool, job: int | None, as_json: bool) -> None:
    """Print what the program printed, job after job.

    On a terminal only colours and carriage returns pass; a file gets every byte.
    """
    from rabaska.journeys import logs as logs_journey

    chunks = logs_journey.logs(chosen_run(run, on), home(), follow=follow, job=job)
    if as_json:
        showing.json({"log": b"".join(chunks).decode(errors="replace")})
        return
    showing.log(chunks)


@click.command()
@run_argument
@found_on_option
@quiet_option
@json_option
def wait(run: str, *, on: str, quiet: bool, as_json: bool) -> int:
    """Follow a run to its end; the exit code is the program's."""
    from rabaska.journeys import wait as wait_journey

    following = showing.Following()
    try:
        ended = wait_journey.wait(
            chosen_run(run, on), home(), None if as_json or quiet else following
        )
    finally:
        following.stop()
    if as_json:
        showing.json(ended)
    elif not quiet:
        showing.run_status(ended)
    return ended.verdict


@click.command()
@run_argument
@found_on_option
@json_option
def cancel(run: str, *, on: str, as_json: bool) -> None:
    """Stop a run and keep what it saved."""
    from rabaska.journeys import cancel as cancel_journey

    after = cancel_journey.cancel(chosen_run(run, on), home())
    if as_json:
        showing.json(after)
    elif after.state in (RunState.FINISHED, RunState.FAILED):
        showing.note(f"{after.name} is {after.state.value} already")
    elif after.state is RunState.GONE:
        showing.note(f"{after.name} is gone: {after.reason}; its jobs were cancelled")
    else:
        more = f"`rabaska resume` {after.begins_again or 'can go on with it'}"
        if after.starts_over:
            more = f"it starts over, so `rabaska resume` would begin again: {after.starts_over}"
        showing.note(f"{after.name} is {after.state.value}; {more}")
        for problem in after.problems:
            showing.note(f"note: {problem}")


@click.command()
@run_argument
@found_on_option
@jobs_option("How many more jobs; default: as before.")
@json_option
def resume(run: str, *, on: str, jobs: int | None, as_json: bool) -> None:
    """Go on with a run that stopped, from its newest valid checkpoint."""
    from rabaska.journeys import resume as resume_journey

    record = chosen_run(run, on)
    with showing.steps(quiet=as_json) as told:
        job_id = resume_journey.resume(record, home(), jobs=jobs, reporter=told)
    if as_json:
        showing.json({"run": record.name, "job_id": job_id.native})
    else:
        showing.note(f"run {record.name}: resumed, id {job_id}")


@click.command()
@run_argument
@found_on_option
@click.option("--to", type=click.Path(file_okay=False, path_type=Path), help="Where to put them.")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Leave these files there.")
@quiet_option
@json_option
def fetch(
    run: str, *, on: str, to: Path | None, exclude: tuple[str, ...], quiet: bool, as_json: bool
) -> None:
    """Bring results home, also while the run goes on; only what is new is copied."""
    from rabaska.journeys import fetch as fetch_journey

    with showing.steps(quiet=quiet or as_json) as told:
        came = fetch_journey.fetch(
            chosen_run(run, on), home(), to=to, leave_out=exclude, reporter=told
        )
    if as_json:
        showing.json(came)
    else:
        showing.note(f"{came.files} new files of {came.run} in")
        showing.data(str(came.folder))
    fetch_journey.refuse_incomplete(came)


@click.command()
@run_argument
@found_on_option
@json_option
def show(run: str, *, on: str, as_json: bool) -> None:
    """Print a run's resolved plan and the script that was submitted."""
    from rabaska.journeys import show as show_journey

    told = show_journey.show(chosen_run(run, on), home())
    showing.json(told) if as_json else showing.voyage(told)


@click.command()
@click.argument("run")
@click.option("--on", default="", metavar="CLUSTER", help="The cluster of the run that is meant.")
@click.option(
    "--secrets", is_flag=True, help="Delete its secrets there; it cannot be resumed then."
)
def forget(run: str, on: str, *, secrets: bool) -> None:
    """Drop a run from this computer's list; nothing else on the cluster is deleted."""
    record = records.find(home().runs, run, on=on)
    if secrets:
        from rabaska.journeys.forget import delete_secrets

        delete_secrets(record, home())
    records.forget(home().runs, record)
    # Interrupted before its job was known, it may have no folder.
    folder = "its folder stays" if record.job_id else "its folder, if it was made, stays"
    showing.note(f"{record.name} is no longer listed; {folder}: {record.path}")


@click.command()
@on_option
@click.option("--walltime", metavar="TIME", help="How long you may stay: 30m, 2h.")
@click.option("--gpus", type=click.IntRange(0), help="GPUs per node.")
@quiet_option
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def shell(*, on: str, quiet: bool, words: tuple[str, ...], **asked: Any) -> int:
    """Open a shell on a compute node, to try things before a run.

    Modules are loaded, the environment is active, data is staged and the code is in place.
    Words after -- are run instead of a shell. What is written to the output folder is kept;
    the allocation ends with the shell.
    """
    from rabaska.cli.projects import project_for
    from rabaska.journeys.shell import shell as open_shell

    project = project_for(on, asked)
    with terminal.steps(quiet=quiet) as told:
        return open_shell(project, on, home(), told, words=words, terminal=_terminal())


@click.command("exec")
@click.argument("run")
@found_on_option
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
def beside(run: str, words: tuple[str, ...], on: str) -> int:
    """Run a command beside a running program: `rabaska exec RUN -- nvidia-smi`.

    It runs on the program's node, in its folder and environment; its exit code is ours.
    """
    from rabaska.journeys.exec import execute

    return execute(chosen_run(run, on), home(), words, terminal=_terminal())


exec = beside  # noqa: A001 - commands are looked up by the word that users type


def _terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()
