"""`rabaska status`, for `cli.runs` and for the short way that goes round click."""

import importlib

from rabaska.cli import occasion
from rabaska.cli.chosen import chosen_run
from rabaska.journeys.status import statuses
from rabaska.records.home import home
from rabaska.records.runs import remembered


def status(run: str = "", *, everything: bool = False, as_json: bool = False) -> int:
    known = remembered(home().runs) if everything else [chosen_run(run)]
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


def _prepare_to_show() -> None:
    """Import what is only needed once the clusters have answered."""
    importlib.import_module("rabaska.cli.show")
    importlib.import_module("rabaska.journeys.reading")
    importlib.import_module("rabaska.knowledge.waiting").waiting_for("")
