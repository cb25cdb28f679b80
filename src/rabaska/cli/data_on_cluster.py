"""Commands about data that is on a cluster: list it, pack it there."""

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from rabaska.cli import terminal
from rabaska.cli.options import json_option, on_option, quiet_option
from rabaska.cli.text import columns
from rabaska.domain.amounts import say_size
from rabaska.journeys.data_there import data_there
from rabaska.journeys.pack_there import PackThereOptions, pack_there
from rabaska.records.home import home


def list_there(on: str, name: str, *, as_json: bool) -> None:
    found = [each for each in data_there(on, home()) if name in ("", each.dataset, each.name)]
    if as_json:
        terminal.json(found)
        return
    if not found:
        terminal.note(f"{on} has no packs, no downloads and no datasets of the site")
    rows = [
        (
            each.name,
            f"{each.files:,}" if each.files else "",
            say_size(each.bytes) if each.bytes else "",
            each.path,
            each.about,
        )
        for each in found
    ]
    for line in columns(rows, ("name", "files", "size", "where", ""), right=("files", "size")):
        terminal.data(line)


def _complete_dataset(
    _ctx: click.Context, _param: click.Parameter, typed: str
) -> list[CompletionItem]:
    from rabaska.settings.project_file import load

    names = [dataset.name for dataset in load(Path.cwd()).datasets]
    return [CompletionItem(name) for name in names if name.startswith(typed)]


@click.command("pack")
@click.argument("names", nargs=-1, metavar="[DATASET]...", shell_complete=_complete_dataset)
@on_option
@click.option("--again", is_flag=True, help="Look at all files, although they were packed before.")
@click.option(
    "--job/--now",
    "by_job",
    default=None,
    help="Pack in a job, or at once; by default a job packs what is too large for a login node.",
)
@click.option("--walltime", metavar="TIME", help="Time limit of that job: 90s, 3h, 1d.")
@quiet_option
@json_option
def pack_data(
    names: tuple[str, ...],
    *,
    on: str,
    again: bool,
    by_job: bool | None,
    walltime: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Pack datasets where they are: on the cluster, if `at`, `url` or `fetch` names them.

    Nothing that is on the cluster is sent. A dataset with a `path` is packed here and sent ahead of
    the run. By default all datasets of the project are packed.
    """
    options = PackThereOptions(again, by_job, {"resources.walltime": walltime})
    with terminal.steps(quiet=quiet or as_json) as reporter:
        packed = pack_there(Path.cwd(), names, on, home(), reporter, options)
    if as_json:
        terminal.json(packed)
        return
    for each in packed:
        terminal.data(each.run or each.pack)
