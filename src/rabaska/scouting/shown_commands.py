"""The commands that a project's README, shell scripts and docstrings show for starting it."""

import ast
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rabaska.scouting.source import Source, SourceLine, is_file

TORCHRUN, MPI = "torchrun", "mpi"
_TEXTS = ("README*", "*.md", "*.sh", "scripts/*.sh", "docs/*.md")
_LARGEST = 300_000  # characters
_MOST = 40  # files
_STARTS = re.compile(
    r"(?:^|[\s`\"'(>$;&])(?P<words>(?:python[\d.]*|torchrun|mpiexec|mpirun|accelerate\s+launch)\s"
    r"[^`|;&><#\n]*)"
)
_LAUNCHERS = {
    "torchrun": TORCHRUN,
    "torch.distributed.run": TORCHRUN,
    "torch.distributed.launch": TORCHRUN,
    "mpiexec": MPI,
    "mpirun": MPI,
}
_UNSAID = re.compile(r"[<>$\[\]{}…]|\.\.\.|path/to|your|^$", re.IGNORECASE)


@dataclass(frozen=True)
class ShownCommand:
    """How the project's own text starts one of its scripts."""

    script: str  # `train.py`, or `package/train.py` for `python -m package.train`
    words: tuple[str, ...]  # that are given to it
    place: SourceLine
    launcher: str = ""  # torchrun or mpi
    module: bool = False  # started by `python -m`


def in_texts(project: Path) -> tuple[ShownCommand, ...]:
    """Those in the project's own texts, the README's first."""
    paths: dict[Path, None] = {}
    for pattern in _TEXTS:
        paths |= dict.fromkeys(path for path in sorted(project.glob(pattern)) if is_file(path))
    found: list[ShownCommand] = []
    for path in list(paths)[:_MOST]:
        name = path.relative_to(project).as_posix()
        found += _in_text(_read(path), name)
    return tuple(found)


def in_docstrings(source: Source) -> tuple[ShownCommand, ...]:
    """Those in what a script says of itself."""
    found: list[ShownCommand] = []
    for node in source.nodes:
        if isinstance(node, (ast.Module, ast.FunctionDef)):
            said = ast.get_docstring(node, clean=False)
            first = getattr(node.body[0], "lineno", 1) if node.body else 1
            found += _in_text(said or "", source.name, first)
    return tuple(found)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")[:_LARGEST]
    except OSError:
        return ""


def _in_text(content: str, name: str, first: int = 1) -> Iterator[ShownCommand]:
    lines = content.splitlines()
    for number, line in _lines(content):
        for match in _STARTS.finditer(line):
            shown = _command(match["words"], SourceLine(name, first + number))
            if shown:
                leaf = shown.place.shown.rpartition("/")[2].removesuffix(".py")
                at = next((n for n in range(number, len(lines)) if leaf in lines[n]), number)
                yield replace(shown, place=replace(shown.place, line=first + at))


def _lines(content: str) -> Iterator[tuple[int, str]]:
    """Lines with the number of the first, joined where a backslash continues them."""
    begun, whole = 0, ""
    for number, line in enumerate(content.splitlines()):
        begun = number if not whole else begun
        joined = re.sub(r"\\+\s*$", "", line)
        whole = f"{whole} {joined}".strip() if whole else joined
        if joined == line:
            yield begun, whole
            whole = ""
    if whole:
        yield begun, whole


def _command(line: str, place: SourceLine) -> ShownCommand | None:
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    launcher, module = "", False
    for number, word in enumerate(words):
        launcher = launcher or _LAUNCHERS.get(word, "")
        is_module = number > 0 and words[number - 1] == "-m" and word not in _LAUNCHERS
        if is_module and not word.endswith(".py") and re.fullmatch(r"[A-Za-z_][\w.]*", word):
            script, module = word.replace(".", "/") + ".py", True
        elif word.endswith(".py") and not word.startswith("-"):
            script = word.removeprefix("./")
        else:
            continue
        shown = SourceLine(place.file, place.line, script)
        return ShownCommand(script, tuple(words[number + 1 :]), shown, launcher, module)
    return None


def of_script(shown: Sequence[ShownCommand], name: str) -> tuple[ShownCommand, ...]:
    """Those that start the script `name`; a README may leave out the folder it lies in."""
    package = name.replace("__main__.py", "").rstrip("/") + ".py"
    exact = [each for each in shown if each.script in (name, package)]
    alike = [each for each in shown if "/" not in each.script and name.endswith(f"/{each.script}")]
    return tuple(exact or alike)


def is_said(value: str) -> bool:
    """Whether a shown value is one, and not a word that stands for one: `<folder>`."""
    return not _UNSAID.search(value)
