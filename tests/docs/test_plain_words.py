"""What users read is in plain words: phrases that were replaced do not come back.

Checked are the strings of every room, without docstrings unless they are the help of a command,
and the pages.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "src" / "rabaska"
ROOMS = sorted(
    path.name.removesuffix(".py")
    for path in SOURCE.iterdir()
    if (path.is_dir() and path.name != "__pycache__") or path.name == "errors.py"
)
PAGES = (
    "docs/reference/cli.md",
    "docs/guides/adding-a-scheduler.md",
    "docs/guides/from-python.md",
    "docs/guides/before-the-queue.md",
    "docs/guides/environments.md",
    "docs/guides/exact-resume.md",
    "docs/guides/pages.md",
    "docs/guides/rehearsal.md",
    "docs/guides/secrets.md",
    "docs/guides/several-gpus-and-nodes.md",
    "docs/guides/shell-completion.md",
    "docs/guides/watching.md",
    "docs/guides/when-a-run-fails.md",
)

# Each with what to write instead.
REPLACED = {
    r"\bhow (a|the|your|its) runs? stands?\b": "a run's status",
    r"\bredone\b": "repeated",
    r"\bgo(es|ing)? on (with|from|as)\b": "continue, resume",
    r"\bnothing that no run needs\b": "nothing to clean",
    r"\bneeded by no run\b": "can be deleted",
    r"\bwhat is said of\b": "not contacted; using its profile",
    r"\b[Nn]obody (has|knows|had)\b": "unknown, not checked",
    r"\b[Mm]end(s|ed|ing)?\b": "repair",
    r"\blook(s|ed|ing)? (at|into|for)\b": "inspect, check, find",
    r"\b[Hh]old(s|ing)? .{1,30} against\b": "compare",
    r"\bcarr(y|ies|ied) (a|the) \w+": "send, run",
    r"\b[Bb]ring(s|ing)? .{1,20} home\b": "copy to this computer",
    r"\bwhole\b(?! (training|nodes?|number|chain|shard|ones))": "complete, valid",
    r"(?<!\$)\b1 (files|bytes|jobs|packs|runs|processes)\b": "1 file",
    r"(?<!--)\b(voyage|farewell|counsel|beside|portrait)\b": "run, retired, advice, next to",
    r"\bunasked\b": "not contacted",
    r"\bbefore the queue\b": "before submitting",
    r"\bshould you do it\b": "worth it?",
    r"\b(no|some|one) (queue|cluster) can do\b": "no queue can run",
    r"\bleft alone\b": "uninterrupted",
    r"\bis called so\b": "there is no",
    r"\bof yours\b": "you have",
    r"\b(does not|doesn't|whether \w+) pays?\b": "worth it",
    r"\bon the way\b": "during",
    r"\banew\b": "again",
    r"\b(where|what) .{1,20} lies\b": "is",
}
# Keys of `--json`, and old names of options, that scripts use.
KEPT = {"beside.json", "beside-code", "--mend", "mended", "unasked", "beside", "cannot be told"}


def strings_of(path: Path) -> Iterator[tuple[int, str]]:
    """Every string of a module with its line, docstrings only where they are a command's help."""
    tree = ast.parse(path.read_text("utf-8"))
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and not _is_command(node):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                skipped.add(first.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped.update(part for part in node.values if isinstance(part, ast.Constant))
            yield node.lineno, "".join(_part(part) for part in node.values)
        elif _is_string(node) and node not in skipped and node.value not in KEPT:
            yield node.lineno, node.value


def _is_string(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _part(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "{}"


def _is_command(node: ast.AST) -> bool:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any(re.search(r"\b(command|group)\(", ast.unparse(each)) for each in decorators)


def replaced_in(text: str) -> list[str]:
    plain = " ".join(text.split())
    return [
        f"{found[0]!r}: write {instead!r}"
        for pattern, instead in REPLACED.items()
        for found in re.finditer(pattern, plain)
    ]


@pytest.mark.parametrize("room", ROOMS)
def test_the_strings_of_a_room_are_in_plain_words(room):
    paths = sorted((SOURCE / room).rglob("*.py")) or [SOURCE / f"{room}.py"]

    assert [
        f"{path.relative_to(REPOSITORY)}:{line}: {problem}"
        for path in paths
        for line, text in strings_of(path)
        for problem in replaced_in(text)
    ] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_in_plain_words(page):
    lines = (REPOSITORY / page).read_text("utf-8").splitlines()

    assert [
        f"{page}:{number}: {problem}"
        for number, line in enumerate(lines, 1)
        for problem in replaced_in(line)
    ] == []


def test_the_rule_sees_what_it_should(tmp_path):
    module = tmp_path / "module.py"
    module.write_text(
        '"""Mended."""\n# mended\ndef f(x):\n    """Mended."""\n    return f"mended: {x}"\n'
        '@click.command()\ndef g():\n    """Mend it."""\n'
    )

    found = [problem for _, text in strings_of(module) for problem in replaced_in(text)]

    assert len(found) == 2
    assert replaced_in("wrote 1 files")
    assert not replaced_in("wrote 1 file")
