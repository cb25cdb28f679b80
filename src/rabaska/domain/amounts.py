"""Durations, sizes and counts: parsed from what people write, printed as people read them."""

import re
from datetime import timedelta

_UNITS_OF_TIME = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_UNITS_OF_SIZE = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
}
_TIME_WORDS = {
    "sec": "s",
    "second": "s",
    "min": "m",
    "minute": "m",
    "hour": "h",
    "hr": "h",
    "day": "d",
    "week": "w",
}


def duration(text: str) -> timedelta:
    """`90s`, `1h30m`, `2 days`, `12:00:00`, `1-00:00:00`; ValueError for anything else."""
    text = text.strip().lower()
    clock = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d\d)(?::(\d\d))?", text)
    if clock:
        days, hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        text = f"{days}d {hours}h {minutes}m {seconds}s"
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([a-z]+)", text)
    rest = re.sub(r"(\d+(?:\.\d+)?)\s*([a-z]+)[\s,]*", "", text)
    if not parts or rest:
        raise ValueError(f"{text!r} is not a duration; write 90s, 30m, 3h, 1h30m, 2d or 12:00:00")
    try:
        return timedelta(seconds=sum(float(number) * _seconds(unit) for number, unit in parts))
    except OverflowError:
        raise ValueError("no job lasts that long") from None


def _seconds(unit: str) -> int:
    singular = unit.removesuffix("s") or unit
    letter = _TIME_WORDS.get(singular, unit)
    if letter not in _UNITS_OF_TIME:
        raise ValueError(f"{unit!r} is not a unit of time; use s, m, h, d or w")
    return _UNITS_OF_TIME[letter]


def size(text: str) -> int:
    """Bytes in `64 GB`, `500M`, `2 GiB` or `1024`; ValueError for anything else."""
    written = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?", text.strip().lower())
    if not written or written[2] == "i":
        raise ValueError(f"{text!r} is not a size; write 500 MB, 64 GB or 2 TiB")
    try:
        return int(float(written[1]) * _UNITS_OF_SIZE[written[2]])
    except OverflowError:
        raise ValueError("no computer has that much") from None


def say_duration(span: timedelta) -> str:
    """`47 s`, `12 min`, `3 h 05 min`, `2 d 4 h`: two units at the most."""
    seconds = round(span.total_seconds())
    if seconds < 0:
        return f"-{say_duration(-span)}"
    if seconds < 120:
        return f"{seconds} s"
    minutes = seconds // 60
    if minutes < 120:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def write_duration(span: timedelta) -> str:
    """`1d12h`, `20m`: as people write it in rabaska.toml."""
    seconds = round(span.total_seconds())
    amounts = ((seconds // 86400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "m"))
    units = (*amounts, (seconds % 60, "s"))
    return "".join(f"{amount}{unit}" for amount, unit in units if amount) or "0s"


def say_seconds(seconds: float) -> str:
    """Short times as short times are read, `0.034 s`; longer ones like any duration."""
    return f"{seconds:.2g} s" if seconds < 10 else say_duration(timedelta(seconds=seconds))


def say_size(count: int) -> str:
    """`1 byte`, `812 bytes`, `4.2 MB`, `64 GB`, in decimal units as sites state their quotas."""
    if count < 1000:
        return say_count(count, "byte")
    value = float(count)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        if value < 999.5 or unit == "TB":
            return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"
    raise AssertionError("unreachable")


def say_count(count: int, noun: str, plural: str = "") -> str:
    """`1 file`, `2 files`, `1,166 files`; `plural` where it is not the noun and an s."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def write_memory(size: int) -> str:
    """`64000 MB`, `65536 MiB`: as it is written in a profile, in units that lose nothing."""
    return f"{size // 10**6} MB" if size % 10**6 == 0 else f"{size // 2**20} MiB"
