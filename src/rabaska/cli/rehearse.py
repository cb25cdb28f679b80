"""The command that tries an interruption before it costs anything."""

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from rabaska.cli import terminal
from rabaska.cli.options import json_option, on_option, quiet_option
from rabaska.cli.text import plain
from rabaska.domain.amounts import say_duration
from rabaska.errors import NotSafe
from rabaska.records.home import home
from rabaska.steps.draw_curves import letters

if TYPE_CHECKING:
    from rabaska.domain.rehearsal import Interrupted, RehearsalVerdict
    from rabaska.journeys.rehearse import Rehearsal


@click.command()
@on_option
@click.option(
    "--cuts",
    type=click.IntRange(1, 40),
    default=4,
    show_default=True,
    help="Interruptions in all, over two runs.",
)
@click.option(
    "--for",
    "minutes",
    type=click.FloatRange(0.1),
    default=5.0,
    show_default=True,
    metavar="MINUTES",
    help="The longest a job may take.",
)
@click.option("--seed", default=0, show_default=True, help="Other moments for another number.")
@quiet_option
@json_option
@click.argument("extra", nargs=-1, type=click.UNPROCESSED)
def rehearse(
    *,
    on: str,
    cuts: int,
    minutes: float,
    seed: int,
    quiet: bool,
    as_json: bool,
    extra: tuple[str, ...],
) -> int:
    """Interrupt short runs of the project, and compare them with one that was left alone.

    The verdict is exact, close or broken, with the reason and what to change; words after --
    go to the program, such as -- --epochs 2. Exit code 13 when it is broken.
    """
    from rabaska.cli.projects import project_for
    from rabaska.journeys import rehearse as journey

    wish = journey.RehearsalOptions(cuts=cuts, limit=timedelta(minutes=minutes), seed=seed)
    with terminal.steps(quiet=quiet or as_json) as told:
        found = journey.rehearse(project_for(on, {}, extra), on, home(), wish, told)
    drawn = journey.write(found, plain(found))
    if as_json:
        terminal.json(found)
    else:
        terminal.data("\n".join(_lines(found)))
        terminal.note(f"curves and logs are in {drawn.parent}")
    return NotSafe.exit_code if found.verdict.broken else 0


def _lines(told: "Rehearsal") -> list[str]:
    verdict = told.verdict
    return [
        *letters(told.reference, [run.curve for run in told.runs]),
        "",
        *(_cut(run) for run in told.runs),
        f"{verdict.compared} losses compared, in {say_duration(told.took)}",
        "",
        f"{verdict.word}: {_in_short(verdict)}",
        *_reasons(verdict),
    ]


def _cut(run: "Interrupted") -> str:
    cuts = [
        f"{each.how} after step {max(each.curve, default=0)}" for each in run.stretches if each.how
    ]
    return f"{run.run}: {', '.join(cuts) or 'it was over before it could be cut'}"


def _in_short(verdict: "RehearsalVerdict") -> str:
    first, largest = verdict.first, verdict.largest
    if first is None or largest is None:
        same = "every loss is that of the run that was left alone"
        return same if not verdict.faults else f"{same}, but work was lost on the way"
    return (
        f"step {first.step} gave {first.found:g} instead of {first.expected:g}; "
        f"{100 * largest.relative:.2g} % at the most, at step {largest.step}"
    )


def _reasons(verdict: "RehearsalVerdict") -> list[str]:
    lines: list[str] = []
    for each in verdict.faults:
        lines.append(f"  because {each.what}" + (f" ({each.place})" if each.place else ""))
        lines.append(f"  fix: {each.fix}")
    return [*lines, *(f"  note: {sentence}" for sentence in verdict.advice)]
