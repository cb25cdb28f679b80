"""`rabaska status` by the quick path: everything that makes it quick is explained here.

`status` is typed more often than all other commands together, and two things take its time:
importing this program, and starting ssh, a login shell and Python on the cluster. In the order in
which they happen:

1. `cli.main` recognises `status` and `status --all` and calls us without click. So nothing on
   this path may import click or rich, nor, over ssh, subprocess: `tests/cli/test_quick_status.py`
   holds that.
2. `remote.ssh_calls.begin` starts the ssh call that the last `status` noted, before anything else
   is imported. Whoever comes to make the same call adopts it (docs/decisions/0014).
3. Garbage collection is off, for the process is over before there is anything to collect, and
   what is left at the end is frozen, so that Python does not search it as it exits.
4. While the first cluster thinks, `_prepare_to_show` imports what shows the answer.
5. On the cluster, Python runs a copy of our program that holds compiled code, which
   `node.own_program` writes beside it: a zip file keeps no `__pycache__`.
6. `node.login.status_query` answers for a run that only waits without importing what reads jobs,
   and says of one that is over only that it has not changed, where the asker has its report.

Measured on `here` as processor time, medians of 31 in turns: 290 ms, and 317 with garbage
collection. A stand-in for `inspect`, which dataclasses imports, saved 3 and was dropped.
"""

import importlib
from typing import TYPE_CHECKING, NamedTuple

from rabaska.cli import occasion
from rabaska.cli.find_run import chosen_run, project_folder
from rabaska.journeys.status import statuses
from rabaska.records.home import home
from rabaska.records.run_index import remembered

if TYPE_CHECKING:
    from rabaska.domain.runs import RunStatus
    from rabaska.records.run_index import RunRecord

_NAMED = 5  # runs in one line


class Choice(NamedTuple):
    """Which runs of the list are shown, and in which order."""

    sort: str = ""  # a key of `run_table.fields_of`; "": oldest first
    reverse: bool = False
    filters: tuple[str, ...] = ()

    def __call__(self, runs: "list[RunStatus]") -> "list[RunStatus]":
        from rabaska.views.run_table import is_wanted, known_keys, sort_key

        chosen = [run for run in runs if all(is_wanted(run, one) for one in self.filters)]
        if not self.sort:
            return chosen[::-1] if self.reverse else chosen
        if runs and self.sort.lstrip("-") not in known_keys(runs):
            from rabaska.errors import WrongUse

            keys = ", ".join(known_keys(runs))
            raise WrongUse(f"no run has `{self.sort}` to sort by", hint=f"the keys are {keys}")
        keyed = sorted(chosen, key=lambda run: sort_key(run, self.sort), reverse=self.reverse)
        # What is not known stays at the end.
        return sorted(keyed, key=lambda run: sort_key(run, self.sort)[0] == 2)


def status(
    run: str = "",
    *,
    on: str = "",
    everything: bool = False,
    as_json: bool = False,
    choice: Choice | None = None,
) -> int:
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

    known = runs
    if everything and choice:
        runs = choice(runs)
    if as_json:
        records_and_views = [run_json(one) for one in runs]
        terminal.json(records_and_views if everything else records_and_views[0])
    elif everything:
        _table(runs)
    else:
        terminal.run_status(runs[0])
    _tell(records, known)
    return 0


def _tell(records: "list[RunRecord]", runs: "list[RunStatus]") -> None:
    """Who wants to be told is told at last; one look at the disk where nobody does."""
    if (home().folder / "settings.toml").exists():
        from rabaska.cli.tell import tell_all

        tell_all(records, runs)


def _table(runs: "list[RunStatus]") -> None:
    from rabaska.cli import terminal

    terminal.runs_table(runs) if runs else terminal.note("no run matches; `rabaska run` starts one")


def status_on(on: str, *, as_json: bool = False, choice: Choice | None = None) -> None:
    """Every run on a cluster; those that were not in our list are, from now on."""
    from rabaska.cli import terminal
    from rabaska.cli.render_status import run_json
    from rabaska.steps.adopt import adopt_all

    adopted = adopt_all(on, home(), project_folder())
    runs = statuses(adopted.runs, home(), explained=as_json)
    runs = choice(runs) if choice else runs
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
