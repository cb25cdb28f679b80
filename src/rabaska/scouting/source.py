"""One Python file, read as text and as a tree, whatever state it is in."""

import ast
import io
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

LARGEST = 2 * 10**6  # bytes; what is larger was not written by hand


@dataclass(frozen=True)
class SourceLine:
    """Where something was found, as a reader would look it up."""

    file: str  # relative to the project
    line: int
    shown: str = ""

    def __str__(self) -> str:
        where = f"{self.file}, line {self.line}"
        return f"{where}: {self.shown}" if self.shown else where


@dataclass(frozen=True)
class Source:
    """A file and its tree; the tree is empty, and `problem` says why, when it cannot be read."""

    name: str  # relative to the project, with slashes
    tree: ast.Module
    problem: str = ""
    nodes: tuple[ast.AST, ...] = field(default=(), repr=False)

    def place(self, node: ast.AST, shown: str = "") -> SourceLine:
        return SourceLine(self.name, getattr(node, "lineno", 1), shown)

    def calls(self) -> Iterator[ast.Call]:
        return (node for node in self.nodes if isinstance(node, ast.Call))


def read(path: Path, name: str) -> Source:
    """The source in `path`; never an error."""
    try:
        if path.stat().st_size > LARGEST:
            return _unread(name, "it is too large for a script")
        tree = _parsed(_text(path.read_bytes()))
    except SyntaxError as problem:
        line = f", line {problem.lineno}" if problem.lineno else ""
        return _unread(name, f"Python 3 cannot parse it{line}: {problem.msg}")
    except (OSError, ValueError, RecursionError, MemoryError) as problem:
        return _unread(name, f"it cannot be read: {problem}")
    return Source(name, tree, nodes=tuple(ast.walk(tree)))


def _unread(name: str, why: str) -> Source:
    return Source(name, ast.Module(body=[], type_ignores=[]), why)


def _text(content: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return content.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        # Latin-1 decodes everything; only names and short strings are looked at anyway.
        return content.decode("latin-1")


def _parsed(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old scripts are full of "\d" outside raw strings
        return ast.parse(text)


def called(node: ast.AST) -> str:
    """The dotted name of what is called or referred to: `torch.save`, `parser.add_argument`."""
    if isinstance(node, ast.Call):
        return called(node.func)
    if isinstance(node, ast.Attribute):
        before = called(node.value)
        return f"{before}.{node.attr}" if before else f".{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def last_word(node: ast.AST) -> str:
    return called(node).rpartition(".")[2]


def argument(call: ast.Call, keyword: str, position: int | None = None) -> ast.expr | None:
    """The argument given by `keyword`, or else the one at `position`."""
    for given in call.keywords:
        if given.arg == keyword:
            return given.value
    if position is None or position >= len(call.args):
        return None
    return call.args[position]


def literal(node: ast.AST | None) -> object:
    """The constant a node stands for, or None."""
    if node is None:
        return None
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def text(node: ast.AST | None) -> str:
    value = literal(node)
    return value if isinstance(value, str) else ""
