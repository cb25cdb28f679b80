"""What of a training has state, as its source tells: optimizer, scheduler, order, chance."""

import ast
import re
from collections.abc import Callable, Iterator

from rabaska.domain.rehearsal import Used
from rabaska.scouting.source import Source, argument, called, last_word, literal

# SGD without momentum has no state of its own.
_OPTIMIZERS = re.compile(
    r"^(Adam|AdamW|Adamax|NAdam|RAdam|Adagrad|Adadelta|RMSprop|Rprop|LBFGS|LAMB|Lion|Adafactor)$"
)
_SCHEDULERS = re.compile(r"(LR|LRScheduler|WarmRestarts|ReduceLROnPlateau)$|^get_\w*schedule\w*$")
_CHANCE = re.compile(
    r"^([Dd]ropout\w*|Random\w+|ColorJitter|RandAugment|AutoAugment|mixup|cutmix|default_rng)$"
)
# These may also be used once, to make the first weights or data.
_PERHAPS = re.compile(r"^(randn?(_like)?|randint|bernoulli|normal|uniform|random|choice)$")
_SEEDED = re.compile(r"generator|epoch|seed", re.I)


def used(sources: tuple[Source, ...]) -> Used:
    """The first place of each, over all files of the program."""
    return Used(
        optimizer=_first(sources, _has_state),
        scheduler=_first(sources, lambda call: bool(_SCHEDULERS.search(last_word(call)))),
        order=_first(sources, _shuffles),
        random=_first(sources, lambda call: bool(_CHANCE.search(last_word(call))))
        or _first(sources, lambda call: bool(_PERHAPS.search(last_word(call)))),
    )


def _first(sources: tuple[Source, ...], wanted: Callable[[ast.Call], bool]) -> str:
    found = (source.place(call, called(call)) for source, call in _calls(sources) if wanted(call))
    return str(next(found, ""))


def _calls(sources: tuple[Source, ...]) -> Iterator[tuple[Source, ast.Call]]:
    return ((source, call) for source in sources for call in source.calls())


def _has_state(call: ast.Call) -> bool:
    word = last_word(call)
    return bool(_OPTIMIZERS.search(word)) or (word == "SGD" and bool(argument(call, "momentum")))


def _shuffles(call: ast.Call) -> bool:
    """Whether samples are put in an order that depends on a generator nobody gave."""
    if last_word(call) == "DataLoader":
        shuffled = literal(argument(call, "shuffle", 2)) is True
        return shuffled and argument(call, "generator") is None
    if last_word(call) in ("shuffle", "randperm", "permutation", "RandomSampler"):
        return not _SEEDED.search(ast.unparse(call))
    return False
