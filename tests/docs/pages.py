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
_FILE = re.compile(r"<!-- (the file|added to) (\S+) -->\n+$")
_START = re.compile(r"<!-- starts from (\S+) -->")
_LAB = "<!-- needs the lab -->"


@dataclass(frozen=True)
class Step:
    """Something a page asks its reader to do, and what the page says that prints."""

    command: str  # or the content of a file
    printed: tuple[str, ...] = ()
    language: str = "console"
    file: str = ""  # what is written, instead of run
    adds: bool = False  # to the end of the file


@dataclass(frozen=True)
class Part:
    """What a page asks its reader to do in one fresh copy of an example."""

    page: Path
    number: int
    example: Path
    needs_lab: bool
    steps: tuple[Step, ...]

    @property
    def name(self) -> str:
        return f"{name_of(self.page)} {self.number}" if self.number > 1 else name_of(self.page)

    @property
    def needs_torch(self) -> bool:
        return any("import torch" in step.command for step in self.steps)


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(found[1], found[2]) for found in _BLOCK.finditer(page.read_text("utf-8"))]


def parts(page: Path) -> list[Part]:
    """All that a test must do for a page, in order."""
    before, *pieces = _START.split(page.read_text("utf-8"))
    assert not steps(before), f"{name_of(page)} has commands but names no example to run them in"
    found = zip(pieces[::2], pieces[1::2], strict=True)
    made = (
        Part(page, number, REPOSITORY / example, _LAB in text, tuple(steps(text)))
        for number, (example, text) in enumerate(found, start=1)
    )
    return [part for part in made if part.steps]


def steps(text: str) -> list[Step]:
    found: list[Step] = []
    for block in _BLOCK.finditer(text):
        language, content = block[1], block[2]
        if written := _FILE.search(text[: block.start()]):
            found.append(Step(content, file=written[2], adds=written[1] == "added to"))
        elif language == "python":
            found.append(Step(content, language="python"))
        elif language == "console":
            found.extend(_console_steps(content))
    return found


def _console_steps(text: str) -> list[Step]:
    before, *parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
    assert not before, f"a console block begins with what is no command: {before}"
    return [_console_step(part.rstrip("\n").split("\n")) for part in parts]


def _console_step(lines: list[str]) -> Step:
    """A command and what it prints; a here-document goes on in lines that begin with `>`."""
    command, *printed = lines
    while re.search(r"<<\w", command) and printed and printed[0].startswith(">"):
        command += "\n" + printed.pop(0).removeprefix(">").removeprefix(" ")
    return Step(command, tuple(printed))


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
    # What follows two dashes is for other programs, and may be cut in the middle of a quotation.
    return [each.partition(" -- ")[0] for each in mentioned]


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
