"""What qsub and msub read: options of the command line and #PBS lines of the script."""

import getopt
import os
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

LETTERS = "A:N:l:q:m:M:r:S:j:o:e:W:I"


class Refused(Exception):
    """The words on stderr and the exit code."""

    def __init__(self, words: str, code: int) -> None:
        super().__init__(words)
        self.code = code


@dataclass
class Asked:
    script: str
    options: dict[str, str] = field(default_factory=dict)
    resources: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.options.get("-N", os.path.basename(self.script))

    @property
    def after(self) -> list[str]:
        """The ids in `-W depend=afterany:1:2`."""
        found = re.match(r"depend=after\w+:(.*)", self.options.get("-W", ""))
        return found[1].split(":") if found else []

    @property
    def walltime(self) -> float:
        return seconds(self.resources.get("walltime", "24:00:00"))

    def output(self, number: int) -> str:
        path = self.options.get("-o", "")
        return f"{path}{self.name}.o{number}" if path.endswith("/") else path


def read(words: list[str], missing: str) -> Asked:
    """Everything asked for; the command line is stronger than the script."""
    try:
        given, rest = getopt.getopt(words, LETTERS)
    except getopt.GetoptError as problem:
        raise Refused(f"usage: {problem}", 2) from problem
    script = rest[0] if len(rest) == 1 else ""
    if not Path(script).is_file():
        raise Refused(missing.format(script=script), 1)
    asked = Asked(script)
    for line in directives(Path(script).read_text()):
        for option, value in [*getopt.getopt(line, LETTERS)[0]]:
            _take(asked, option, value)
    for option, value in given:
        _take(asked, option, value)
    return asked


def directives(script: str) -> list[list[str]]:
    """The words of each #PBS line before the first command."""
    found = []
    for line in script.splitlines():
        if line.startswith("#PBS "):
            found.append(shlex.split(line[5:]))
        elif line.strip() and not line.startswith("#"):
            break
    return found


def _take(asked: Asked, option: str, value: str) -> None:
    if option != "-l":
        asked.options[option] = value
        return
    for part in value.split(","):
        name, _, amount = part.partition("=")
        asked.resources[name] = amount


def seconds(clock: str) -> float:
    parts = [int(part) for part in clock.split(":")]
    return sum(part * 60**place for place, part in enumerate(reversed(parts)))
