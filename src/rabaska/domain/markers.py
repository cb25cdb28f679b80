"""Environment markers (PEP 508), decided for the Python of another computer.

pip decides them for the Python it runs under, also where it fetches wheels for another one.
"""

import re
from collections.abc import Iterator, Mapping

_TOKEN = re.compile(r"\s*(\(|\)|'[^']*'|\"[^\"]*\"|===|[<>=!~]=|[<>]|not\s+in\b|[A-Za-z_][\w.]*)")
_VERSIONS = ("python_version", "python_full_version")


class UnknownMarker(Exception):
    """A marker that nobody here can decide."""


def of_python(version: str, machine: str) -> dict[str, str]:
    """What markers ask of a CPython on Linux, such as 3.11.2 on x86_64."""
    return {
        "python_version": ".".join(version.split(".")[:2]),
        "python_full_version": version,
        "platform_machine": machine,
        "sys_platform": "linux",
        "platform_system": "Linux",
        "os_name": "posix",
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
        "extra": "",
    }


def applicable(requirements: str, facts: Mapping[str, str]) -> str:
    """The lines that count where `facts` hold, without their markers."""
    kept = []
    for line in requirements.splitlines():
        found = re.fullmatch(r"([^#;]*?)\s+;\s+(.*?)((?:\s+--\w.*)?)", line)
        if found is None:
            kept.append(line)
            continue
        try:
            if holds(found[2], facts):
                kept.append(found[1] + found[3])
        except UnknownMarker:
            kept.append(line)
    return "\n".join(kept) + "\n"


def holds(marker: str, facts: Mapping[str, str]) -> bool:
    tokens = _tokens(marker)
    value, rest = _either(tokens, facts)
    if rest:
        raise UnknownMarker(marker)
    return value


def _tokens(marker: str) -> list[str]:
    tokens, place = [], 0
    while marker[place:].strip():
        found = _TOKEN.match(marker, place)
        if found is None:
            raise UnknownMarker(marker)
        tokens.append(re.sub(r"\s+", " ", found[1]))
        place = found.end()
    return tokens


def _either(tokens: list[str], facts: Mapping[str, str]) -> tuple[bool, list[str]]:
    value, rest = _both(tokens, facts)
    while rest[:1] == ["or"]:
        other, rest = _both(rest[1:], facts)
        value = value or other
    return value, rest


def _both(tokens: list[str], facts: Mapping[str, str]) -> tuple[bool, list[str]]:
    value, rest = _one(tokens, facts)
    while rest[:1] == ["and"]:
        other, rest = _one(rest[1:], facts)
        value = value and other
    return value, rest


def _one(tokens: list[str], facts: Mapping[str, str]) -> tuple[bool, list[str]]:
    if tokens[:1] == ["("]:
        value, rest = _either(tokens[1:], facts)
        if rest[:1] != [")"]:
            raise UnknownMarker(" ".join(tokens))
        return value, rest[1:]
    if len(tokens) < 3:
        raise UnknownMarker(" ".join(tokens))
    left, sign, right = tokens[:3]
    by_version = left in _VERSIONS or right in _VERSIONS
    return _compare(_value(left, facts), sign, _value(right, facts), by_version), tokens[3:]


def _value(word: str, facts: Mapping[str, str]) -> str:
    if word[0] in "'\"":
        return word[1:-1]
    if word not in facts:
        raise UnknownMarker(word)
    return facts[word]


def _compare(left: str, sign: str, right: str, by_version: bool) -> bool:
    if sign in ("in", "not in"):
        words = [part.strip() for part in right.split(",")] if by_version else right
        return (left in words) == (sign == "in")
    if not by_version:
        if sign not in ("==", "!="):
            raise UnknownMarker(sign)
        return (left == right) == (sign == "==")
    if right.endswith(".*"):
        if sign not in ("==", "!="):
            raise UnknownMarker(sign)
        start = right.removesuffix("*")
        return f"{left}.".startswith(start) == (sign == "==")
    one, other = _padded(left, right)
    if sign == "~=":
        kept = len(right.split(".")) - 1
        return one >= other and one[:kept] == other[:kept]
    signs = {"==": one == other, "===": left == right, "!=": one != other, "<": one < other}
    signs.update({"<=": one <= other, ">": one > other, ">=": one >= other})
    if sign not in signs:
        raise UnknownMarker(sign)
    return signs[sign]


def _padded(*versions: str) -> Iterator[tuple[int, ...]]:
    """The numbers of each, all of one length: 3.11 is 3.11.0."""
    numbers = [[int(found) for found in re.findall(r"\d+", version)[:4]] for version in versions]
    most = max(map(len, numbers))
    return iter([tuple(each + [0] * (most - len(each))) for each in numbers])
