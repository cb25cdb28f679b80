"""What known error messages mean and what to do about them: facts in failures.toml."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

_LAST_LINES = 1000  # the cause stands near the end, and a log can be very long
_LONGEST_LINE = 2000

# The stages of facts that apply to a text: a job's log speaks of its environment and data too.
_STAGES_OF = {
    "run": {"run", "env", "gpu", "distributed", "data", "chain"},
    "submit": {"submit", "chain"},
    "connect": {"ssh", "transfer", "tunnel"},
}

_NEAR = 0.4  # about one word that six facts have, or two that many have

# Words of every sentence: that two texts share them says nothing.
_STOP_WORDS = frozenset(
    {
        "this",
        "that",
        "with",
        "what",
        "your",
        "from",
        "have",
        "when",
        "were",
        "been",
        "more",
        "than",
        "they",
        "only",
        "does",
        "will",
        "which",
        "error",
        "there",
        "other",
        "cluster",
        "rabaska",
    }
)

MODULE_MISSING = "py-module-missing"
_MODULE = re.compile(r"No module named '?([\w.]+)")

_OWN_ERROR = "The program stopped with an error of its own."
_OWN_FIX = "The lines above it in the log (`rabaska logs`) show where it happened."


@dataclass(frozen=True)
class KnownFailure:
    """A failure that was recognised, with the line that gave it away."""

    id: str
    stage: str
    meaning: str
    fix: str
    line: str = ""
    ours: str = ""  # what rabaska itself does about it
    module: str = ""  # that could not be imported


@dataclass(frozen=True)
class Fact:
    id: str
    stage: str
    match: re.Pattern[str]
    meaning: str
    fix: str
    schedulers: frozenset[str] = frozenset()
    vague: bool = False
    ours: str = ""


@cache
def facts() -> tuple[Fact, ...]:
    text = (resources.files(__package__) / "failures.toml").read_text("utf-8")
    return tuple(
        Fact(
            id=entry["id"],
            stage=entry["stage"],
            match=re.compile(entry["match"], re.IGNORECASE),
            meaning=entry["meaning"],
            fix=entry["fix"],
            schedulers=frozenset(entry.get("schedulers", ())),
            vague=entry.get("vague", False),
            ours=entry.get("ours", ""),
        )
        for entry in tomllib.loads(text)["failure"]
    )


def explain(
    text: str, *, stage: str | None = None, scheduler: str | None = None, cluster: str = "CLUSTER"
) -> tuple[KnownFailure, ...]:
    """The known failures that `text` speaks of on a cluster, the likeliest cause first.

    What has few causes goes before what has many, and what was said last before what was said
    first. A Python traceback that nobody foresaw is quoted by its last line.
    """
    lines = _lines(text)
    ranked = []
    for fact in facts():
        place = _last_place(fact, lines) if _applies(fact, stage, scheduler) else -1
        if place >= 0:
            failure = _failure(fact, lines[place])
            ranked.append((fact.vague, -place, failure))
    ranked.sort(key=lambda entry: entry[:2])
    known = tuple(
        replace(failure, fix=failure.fix.replace("CLUSTER", cluster)) for _, _, failure in ranked
    )
    return known or (_own_error(lines) if stage in (None, "run") else ())


def nearest(text: str, *, most: int = 3) -> tuple[KnownFailure, ...]:
    """The facts that share the most telling words with a text that none of them explains."""
    text_words, rarity = _words(text), _rarity()
    scores = {
        fact: sum(rarity[word] for word in text_words & words)
        for fact, words in _vocabulary().items()
    }
    close = sorted(scores, key=lambda fact: -scores[fact])
    return tuple(_failure(fact) for fact in close[:most] if scores[fact] >= _NEAR)


@cache
def _vocabulary() -> dict[Fact, frozenset[str]]:
    return {
        fact: _words(f"{fact.id} {fact.match.pattern} {fact.meaning} {fact.fix}")
        for fact in facts()
    }


@cache
def _rarity() -> dict[str, float]:
    """How much a word tells: one when a single fact has it, less the more have it."""
    counts = Counter(word for words in _vocabulary().values() for word in words)
    return {word: count**-0.5 for word, count in counts.items()}


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z]{4,}|gpu|ssh|pip|tar", text.lower())) - _STOP_WORDS


def _failure(fact: Fact, line: str = "") -> KnownFailure:
    known = KnownFailure(fact.id, fact.stage, fact.meaning, fact.fix, line, fact.ours)
    found = _MODULE.search(line) if fact.id == MODULE_MISSING else None
    if found is None:
        return known
    from rabaska.knowledge.packages import package_for  # a long table

    words = {"a package": f"`{found[1]}`", "it to": f"{package_for(found[1])} to"}
    meaning, fix = fact.meaning, fact.fix
    for general, special in words.items():
        meaning, fix = meaning.replace(general, special), fix.replace(general, special)
    return replace(known, meaning=meaning, fix=fix, module=found[1])


def _applies(fact: Fact, stage: str | None, scheduler: str | None) -> bool:
    fits = stage is None or fact.stage in _STAGES_OF.get(stage, {stage})
    return fits and (not scheduler or not fact.schedulers or scheduler in fact.schedulers)


def _lines(text: str) -> list[str]:
    """The last lines that are not blank; a single empty one when all are."""
    lines = [line.strip() for line in re.split(r"[\r\n]+", text)]
    return [_clipped(line) for line in lines if line][-_LAST_LINES:] or [""]


def _clipped(line: str) -> str:
    if len(line) <= _LONGEST_LINE:
        return line
    half = _LONGEST_LINE // 2
    return f"{line[:half]} … {line[-half:]}"


def _last_place(fact: Fact, lines: list[str]) -> int:
    places: Iterable[int] = range(len(lines) - 1, -1, -1)
    return next((place for place in places if fact.match.search(lines[place])), -1)


def _own_error(lines: list[str]) -> tuple[KnownFailure, ...]:
    # It may stand behind what the program printed without an end of line.
    if not any("Traceback (most recent call last)" in line for line in lines):
        return ()
    errors = [line for line in lines if re.match(r"[A-Za-z_][\w.]*(Error|Exception|Exit)\b", line)]
    if not errors:
        return ()
    return (KnownFailure("python-error", "run", _OWN_ERROR, _OWN_FIX, errors[-1]),)
