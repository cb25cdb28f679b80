"""The path an expression will become: what is written there, with `*` for what is not known."""

import ast
import re

from rabaska.scouting.source import Source, called, last_word

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
    return UNKNOWN


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
    return UNKNOWN if best is None else path_of(best[1], source, depth + 1)


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
