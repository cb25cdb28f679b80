"""Commands about a run: status, logs, wait, cancel, fetch, show, shell, exec."""

import sys
from datetime import timedelta
from pathlib import Path

import click

from rabaska.cli import terminal
from rabaska.cli.find_run import chosen_run
from rabaska.cli.options import (
    Renamed,
    ago,
    complete_cluster,
    found_on_option,
    json_option,
    on_option,
    quiet_option,
    request_options,
    run_argument,
)
from rabaska.cli.render_status import remark_lines, run_json
from rabaska.domain.run_changes import TypedChanges
from rabaska.records.home import home
from rabaska.views.runs import after_cancel
from rabaska.views.words import counted


@click.command()
@run_argument
@click.option("-a", "--all", "everything", is_flag=True, help="All runs in this computer's list.")
@click.option(
    "--on",
    default="",
    metavar="CLUSTER",
    shell_complete=complete_cluster,
    help="All runs on this cluster, also those that are not in the list.",
)
@click.option(
    "--sort",
    default="",
    metavar="KEY",
    help="Sort the list by a column, a metric or an option of the program: age, accuracy, lr.",
)
@click.option("--reverse", is_flag=True, help="Largest or newest first.")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="KEY=VALUE",
    help="Only runs of which this holds, such as state=failed, tag=new or lr=0.1; or that contain "
    "a text; repeatable.",
)
@json_option
def status(
    run: str,
    *,
    on: str,
    everything: bool,
    sort: str,
    reverse: bool,
    filters: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show a run's status, job by job; by default the newest run.

    With --all, --sort or --filter, all runs are listed, with the arguments in which they differ.
    With --on and no name, all runs on that cluster are shown. Those that were submitted from
    another computer, or forgotten, are added to this computer's list.
    """
    from rabaska.cli import quick_status

    choice = quick_status.Choice(sort, reverse, filters)
    everything = everything or (not run and choice != quick_status.Choice())
    if on and not run:
        quick_status.status_on(on, as_json=as_json, choice=choice)
    else:
        quick_status.status(run, on=on, everything=everything, as_json=as_json, choice=choice)


@click.command()
@run_argument
@found_on_option
@click.option("-f", "--follow", is_flag=True, help="Keep printing new lines until the run ends.")
@click.option(
    "--job",
    cls=Renamed,
    old="--link",
    type=click.IntRange(1),
    metavar="N",
    help="Only the log of this job.",
)
@click.option("--grep", metavar="PATTERN", help="Only lines that match this regular expression.")
@click.option(
    "--since",
    callback=ago,
    metavar="TIME",
    help="Only what was printed in the last 10min, 2h or 1d.",
)
@json_option
def logs(
    run: str,
    *,
    on: str,
    follow: bool,
    job: int | None,
    grep: str | None,
    since: timedelta | None,
    as_json: bool,
) -> None:
    """Print the program's output, job after job.

    On a terminal, control characters other than colours and carriage returns are removed; a file
    or a pipe gets every byte.
    """
    from rabaska.journeys import logs as logs_journey

    record = chosen_run(run, on)
    chunks = logs_journey.logs(record, home(), follow=follow, job=job, grep=grep, since=since)
    if as_json:
        terminal.json({"log": b"".join(chunks).decode(errors="replace")})
        return
    if follow and job is None:
        logs_journey.tell_phases(record, home(), terminal.PhaseLines())
    terminal.log(chunks)


@click.command()
@run_argument
@found_on_option
@quiet_option
@json_option
def wait(run: str, *, on: str, quiet: bool, as_json: bool) -> int:
    """Wait until a run ends; the exit code is the program's.

    The terminal's bell rings at the end.
    """
    from rabaska.cli.tell import wait_for

    ended = wait_for(chosen_run(run, on), shown=not (as_json or quiet))
    if as_json:
        terminal.json(run_json(ended))
    elif not quiet:
        terminal.run_status(ended)
    return ended.verdict


@click.command()
@run_argument
@found_on_option
@json_option
def cancel(run: str, *, on: str, as_json: bool) -> None:
    """Stop a run; its results and checkpoints are kept."""
    from rabaska.journeys import cancel as cancel_journey

    run_status = cancel_journey.cancel(chosen_run(run, on), home())
    if as_json:
        terminal.json(run_json(run_status))
        return
    for remark in after_cancel(run_status):
        for line in remark_lines(remark):
            terminal.note(line)


@click.command()
@run_argument
@found_on_option
@click.option(
    "--to", type=click.Path(file_okay=False, path_type=Path), help="The folder to copy them to."
)
@click.option(
    "--exclude", multiple=True, metavar="PATTERN", help="Do not copy these files; repeatable."
)
@click.option(
    "--sync/--no-sync",
    default=None,
    help="Upload W&B's offline logs from here, now and after each fetch; or never.",
)
@quiet_option
@json_option
def fetch(
    run: str,
    *,
    on: str,
    to: Path | None,
    exclude: tuple[str, ...],
    sync: bool | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Copy results to this computer, also during the run; only what is new is copied."""
    from rabaska.journeys import fetch as fetch_journey

    with terminal.steps(quiet=quiet or as_json) as reporter:
        fetched = fetch_journey.fetch(
            chosen_run(run, on), home(), to=to, leave_out=exclude, reporter=reporter, sync=sync
        )
    if as_json:
        terminal.json(fetched)
    else:
        came = fetched.files - fetched.own_files  # logs and records come too
        terminal.note(f"{counted(came, 'new file')} of {fetched.run} in")
        terminal.data(str(fetched.folder))
    fetch_journey.refuse_incomplete(fetched)


@click.command()
@run_argument
@found_on_option
@json_option
def show(run: str, *, on: str, as_json: bool) -> None:
    """Print a run's plan and the job script that was submitted."""
    from rabaska.journeys import show as show_journey

    planned = show_journey.show(chosen_run(run, on), home())
    terminal.json(planned) if as_json else terminal.planned_run(planned)


@click.command()
@on_option
@request_options
@quiet_option
@click.argument("words", nargs=-1, metavar="[-- COMMAND...]", type=click.UNPROCESSED)
def shell(*, on: str, quiet: bool, words: tuple[str, ...], requests: TypedChanges) -> int:
    """Open a shell on a compute node, set up as for a run.

    Modules are loaded, the environment is active, data is staged and the code is in place.
    A command after -- is run instead of a shell. Files in the output folder are kept. The
    allocation ends with the shell.
    """
    from rabaska.cli.projects import project_for
    from rabaska.journeys.shell import shell as open_shell

    project = project_for(on, requests)
    with terminal.steps(quiet=quiet) as reporter:
        return open_shell(project, on, home(), reporter, words=words, terminal=_terminal())


@click.command("exec")
@click.argument("run")
@found_on_option
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND...", type=click.UNPROCESSED)
def execute(run: str, words: tuple[str, ...], on: str) -> int:
    """Run a command on the node of a running program.

    Example: `rabaska exec RUN -- nvidia-smi`. It runs in the program's folder and environment;
    the exit code is the command's.
    """
    from rabaska.journeys import exec as exec_journey

    return exec_journey.execute(chosen_run(run, on), home(), words, terminal=_terminal())


exec = execute  # noqa: A001 - commands are looked up by the word that users type


def _terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()
