"""Python source, parsed: its calls and arguments, and the paths that expressions stand for."""

import ast
import io
import os
import re
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

LARGEST = 2 * 10**6  # bytes; what is larger was not written by hand
_DEEPEST_TREE = 200  # levels; functions that call themselves for each must not run out of stack


@dataclass(frozen=True)
class SourceLine:
    """Where something was found, as a reader would look it up."""

    file: str  # relative to the project
    line: int
    shown: str = ""

    def __str__(self) -> str:
        where = f"{self.file}, line {self.line}"
        return f"{where}: {self.shown}" if self.shown else where


@dataclass(frozen=True, eq=False)
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


def as_module(source: Source) -> Source:
    """What is left of a file when another imports it: not its `if __name__ == "__main__"`."""
    body = [node for node in source.tree.body if not is_main_guard(node)]
    if len(body) == len(source.tree.body):
        return source
    tree = ast.Module(body=body, type_ignores=[])
    return Source(source.name, tree, source.problem, _nodes(tree))


def is_main_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


def is_file(path: Path) -> bool:
    """Whether there is such a file; False too for a word that is no path, or that leads nowhere."""
    return os.path.isfile(path)  # noqa: PTH113  (that of pathlib raises for a long name)


def read(path: Path, name: str) -> Source:
    """The source in `path`; never an error."""
    try:
        if path.stat().st_size > LARGEST:
            return _unread(name, "it is too large for a script")
        tree = _parsed(_text(path.read_bytes()))
        nodes = _nodes(tree)
    except SyntaxError as problem:
        line = f", line {problem.lineno}" if problem.lineno else ""
        return _unread(name, f"Python 3 cannot parse it{line}: {problem.msg}")
    except (OSError, ValueError, RecursionError, MemoryError) as problem:
        return _unread(name, f"it cannot be read: {problem}")
    return Source(name, tree, nodes=nodes)


def _nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """All nodes, those further out first; ValueError where they are nested too deep."""
    found: list[ast.AST] = []
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST_TREE):
        found += level
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return tuple(found)
    raise ValueError("its expressions are nested too deep")


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


UNKNOWN = "*"
_JOINS = {"os.path.join", "path.join", "join", "osp.join", "op.join"}
_WRAPPERS = {"Path", "str", "PurePath", "abspath", "expanduser", "resolve", "open", "fspath"}
_DEEPEST = 8  # variables that lead to variables


def path_of(node: ast.AST | None, source: Source, depth: int = 0) -> str:
    """`checkpoints/epoch-*.pt` for os.path.join("checkpoints", f"epoch-{n}.pt"); "" for nothing."""
    if node is None or depth > _DEEPEST:
        return UNKNOWN
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else UNKNOWN
    if isinstance(node, ast.JoinedStr):
        parts = (path_of(part, source, depth + 1) for part in node.values)
        return _tidy("".join(parts))
    if isinstance(node, ast.BinOp):
        return _operation(node, source, depth)
    if isinstance(node, ast.Call):
        return _call(node, source, depth)
    if isinstance(node, ast.Name):
        return _variable(node, source, depth)
    if isinstance(node, ast.Attribute) and called(node.value) == "self":
        return _of_object(node, source, depth)
    return UNKNOWN


def _of_object(node: ast.Attribute, source: Source, depth: int) -> str:
    """What `self.path` was made of, if it was assigned in one place only."""
    made = [
        other.value
        for other in source.nodes
        if isinstance(other, ast.Assign)
        and any(called(target) == f"self.{node.attr}" for target in other.targets)
    ]
    return path_of(made[0], source, depth + 1) if len(made) == 1 else UNKNOWN


def _operation(node: ast.BinOp, source: Source, depth: int) -> str:
    left = path_of(node.left, source, depth + 1)
    if isinstance(node.op, ast.Mod):
        return _tidy(re.sub(r"%[-+ #0]*\d*(?:\.\d+)?[a-z]|%\(\w+\)\d*[a-z]", UNKNOWN, left))
    right = path_of(node.right, source, depth + 1)
    if isinstance(node.op, ast.Div):
        return _joined([left, right])
    return _tidy(left + right) if isinstance(node.op, ast.Add) else UNKNOWN


def _call(node: ast.Call, source: Source, depth: int) -> str:
    name = called(node)
    parts = [path_of(argument, source, depth + 1) for argument in node.args]
    if name in _JOINS or (last_word(node) in ("joinpath", "Path") and len(parts) > 1):
        return _joined(parts)
    if last_word(node) == "format" and isinstance(node.func, ast.Attribute):
        return _tidy(re.sub(r"\{[^}]*\}", UNKNOWN, path_of(node.func.value, source, depth + 1)))
    if name in ("os.environ.get", "os.getenv") and len(parts) > 1:
        return parts[1]
    if last_word(node) in _WRAPPERS and parts:
        return parts[0]
    return UNKNOWN


def _variable(node: ast.Name, source: Source, depth: int) -> str:
    """What was last assigned to the name above this line, or its default as a parameter."""
    best: tuple[int, ast.expr] | None = None
    for other in source.nodes:
        value = _assigned(other, node.id)
        line = getattr(other, "lineno", 0)
        if value is not None and line <= node.lineno and (best is None or line > best[0]):
            best = (line, value)
    if best is None:
        given = _defaults_of(node.id, source)
        return path_of(given[0], source, depth + 1) if len(given) == 1 else UNKNOWN
    return path_of(best[1], source, depth + 1)


def _defaults_of(name: str, source: Source) -> list[ast.expr]:
    """What functions further down have for a parameter of this name, to pass it on."""
    functions = (node for node in source.nodes if isinstance(node, ast.FunctionDef))
    defaults = (parameters(function).get(name) for function in functions)
    return [default for default in defaults if default is not None]


def _assigned(node: ast.AST, name: str) -> ast.expr | None:
    if isinstance(node, ast.Assign):
        assigns = any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
        return node.value if assigns else None
    if isinstance(node, ast.AnnAssign):
        assigns = isinstance(node.target, ast.Name) and node.target.id == name
        return node.value if assigns else None
    if isinstance(node, ast.FunctionDef):
        return parameters(node).get(name)
    return None


def parameters(function: ast.FunctionDef) -> dict[str, ast.expr | None]:
    """The parameters of a function with their defaults."""
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    defaults: dict[str, ast.expr | None] = {parameter.arg: None for parameter in plain}
    for parameter, default in zip(reversed(plain), reversed(given.defaults), strict=False):
        defaults[parameter.arg] = default
    for parameter, value in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        defaults[parameter.arg] = value
    return defaults


def _joined(parts: list[str]) -> str:
    return _tidy("/".join(part.rstrip("/") for part in parts if part))


def _tidy(path: str) -> str:
    return re.sub(r"\*+", UNKNOWN, path)


def fixed_folder(path: str) -> str:
    """The folders at the front of `path` that are known: `a/b` for `a/b/epoch-*.pt`."""
    fixed = []
    for part in path.removeprefix("./").split("/")[:-1]:
        if UNKNOWN in part:
            break
        fixed.append(part)
    return "/".join(fixed)


def is_inside(path: str) -> bool:
    """Whether a path written in a script stays in the folder the script is started in."""
    first = path.removeprefix("./").split("/")[0]
    return bool(first) and not path.startswith(("/", "~", UNKNOWN)) and first not in ("..", ".")
