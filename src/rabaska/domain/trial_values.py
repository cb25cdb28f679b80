"""The values of trials: as words for a program, and as somebody types them."""

import re
from collections.abc import Sequence
from typing import Any

from rabaska.domain.search import SearchStatus, Trial
from rabaska.errors import NoSuchRun, WrongUse
from rabaska.node.search.trial_run import as_text


def trial_numbered(found: SearchStatus, number: int) -> Trial:
    for trial in found.trials:
        if trial.number == number:
            return trial
    count = len(found.trials)
    raise NoSuchRun(
        f"search {found.name} has no trial {number}",
        why=f"it has {count} so far" if count else "none has begun",
        hint="`rabaska search table` lists them",
    )


def arguments_of(found: SearchStatus, trial: Trial) -> tuple[str, ...]:
    """The words that give a trial's values to the program."""
    words: list[str] = []
    for name, value in trial.values.items():
        style, word = found.spelled.get(name, ("option", f"--{name}"))
        text = as_text(value)
        if style == "option":
            words += [word, text]
        elif style in ("joined", "override"):
            words.append(f"{word}={text}")
        elif style == "flag" and value:
            words.append(word)
    return tuple(words)


def variables_of(found: SearchStatus, trial: Trial) -> dict[str, str]:
    """The variables that give a trial's values to the program."""
    styles = {name: found.spelled.get(name, ("option", "")) for name in trial.values}
    return {
        styles[name][1]: as_text(value)
        for name, value in trial.values.items()
        if styles[name][0] == "environment"
    }


def file_option_of(found: SearchStatus, trial: Trial) -> str:
    """The option whose file gives a trial's values to the program; "" where none does."""
    styles = (found.spelled.get(name, ("option", "")) for name in trial.values)
    return next((word for style, word in styles if style == "file"), "")


def each_of(words: Sequence[str]) -> dict[str, list[Any]]:
    """`lr=0.1,0.01` and `seed=1..5` as lists of values."""
    found: dict[str, list[Any]] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name or not text:
            raise WrongUse(
                f"`--each {word}` names no values",
                hint="write `--each lr=0.1,0.01`, or `seed=1..5`",
            )
        span = re.fullmatch(r"(-?\d+)\.\.(-?\d+)", text)
        if span and int(span[1]) > int(span[2]):
            raise WrongUse(f"`--each {word}` is empty", hint="the smaller number comes first")
        values = (
            list(range(int(span[1]), int(span[2]) + 1))
            if span
            else [_value(one) for one in text.split(",")]
        )
        found[name.lstrip("-")] = values
    return found


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
