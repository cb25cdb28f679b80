"""`rabaska status` without click: the command that is typed most starts in half the time."""

import importlib
import sys
from importlib import import_module
from types import ModuleType

from rabaska.cli import occasion
from rabaska.cli.options import chosen_run, project_folder
from rabaska.journeys.status import statuses
from rabaska.records.home import home
from rabaska.records.run_index import remembered


def status(run: str = "", *, on: str = "", everything: bool = False, as_json: bool = False) -> int:
    known = remembered(home().runs) if everything else [chosen_run(run, on)]
    found = statuses(
        known,
        home(),
        meanwhile=_prepare_to_show,
        again=occasion(everything=everything) if not run else "",
        explained=as_json or not everything,
    )
    from rabaska.cli import terminal

    if as_json:
        terminal.json(found if everything else found[0])
    elif everything:
        terminal.runs_table(found)
    else:
        terminal.run_status(found[0])
    return 0


def status_on(on: str, *, as_json: bool = False) -> None:
    """Every run on a cluster; those that were not known are, from now on."""
    from rabaska.cli import terminal
    from rabaska.steps.adopt import adopt_all

    there = adopt_all(on, home(), project_folder())
    found = statuses(there.runs, home(), explained=as_json)
    if as_json:
        terminal.json(found)
        return
    if there.new:
        names = ", ".join(each.name for each in there.new[:5])
        more = f" and {len(there.new) - 5} more" if len(there.new) > 5 else ""
        terminal.note(f"not known here before: {names}{more}")
    for problem in there.problems:
        terminal.note(f"note: {problem}")
    terminal.runs_table(found) if found else terminal.note(f"no run of yours is on {on}")


def _prepare_to_show() -> None:
    """Import what is only needed once the clusters have answered."""
    importlib.import_module("rabaska.cli.terminal")
    importlib.import_module("rabaska.steps.read_status")
    importlib.import_module("rabaska.knowledge.queue_reasons").reason_for("")


def import_later(name: str) -> None:
    """Let `import name` cost nothing until something in it is used.

    Not by importlib's LazyLoader: what it makes is loaded by the next `import` already.
    """
    if name in sys.modules:
        return
    stand_in = ModuleType(name)

    def load(attribute: str) -> object:
        # In this order, another thread that comes meanwhile finds all it needs, too.
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]
        stand_in.__dict__.update(vars(import_module(name)))
        stand_in.__dict__.pop("__getattr__", None)
        return getattr(stand_in, attribute)

    stand_in.__getattr__ = load  # type: ignore[method-assign]
    sys.modules[name] = stand_in
