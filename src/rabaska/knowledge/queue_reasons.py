"""Why jobs wait, and whether they will ever start: facts in waiting.toml."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class QueueReason:
    """What a scheduler's reason means; `never` when the job cannot start as it is."""

    spelled: re.Pattern[str]
    meaning: str
    fix: str
    never: bool = False
    ordinary: bool = False  # it starts by itself, and nothing is to be done


@cache
def _reasons() -> tuple[QueueReason, ...]:
    text = Path(__file__).with_name("waiting.toml").read_text("utf-8")
    return tuple(
        QueueReason(
            re.compile(fact["spelled"]),
            fact["meaning"],
            fact["fix"],
            fact.get("never", False),
            fact.get("ordinary", False),
        )
        for fact in tomllib.loads(text)["reason"]
    )


def reason_for(reason: str) -> QueueReason | None:
    """What is known of `reason`; None where nobody knows it."""
    return next((entry for entry in _reasons() if entry.spelled.search(reason)), None)
