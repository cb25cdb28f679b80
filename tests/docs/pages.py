"""Reads our documents: their code blocks, the commands in them, their links."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted(
    [
        *REPOSITORY.glob("*.md"),
        *REPOSITORY.glob("docs/**/*.md"),
        *REPOSITORY.glob("examples/*/*.md"),
    ]
)
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_START = re.compile(r"<!-- starts from (\S+) -->")


@dataclass(frozen=True)
class Step:
    """Something a page asks its reader to run, and what the page says it prints."""

    command: str
    printed: tuple[str, ...] = ()
    language: str = "console"


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(found[1], found[2]) for found in _BLOCK.finditer(page.read_text("utf-8"))]


def starting_folder(page: Path) -> Path | None:
    """The example that the commands of this page are run in, or None."""
    found = _START.search(page.read_text("utf-8"))
    return REPOSITORY / found[1] if found else None


def steps(page: Path) -> list[Step]:
    """All that a test must run, in order."""
    found: list[Step] = []
    for language, text in blocks(page):
        if language == "python":
            found.append(Step(text, language="python"))
        elif language == "console":
            found.extend(_console_steps(text))
    return found


def _console_steps(text: str) -> list[Step]:
    before, *parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
    assert not before, f"a console block begins with what is no command: {before}"
    pairs = [part.rstrip("\n").split("\n") for part in parts]
    return [Step(command, tuple(printed)) for command, *printed in pairs]


def rabaska_commands(page: Path) -> list[str]:
    """Each mention of a command of ours, in blocks and in the running text."""
    prose = _BLOCK.sub("", page.read_text("utf-8"))
    mentioned = re.findall(r"`(rabaska [^`]+)`", prose)
    for language, text in blocks(page):
        if language in ("console", "sh"):
            shell = [line.removeprefix("$ ") for line in text.split("\n")]
            mentioned += [
                m for line in shell for m in re.findall(r"(?:^|<\()(rabaska [^;|)>]+)", line)
            ]
    return mentioned


def words(command: str) -> list[str]:
    return shlex.split(command, comments=True)


def links(page: Path) -> list[str]:
    """Where the page points to inside this repository."""
    prose = _BLOCK.sub("", page.read_text("utf-8"))
    return [to for to in re.findall(r"\]\(([^)]+)\)", prose) if "://" not in to]


def anchors(page: Path) -> set[str]:
    """The names that headings can be linked by, as GitHub makes them."""
    prose = _BLOCK.sub("", page.read_text("utf-8"))
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}
