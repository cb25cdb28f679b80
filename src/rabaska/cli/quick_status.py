"""`rabaska status` without click: the command that is typed most starts in half the time."""

import importlib

from rabaska.cli import occasion
from rabaska.cli.find_run import chosen_run, project_folder
from rabaska.records.home import home
from rabaska.records.run_index import remembered
from rabaska.steps.query_status import statuses

_NAMED = 5  # runs in one line


def status(run: str = "", *, on: str = "", everything: bool = False, as_json: bool = False) -> int:
    records = remembered(home().runs) if everything else [chosen_run(run, on)]
    runs = statuses(
        records,
        home(),
        meanwhile=_prepare_to_show,
        again=occasion(everything=everything) if not run else "",
        explained=as_json or not everything,
    )
    from rabaska.cli import terminal
    from rabaska.cli.render_status import run_json

    if as_json:
        records_and_views = [run_json(one) for one in runs]
        terminal.json(records_and_views if everything else records_and_views[0])
    elif everything:
        terminal.runs_table(runs)
    else:
        terminal.run_status(runs[0])
    return 0


def status_on(on: str, *, as_json: bool = False) -> None:
    """Every run on a cluster; those that were not in our list are, from now on."""
    from rabaska.cli import terminal
    from rabaska.cli.render_status import run_json
    from rabaska.steps.adopt import adopt_all

    adopted = adopt_all(on, home(), project_folder())
    runs = statuses(adopted.runs, home(), explained=as_json)
    if as_json:
        terminal.json([run_json(run) for run in runs])
        return
    if adopted.new:
        names = ", ".join(record.name for record in adopted.new[:_NAMED])
        others = len(adopted.new) - _NAMED
        terminal.note(f"added to the list: {names}{f' and {others} more' if others > 0 else ''}")
    for problem in adopted.problems:
        terminal.note(f"note: {problem}")
    terminal.runs_table(runs) if runs else terminal.note(f"you have no runs on {on}")


def _prepare_to_show() -> None:
    """Import what is only needed once the clusters have answered."""
    importlib.import_module("rabaska.cli.terminal")
    importlib.import_module("rabaska.steps.read_status")
    importlib.import_module("rabaska.knowledge.queue_reasons").reason_for("")
