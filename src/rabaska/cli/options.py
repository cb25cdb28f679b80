"""Arguments and options that several commands share, and the run that a command means."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from rabaska.errors import NoSuchRun
from rabaska.records.home import home
from rabaska.records.run_index import RunRecord, find, remembered

Command = Callable[..., Any]


def _complete_run(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names from this computer's own index: completion never opens a connection."""
    names = [record.name for record in remembered(home().runs)]
    return [CompletionItem(name) for name in reversed(names) if name.startswith(typed)]


def complete_cluster(
    _ctx: click.Context, _param: click.Parameter, typed: str
) -> list[CompletionItem]:
    from rabaska.settings.profile_files import names

    return [CompletionItem(name) for name in names(home().profiles) if name.startswith(typed)]


def run_argument(command: Command) -> Command:
    return click.argument("run", required=False, default="", shell_complete=_complete_run)(command)


def on_option(command: Command) -> Command:
    return click.option(
        "--on",
        default="here",
        show_default=True,
        metavar="CLUSTER",
        shell_complete=complete_cluster,
        help="The cluster to use; `here` is this computer.",
    )(command)


def found_on_option(command: Command) -> Command:
    return click.option(
        "--on",
        default="",
        metavar="CLUSTER",
        shell_complete=complete_cluster,
        help="Where the run lies; it may have been submitted from another computer.",
    )(command)


class _Jobs(click.Option):
    """`--jobs`; also under its older name `--links`, which no page shows."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        super().add_to_parser(parser, ctx)
        parser.add_option(obj=self, opts=["--links"], dest=self.name)


def jobs_option(meaning: str) -> Callable[[Command], Command]:
    return click.option("--jobs", cls=_Jobs, type=click.IntRange(1), help=meaning)


def json_option(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for a script.")(command)


def quiet_option(command: Command) -> Command:
    return click.option("-q", "--quiet", is_flag=True, help="Print only what was asked for.")(
        command
    )


def chosen_run(name: str, on: str = "") -> RunRecord:
    """The run that `name` means; without one, the newest of the project we stand in.

    With `on` it is one on that cluster, and looked for there if this computer does not know it.
    """
    project = project_folder()
    try:
        return find(home().runs, name, project=project, called=project_name, on=on)
    except NoSuchRun:
        if not on:
            raise
    from rabaska.steps import adopt

    if name:
        return adopt.adopt_one(name, on, home(), project)
    adopt.adopt_all(on, home(), project)
    return find(home().runs, project=project, on=on)


def project_folder() -> Path | None:
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (folder / "rabaska.toml").is_file():
            return folder
    return None


def project_name(folder: Path) -> str:
    """Imported when it is asked for: a project is seldom moved."""
    from rabaska.steps import adopt

    return adopt.project_name(folder)
