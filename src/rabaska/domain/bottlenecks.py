"""Why a training is slow: rules that read its measures, the most costly bottleneck first."""

import math
from collections.abc import Callable

from rabaska.domain import command_options
from rabaska.domain.data_bottlenecks import data
from rabaska.domain.node_bottlenecks import idle_gpu, slow_rank, small_steps, swapping, throttling
from rabaska.domain.run_measures import Bottleneck, Measures, counted, times_faster

ENOUGH = 5.0  # seconds of training; less shows how it starts, and not how it goes
_SAVING = 0.10  # shares of the time that are worth a change
_LOGGING = 0.10
_VALIDATING = 0.30
_LEFT = 0.02  # of the time, that saving may take

Rule = Callable[[Measures], Bottleneck | None]


def bottlenecks(measured: Measures, enough: float = ENOUGH) -> tuple[Bottleneck, ...]:
    """Those that are worth a change, the most costly first; none of a run that is well."""
    if measured.seconds < enough:
        return ()
    found = [one for rule in RULES if (one := rule(measured))]
    return tuple(sorted(found, key=lambda one: -one.lost))


def saving(measured: Measures) -> Bottleneck | None:
    if measured.saving < _SAVING:
        return None
    times = max(2, math.ceil(measured.saving / _LEFT))
    each = measured.saving * measured.seconds / max(1, measured.saves)
    line = command_options.changed(measured.command, command_options.SAVING, factor=times)
    return Bottleneck(
        "saving",
        "It saves too often, or too much.",
        f"{measured.saving:.0%} of the time it saves: {counted(measured.saves, 'save')} "
        f"of {each:.2g} s in {measured.seconds:.0f} s",
        line or f"save {times} times less often",
        measured.saving,
        times_faster(measured.saving * (1 - 1 / times)),
    )


def logging(measured: Measures) -> Bottleneck | None:
    if measured.logging < _LOGGING:
        return None
    line = command_options.changed(measured.command, command_options.LOGGING, factor=20)
    return Bottleneck(
        "logging",
        "It logs too often, or too much.",
        f"{measured.logging:.0%} of the time it prints or writes to its tracker",
        line or "log every 20th of these steps only",
        measured.logging,
        times_faster(measured.logging * 0.95),
    )


def validation(measured: Measures) -> Bottleneck | None:
    if measured.validating < _VALIDATING:
        return None
    times = 4
    line = command_options.changed(measured.command, command_options.VALIDATION, factor=times)
    return Bottleneck(
        "validation",
        "It validates too often, or on too much.",
        f"{measured.validating:.0%} of the time it goes over data without training on it",
        line or f"validate {times} times less often, or on a part of the data",
        measured.validating,
        times_faster(measured.validating * (1 - 1 / times)),
    )


RULES: tuple[Rule, ...] = (
    swapping,
    data,
    slow_rank,
    idle_gpu,
    throttling,
    small_steps,
    saving,
    logging,
    validation,
)
