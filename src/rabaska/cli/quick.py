"""`rabaska status`, for `cli.runs` and for the short way that goes round click."""

import importlib

from rabaska.cli import occasion
from rabaska.cli.chosen import chosen_run, project_folder
from rabaska.journeys.status import statuses
from rabaska.records.home import home
from rabaska.records.runs import remembered


def status(run: str = "", *, on: str = "", everything: bool = False, as_json: bool = False) -> int:
    known = remembered(home().runs) if everything else [chosen_run(run, on)]
    found = statuses(
        known,
        home(),
        meanwhile=_prepare_to_show,
        again=occasion(everything=everything) if not run else "",
        explained=as_json or not everything,
    )
    from rabaska.cli import show

    if as_json:
        show.json(found if everything else found[0])
    elif everything:
        show.runs_table(found)
    else:
        show.run_status(found[0])
    return 0


def status_on(on: str, *, as_json: bool = False) -> None:
    """Every run on a cluster; those that were not known are, from now on."""
    from rabaska.cli import show
    from rabaska.journeys.adopt import adopt_all

    there = adopt_all(on, home(), project_folder())
    found = statuses(there.runs, home(), explained=as_json)
    if as_json:
        show.json(found)
        return
    if there.new:
        names = ", ".join(each.name for each in there.new[:5])
        more = f" and {len(there.new) - 5} more" if len(there.new) > 5 else ""
        show.note(f"not known here before: {names}{more}")
    for problem in there.problems:
        show.note(f"note: {problem}")
    show.runs_table(found) if found else show.note(f"no run of yours is on {on}")


def _prepare_to_show() -> None:
    """Import what is only needed once the clusters have answered."""
    importlib.import_module("rabaska.cli.show")
    importlib.import_module("rabaska.journeys.reading")
    importlib.import_module("rabaska.knowledge.waiting").waiting_for("")
