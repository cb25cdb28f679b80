"""Arguments and options that several commands share."""

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from rabaska.domain.amounts import duration
from rabaska.domain.runs import Checks, Labels
from rabaska.records.home import home
from rabaska.records.run_index import remembered

Command = Callable[..., Any]


def complete_run(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names from this computer's own index: completion never opens a connection."""
    names = [record.name for record in remembered(home().runs)]
    return [CompletionItem(name) for name in reversed(names) if name.startswith(typed)]


def complete_cluster(
    _ctx: click.Context, _param: click.Parameter, typed: str
) -> list[CompletionItem]:
    from rabaska.settings.profile_files import names

    return [CompletionItem(name) for name in names(home().profiles) if name.startswith(typed)]


def run_argument(command: Command) -> Command:
    return click.argument("run", required=False, default="", shell_complete=complete_run)(command)


def on_option(command: Command) -> Command:
    return click.option(
        "--on",
        default="",
        metavar="CLUSTER",
        shell_complete=complete_cluster,
        callback=_project_cluster,
        help="The cluster; `here` is this computer. Default: what `rabaska use` set, else here.",
    )(command)


def _project_cluster(_ctx: click.Context, _param: click.Parameter, typed: str) -> str:
    if typed:
        return typed
    from rabaska.settings.project_file import default_cluster

    return default_cluster(Path.cwd())


def found_on_option(command: Command) -> Command:
    return click.option(
        "--on",
        default="",
        metavar="CLUSTER",
        shell_complete=complete_cluster,
        help="The run's cluster; needed only for a run submitted from another computer.",
    )(command)


class Renamed(click.Option):
    """An option that also works under its `old` name, which no page shows."""

    def __init__(self, *args: Any, old: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._old = old

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        super().add_to_parser(parser, ctx)
        flag = {"action": "store_const", "const": True} if self.is_flag else {}
        parser.add_option(obj=self, opts=[self._old], dest=self.name, **flag)


class WithArguments(click.Command):
    """A command whose words after `--` go to `extra`, also where no RUN is before them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        place = args.index("--") if "--" in args else len(args)
        rest = super().parse_args(ctx, args[:place])
        ctx.params["extra"] = (*ctx.params.get("extra", ()), *args[place + 1 :])
        return rest


def jobs_option(text: str) -> Callable[[Command], Command]:
    return click.option(
        "--jobs", cls=Renamed, old="--links", type=click.IntRange(1), metavar="N", help=text
    )


Options = tuple[Callable[[Command], Command], ...]


def _group(options: Options, name: str, made: Callable[..., Any], *keys: str) -> Command:
    """A decorator: `options` reach the command together, as the one thing `made` of them."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def called(*words: Any, **given: Any) -> Any:
            grouped = made(**{key: given.pop(key) for key in keys})
            return command(*words, **given, **{name: grouped})

        decorated: Command = called
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


request_options = _group(
    (
        click.option("--walltime", metavar="TIME", help="Time limit of one job: 90s, 3h, 1d."),
        click.option("--memory", metavar="SIZE", help="Memory per node: 500MB, 64GB."),
        click.option("--gpus", type=click.IntRange(0), metavar="N", help="GPUs per node."),
        click.option("--cores", type=click.IntRange(1), metavar="N", help="Cores per process."),
        click.option("--queue", metavar="NAME", help="The queue or partition."),
        click.option("--account", metavar="NAME", help="The account that pays."),
    ),
    "requests", dict, "walltime", "memory", "gpus", "cores", "queue", "account",
)  # fmt: skip

label_options = _group(
    (
        click.option("--note", default="", metavar="TEXT", help="What to remember of the run."),
        click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag; repeatable."),
    ),
    "labels", Labels, "note", "tags",
)  # fmt: skip

check_options = _group(
    (
        click.option("--no-doctor", is_flag=True, help="Do not check the project first."),
        click.option(
            "--anyway", is_flag=True, help="Submit it even if a check says that it would fail."
        ),
    ),
    "checks", lambda no_doctor, anyway: Checks(not no_doctor, anyway), "no_doctor", "anyway",
)  # fmt: skip


def json_option(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")(command)


def quiet_option(command: Command) -> Command:
    return click.option("-q", "--quiet", is_flag=True, help="Do not print progress.")(command)


def ago(_ctx: click.Context, _param: click.Parameter, typed: str | None) -> timedelta | None:
    """`10min`, `2h` or `1d`, for `callback`."""
    try:
        return None if typed is None else duration(typed)
    except ValueError as problem:
        raise click.BadParameter(str(problem)) from problem
