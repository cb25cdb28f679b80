"""The `{words}` in a command that stand for things known only on the node."""

import re
from collections.abc import Sequence

from rabaska.domain.projects import PLACEHOLDERS
from rabaska.node.job.command import placeholders
from rabaska.settings.lines import Path
from rabaska.settings.mistakes import Mistake, nearest


def mistakes_in(words: Sequence[str], path: Path, datasets: Sequence[str]) -> list[Mistake]:
    """What is wrong with the placeholders of `words`, which stand at `path` in the file."""
    known = [*PLACEHOLDERS, *(f"data.{dataset}" for dataset in datasets)]
    names = dict.fromkeys(placeholders(list(words)))
    return [
        _mistake(name, path, known)
        for name in names
        if name not in known or (name == "data" and not datasets)
    ]


def _mistake(name: str, path: Path, known: Sequence[str]) -> Mistake:
    if name == "data":
        advice = "add a [data.NAME] table with the `path` of its folder"
        return Mistake(path, "`{data}` without a dataset", advice)
    guess = re.sub(r"`(.*)`", r"`{\1}`", nearest(name, known))
    listed = ", ".join(f"`{{{each}}}`" for each in known)
    advice = f"{guess} known are {listed}; `{{{{` and `}}}}` are plain braces".strip()
    return Mistake(path, f"unknown placeholder `{{{name}}}`", advice)
