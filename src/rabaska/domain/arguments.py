"""The words of a program's command: changed by other words, and compared between runs."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_NUMBER = re.compile(r"-\.?\d")  # `-0.5` is a value
_SETTING = re.compile(r"([A-Za-z_+~][\w.@/+-]*)=(.*)", re.DOTALL)  # `lr=0.1`, as Hydra reads it


@dataclass(frozen=True)
class _Argument:
    """An option or a setting with its values, or one other word, whose name is ""."""

    name: str
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.words)


def with_arguments(command: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    """The command with `other` arguments: an option that it has gets the new value, others follow.

    The first two words of a command name its program, and are never replaced.
    """
    words = list(command)
    for argument in _arguments(other):
        place = _place(words, argument.name) if argument.name else None
        if place is None:
            words += argument.words
            continue
        new = argument.words
        if "=" in words[place] or "=" in new[0]:
            words[place : place + 1 + _follows(words, place, new)] = new
        else:
            values = min(_values(words[place + 1 :]), len(new) - 1)
            words[place : place + 1 + values] = new
    return tuple(words)


def without_arguments(command: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """The command without the options and settings of these names, and without their values.

    An option is `--lr` and a setting `lr=`. The first two words name the program, and stay.
    """
    first, rest = list(command[:2]), list(_arguments(command[2:]))
    kept = [argument for argument in rest if argument.name not in names]
    return (*first, *(word for argument in kept for word in argument.words))


def value_of(command: Sequence[str], name: str) -> str:
    """The value of an option `--lr` or a setting `lr=` in a command; "" where it has none."""
    for argument in _arguments(command[2:]):
        if argument.name == name:
            joined = argument.words[0].partition("=")[2]
            return joined or (argument.words[1] if len(argument.words) > 1 else "")
    return ""


def _follows(words: Sequence[str], place: int, new: Sequence[str]) -> int:
    """How many words after `--lr` are its value, where the new one is `--lr=0.1`."""
    return 0 if "=" in words[place] or "=" not in new[0] else min(1, _values(words[place + 1 :]))


def _place(words: Sequence[str], name: str) -> int | None:
    return next(
        (place for place, word in enumerate(words) if place > 0 and _name(word) == name), None
    )


def _name(word: str) -> str:
    if word.startswith("-") and len(word) > 1 and not _NUMBER.match(word):
        return word.partition("=")[0]
    setting = _SETTING.fullmatch(word)
    return f"{setting[1]}=" if setting else ""


def _values(words: Sequence[str]) -> int:
    """How many of them come before the next option."""
    count = 0
    for word in words:
        if _name(word):
            break
        count += 1
    return count


def _arguments(words: Sequence[str]) -> Iterator[_Argument]:
    place = 0
    while place < len(words):
        name, length = _name(words[place]), 1
        if name.startswith("-") and "=" not in words[place]:
            length += _values(words[place + 1 :])
        yield _Argument(name, tuple(words[place : place + length]))
        place += length


def changed_words(before: Sequence[str], after: Sequence[str]) -> tuple[str, str]:
    """The arguments that only the one has, and those that only the other has, as text."""
    old, new = list(_arguments(before)), list(_arguments(after))
    gone = [argument.text for argument in old if argument not in new]
    come = [argument.text for argument in new if argument not in old]
    return " ".join(gone), " ".join(come)


def what_differs(commands: Sequence[Sequence[str]]) -> list[str]:
    """For each command the arguments that not all of them have; all that is common is left out."""
    parted = [list(_arguments(command)) for command in commands]
    known = [arguments for arguments in parted if arguments]
    common = [argument for argument in (known or [[]])[0] if all(argument in one for one in known)]
    return [
        " ".join(argument.text for argument in arguments if argument not in common)
        for arguments in parted
    ]


def named_values(command: Sequence[str]) -> dict[str, str]:
    """The values of options and settings by name, without dashes: `{"lr": "0.1"}`."""
    found = {}
    for argument in _arguments(command):
        name = argument.name.lstrip("-").rstrip("=")
        inside = argument.words[0].partition("=")[2] if "=" in argument.words[0] else ""
        if name:
            found[name] = inside or " ".join(argument.words[1:])
    return found
