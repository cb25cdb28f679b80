"""Commands about the list of runs: delete, forget, note."""

import sys
from typing import TYPE_CHECKING

import click

from rabaska.cli import terminal
from rabaska.cli.find_run import chosen_run
from rabaska.cli.options import complete_run, found_on_option, json_option, quiet_option
from rabaska.domain.amounts import say_size
from rabaska.errors import WrongUse
from rabaska.records import run_index as records
from rabaska.records.home import home
from rabaska.records.series_files import remove_copy
from rabaska.views.runs import labels_text
from rabaska.views.words import counted

if TYPE_CHECKING:
    from rabaska.journeys.delete import Deletion, Doomed

_FILES_NAMED = 3  # in one line


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=complete_run)
@found_on_option
@click.option("--fetch", "bring", is_flag=True, help="Fetch what was not fetched first.")
@click.option("--yes", is_flag=True, help="Delete without asking.")
@quiet_option
@json_option
def delete(
    runs: tuple[str, ...], *, on: str, bring: bool, yes: bool, quiet: bool, as_json: bool
) -> None:
    """Delete runs: their folders on the cluster, with results, checkpoints and logs.

    Results that were fetched stay on this computer. A run that is not over is refused. To keep
    the folder on the cluster and only shorten this computer's list, use `rabaska forget`.
    """
    from rabaska.journeys import delete as journey

    chosen = list(dict.fromkeys(chosen_run(run, on) for run in runs))
    if not yes:
        _ask(journey.preview(chosen, home()), bring=bring)
    with terminal.steps(quiet=quiet or as_json) as reporter:
        done = journey.delete(chosen, home(), bring=bring, reporter=reporter)
    if as_json:
        terminal.json({"deleted": done.deleted, "fetched": done.fetched})
        return
    for folder in done.fetched:
        terminal.note(f"fetched into {folder}")
    terminal.note(f"deleted {', '.join(done.deleted)}")


def _ask(found: "Deletion", *, bring: bool) -> None:
    """Say what would be lost; click.Abort unless somebody agrees."""
    for one in found.doomed:
        terminal.note(_line(one))
    lost = sum(len(one.not_fetched) for one in found.doomed)
    if lost and not bring:
        terminal.note("`--fetch` brings these files to this computer first")
    if not sys.stdin.isatty():
        raise WrongUse(
            "nothing was deleted", why="nobody is there to agree", hint="`--yes` deletes at once"
        )
    click.confirm(f"delete {counted(len(found.doomed), 'run')}?", abort=True, err=True)


def _line(one: "Doomed") -> str:
    run = f"{one.record.name} on {one.record.cluster}, {one.state.value}"
    if not one.is_there:
        return f"{run}: its folder is not there; it is dropped from the list"
    if not one.not_fetched:
        return f"{run}: all that its program wrote and printed is on this computer"
    names = ", ".join(one.not_fetched[:_FILES_NAMED])
    more = ", …" if len(one.not_fetched) > _FILES_NAMED else ""
    files = f"{counted(len(one.not_fetched), 'file')}, {say_size(one.size)}"
    return f"{run}: not fetched: {files}: {names}{more}"


@click.command()
@click.argument("run", shell_complete=complete_run)
@click.option(
    "--on",
    default="",
    metavar="CLUSTER",
    help="The run's cluster, where two runs have the same name.",
)
@click.option(
    "--secrets",
    is_flag=True,
    help="Also delete its secrets on the cluster; it cannot be resumed then.",
)
def forget(run: str, on: str, *, secrets: bool) -> None:
    """Remove a run from this computer's list; its files on the cluster stay.

    `rabaska status --on CLUSTER` finds it again. To delete its files, use `rabaska delete`.
    """
    record = records.find(home().runs, run, on=on)
    if secrets:
        from rabaska.journeys.forget import delete_secrets

        delete_secrets(record, home())
    records.forget(home().runs, record)
    remove_copy(home(), record)
    # Interrupted before its job was known, it may have no folder.
    folder = "its folder stays" if record.job_id else "its folder, if there is one, stays"
    terminal.note(f"removed {record.name} from the list; {folder}: {record.path}")


@click.command()
@click.argument("run", shell_complete=complete_run)
@click.argument("text", nargs=-1)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Add a tag; repeatable.")
@click.option("--untag", "untags", multiple=True, metavar="TAG", help="Remove a tag; repeatable.")
@found_on_option
@json_option
def note(
    run: str,
    text: tuple[str, ...],
    *,
    tags: tuple[str, ...],
    untags: tuple[str, ...],
    on: str,
    as_json: bool,
) -> None:
    """Show or write the note on a run; an empty text ("") removes it.

    Notes and tags are shown by `rabaska status --all`. They are kept on this computer.
    """
    from rabaska.journeys.note import note as journey

    words = " ".join(text) if text else None
    noted = journey(chosen_run(run, on), home(), words, add=tags, remove=untags)
    if as_json:
        terminal.json({"run": noted.run, "note": noted.text, "tags": noted.tags})
    elif noted.text or noted.tags:
        terminal.data(labels_text(noted.text, noted.tags))
    else:
        terminal.note(f"no note on {noted.run}; `rabaska note {noted.run} TEXT` writes one")
