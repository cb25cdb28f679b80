"""A space to search, proposed from the options that a program declares, each with its reason."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rabaska.scouting.script_options import FLAG, POSITIONAL, Option

_LEARNING_RATE = re.compile(r"(^|_)(lr|learning_rate|lrate|eta|step_size)($|_)")
_DECAY = re.compile(r"weight_decay|(^|_)(wd|l2|reg|regularization)($|_)")
_FRACTION = re.compile(r"drop")
_MOMENTUM = re.compile(r"momentum|(^|_)beta")
_BATCH = re.compile(r"batch")
_SIZE = re.compile(
    r"(^|_)(depth|layers|n_layers|num_layers|hidden|width|units|channels|heads|dim|size)($|_)"
)
# What says how long, how often, where or on what a program runs; none of it makes it better.
_NOT_TRIED = re.compile(
    r"epoch|(^|_)(steps?|iters?|iterations|seed|workers|threads|gpus?|nodes?|port|rank|device|cuda|"
    r"log|save|print|eval|every|interval|freq|patience|verbose|debug|resume|checkpoint|output|out|"
    r"dir|path|file|data|dataset|root|name|project|backend|mode|split|precision|download)(_|$)|"
    r"(^|_)num_?(epochs|steps|workers|classes)"
)
# The best first: what is measured on data that was not trained on.
_METRICS = (
    r"val(?:id(?:ation)?)?[_/ ]acc(?:uracy)?", r"test[_/ ]acc(?:uracy)?", r"val(?:id)?[_/ ]f1",
    r"val(?:id)?[_/ ]auc", r"accuracy", r"acc", r"val(?:id(?:ation)?)?[_/ ]loss",
    r"test[_/ ]loss", r"loss",
)  # fmt: skip


@dataclass(frozen=True)
class ProposedParameter:
    name: str
    text: str  # as rabaska.toml spells it
    why: str
    place: str  # where the option is declared


def proposed_space(options: Sequence[Option]) -> list[ProposedParameter]:
    """The options that are worth a try; not those that a user has to fill in."""
    found = [_proposed(option) for option in options if option.kind != POSITIONAL]
    return [one for one in found if one is not None]


def _proposed(option: Option) -> ProposedParameter | None:
    name = option.name
    if option.choices and len(option.choices) > 1 and not _NOT_TRIED.search(name):
        listed = ", ".join(_quoted(one, number=option.number) for one in option.choices)
        return _made(option, f"[{listed}]", "its choices, as they are declared")
    default = _number(option.value)
    if option.kind == FLAG or default is None or _NOT_TRIED.search(name):
        return None
    return _numeric(option, name, default)


def _numeric(option: Option, name: str, default: float) -> ProposedParameter | None:
    whole = re.fullmatch(r"-?\d+", option.value) is not None
    if _LEARNING_RATE.search(name) and default > 0:
        low, high = default / 30, min(default * 30, 1.0) if default < 1 else default * 30
        return _made(option, _log(low, high), f"a learning rate, around its default {default:g}")
    if _DECAY.search(name):
        around = default if default > 0 else 1e-4
        return _made(option, _log(around / 100, around * 100), "it acts by its magnitude")
    if _FRACTION.search(name):
        return _made(option, "{float = [0.0, 0.6]}", "a share that is dropped")
    if _MOMENTUM.search(name) and 0 <= default < 1:
        return _made(option, "{float = [0.5, 0.99]}", "close to 1, as is usual")
    if _BATCH.search(name) and whole and default >= 1:
        sizes = sorted({max(1, int(default * by)) for by in (0.5, 1, 2, 4)})
        return _made(option, str(sizes), f"halves and doubles of its default {default:g}")
    if _SIZE.search(name) and whole and default >= 1:
        low, high = max(1, int(default // 2)), int(default * 2)
        return _made(option, f"{{int = [{low}, {high}]}}", f"around its default {default:g}")
    return None


def proposed_metric(texts: Sequence[str]) -> str:
    """What the program prints or logs, by the texts in its source; "" where no name is known."""
    for pattern in _METRICS:
        for text in texts:
            found = re.search(rf"(?<![\w/])({pattern})(?![\w/])", text, re.IGNORECASE)
            if found:
                return re.sub(r"[ /]", "_", found[1])
    return ""


def _made(option: Option, text: str, why: str) -> ProposedParameter:
    name = option.spelled.lstrip("-+")
    key = name if re.fullmatch(r"[\w-]+", name) else f'"{name}"'
    return ProposedParameter(key, text, why, f"{option.place.file}, line {option.place.line}")


def _log(low: float, high: float) -> str:
    return f"{{log = [{_round(low)}, {_round(high)}]}}"


def _round(value: float) -> str:
    """One digit, as TOML reads it."""
    text = f"{value:.0e}"
    return f"{float(text):g}" if 1e-4 <= value < 1e4 else text.replace("e-0", "e-")


def _quoted(text: str, *, number: bool) -> str:
    return text if number and _number(text) is not None else '"' + text.replace('"', '\\"') + '"'


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
