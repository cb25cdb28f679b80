"""The command that tests interruptions with short runs: rehearse."""

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
    metavar="N",
    default=4,
    show_default=True,
    help="How many interruptions, over two runs.",
)
@click.option(
    "--for",
    "minutes",
    type=click.FloatRange(0.1),
    default=5.0,
    show_default=True,
    metavar="MINUTES",
    help="Time limit of each job.",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    metavar="N",
    help="Another number interrupts at other moments.",
)
@quiet_option
@json_option
@click.argument("extra", nargs=-1, metavar="[-- ARGS...]", type=click.UNPROCESSED)
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
    """Interrupt short runs of the project and compare them with an uninterrupted one.

    The verdict is exact, close or broken, with the reason and what to change. Words after -- go
    to the program, such as -- --epochs 2. Exit code 13 if it is broken.
    """
    from rabaska.cli.projects import project_for
    from rabaska.journeys import rehearse as journey

    options = journey.RehearsalOptions(cuts=cuts, limit=timedelta(minutes=minutes), seed=seed)
    with terminal.steps(quiet=quiet or as_json) as reporter:
        project = project_for(on, {}, extra)
        rehearsal = journey.rehearse(project, on, home(), options, reporter)
    chart = journey.write(rehearsal, plain(rehearsal))
    if as_json:
        terminal.json(rehearsal)
    else:
        terminal.data("\n".join(_lines(rehearsal)))
        terminal.note(f"curves and logs are in {chart.parent}")
    return NotSafe.exit_code if rehearsal.verdict.broken else 0


def _lines(rehearsal: "Rehearsal") -> list[str]:
    verdict = rehearsal.verdict
    return [
        *letters(rehearsal.reference, [run.curve for run in rehearsal.runs]),
        "",
        *(_cut(run) for run in rehearsal.runs),
        f"{verdict.compared} losses compared, in {say_duration(rehearsal.took)}",
        "",
        f"{verdict.word}: {_in_short(verdict)}",
        *_reasons(verdict),
    ]


def _cut(run: "Interrupted") -> str:
    cuts = [
        f"{stretch.how} after step {max(stretch.curve, default=0)}"
        for stretch in run.stretches
        if stretch.how
    ]
    return f"{run.run}: {', '.join(cuts) or 'it finished before an interruption'}"


def _in_short(verdict: "RehearsalVerdict") -> str:
    first, largest = verdict.first, verdict.largest
    if first is None or largest is None:
        same = "every loss equals that of the uninterrupted run"
        return same if not verdict.faults else f"{same}, but work was lost"
    return (
        f"step {first.step} gave {first.found:g} instead of {first.expected:g}; "
        f"{100 * largest.relative:.2g} % at most, at step {largest.step}"
    )


def _reasons(verdict: "RehearsalVerdict") -> list[str]:
    lines: list[str] = []
    for fault in verdict.faults:
        lines.append(f"  because {fault.what}" + (f" ({fault.place})" if fault.place else ""))
        lines.append(f"  fix: {fault.fix}")
    return [*lines, *(f"  note: {sentence}" for sentence in verdict.advice)]
