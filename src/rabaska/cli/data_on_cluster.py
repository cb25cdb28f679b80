"""Commands about data that is on a cluster: list it, pack it there, bring it by Globus."""

import shlex
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from rabaska.cli import terminal
from rabaska.cli.options import complete_cluster, json_option, on_option, quiet_option
from rabaska.cli.text import columns
from rabaska.domain.amounts import say_size
from rabaska.journeys.data_there import data_there
from rabaska.journeys.globus import ABSENT, ON_ITS_WAY, TAKEN, THERE, GlobusTransfer, globus
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


@click.command("globus")
@click.argument("name", metavar="DATASET", shell_complete=_complete_dataset)
@click.option(
    "--on",
    required=True,
    metavar="CLUSTER",
    shell_complete=complete_cluster,
    help="The cluster, whose profile names its Globus endpoint.",
)
@click.option("--start", is_flag=True, help="Begin the transfer with `globus`, from globus-cli.")
@click.option("--from", "endpoint", default="", metavar="ID", help="The endpoint of this computer.")
@quiet_option
@json_option
def globus_data(
    name: str, *, on: str, start: bool, endpoint: str, quiet: bool, as_json: bool
) -> None:
    """Bring a dataset to a cluster by Globus, and take up what arrived.

    Packs the dataset and prints the command that begins the transfer, or begins it. The same
    command, when the transfer is over, checks every byte and puts the pack in its place: then a run
    finds it there.
    """
    with terminal.steps(quiet=quiet or as_json) as reporter:
        transfer = globus(Path.cwd(), name, on, home(), reporter, start=start, endpoint=endpoint)
        reporter.step(_globus_state(transfer, on))
    if as_json:
        terminal.json(transfer)
    elif transfer.state == ABSENT:
        terminal.data(shlex.join(transfer.command))
    elif transfer.task:
        terminal.data(transfer.task)


def _globus_state(transfer: GlobusTransfer, on: str) -> str:
    again = f"`rabaska data globus {transfer.dataset} --on {on}`"
    arrived = f"{say_size(transfer.have)} of {say_size(transfer.bytes)}"
    return {
        THERE: f"{on} has {transfer.pack} already: a run sends nothing of it",
        TAKEN: f"{transfer.pack} has arrived on {on} and is complete: a run sends nothing of it",
        ON_ITS_WAY: f"{transfer.pack} is on its way to {on}: {arrived}; {again} looks again",
        ABSENT: f"{say_size(transfer.bytes)} to transfer; after it, {again} takes up what arrived",
        "started": f"the transfer began; {again} takes up what arrived, `globus task show` shows "
        "how far it is",
    }[transfer.state]
