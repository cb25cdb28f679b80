"""What stands around a piece of code: loops, and conditions that make it optional."""

import ast
import re
from collections.abc import Sequence

from rabaska.scouting.source import Source, called, last_word

_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)

_OPTIONS = re.compile(r"args|opts?|options|cfg|config|conf|FLAGS|hparams|params|self(\.\w+)?", re.I)
_SWITCHES = re.compile(
    r"show|plot|debug|^vis|visual|display|interact|download|pretrain|wandb|track|view|gui|window"
    r"|headless|render|preview|screen|draw|verbose|^argv$",
    re.I,
)
_SEARCHES = {
    "startswith",
    "endswith",
    "match",
    "search",
    "replace",
    "removeprefix",
    "split",
    "find",
}
_DEEPEST = 4  # functions that call functions
_EXISTENCE_CHECKS = {"exists", "isfile", "isdir", "is_file", "is_dir", "isatty"}


class Nesting:
    """Knows the parents of every node of one source, and who calls its functions."""

    def __init__(self, source: Source, sources: Sequence[Source] = ()) -> None:
        self._parents = {
            id(child): node
            for module in (source, *sources)
            for node in module.nodes
            for child in ast.iter_child_nodes(node)
        }
        self._calls: dict[str, list[ast.Call]] = {}  # by the last word of what is called
        for module in (*sources, source):
            for call in module.calls():
                self._calls.setdefault(last_word(call), []).append(call)
        self._choices: dict[tuple[int, int], bool] = {}

    def is_optional(self, node: ast.AST, depth: int = 0) -> bool:
        """Whether it is done only if an option says so, or if something is not there yet."""
        child = node
        for parent in self._around(node):
            if isinstance(parent, ast.If | ast.IfExp) and _is_a_choice(parent.test):
                return True
            if isinstance(parent, ast.BoolOp) and any(map(_is_a_choice, parent.values)):
                return True  # `args.show and plt.show()`
            if _leaves_before(parent, child):
                return True
            if isinstance(parent, ast.FunctionDef) and depth < _DEEPEST:
                return self._only_by_choice(parent, depth)
            child = parent
        return False

    def _only_by_choice(self, function: ast.FunctionDef, depth: int) -> bool:
        """Whether all that call a function do so by choice; others may call it from outside."""
        asked = (id(function), depth)
        if asked not in self._choices:
            calls = self._calls.get(function.name, [])
            chosen = bool(calls) and all(self.is_optional(call, depth + 1) for call in calls)
            self._choices[asked] = chosen
        return self._choices[asked]

    def is_compared(self, node: ast.AST) -> bool:
        """Whether a text is only looked for: in a comparison, or at the beginning of a path."""
        parent = self._parents.get(id(node))
        if isinstance(parent, ast.Tuple | ast.List | ast.Set):
            parent = self._parents.get(id(parent))
        is_searched = isinstance(parent, ast.Call) and last_word(parent) in (
            *_EXISTENCE_CHECKS,
            *_SEARCHES,
        )
        return is_searched or isinstance(parent, ast.Compare)

    def loops_around(self, node: ast.AST) -> int:
        """Loops of its own function around it, counted until a condition that skips rounds."""
        count = 0
        for parent in self._around(node):
            if isinstance(parent, (ast.If, ast.Try, *_SCOPES)):
                break
            count += isinstance(parent, _LOOPS)
        return count

    def _around(self, node: ast.AST) -> list[ast.AST]:
        parents = []
        parent = self._parents.get(id(node))
        while parent is not None:
            parents.append(parent)
            parent = self._parents.get(id(parent))
        return parents


def _leaves_before(block: ast.AST, child: ast.AST) -> bool:
    """`if not args.show: return`, above `child` in its own block."""
    lines = getattr(block, "body", [])
    if not isinstance(lines, list) or child not in lines:
        return False
    return any(
        isinstance(line, ast.If)
        and _is_a_choice(line.test)
        and isinstance(line.body[-1], ast.Return | ast.Continue | ast.Raise)
        for line in lines[: lines.index(child)]
    )


def _is_a_choice(test: ast.expr) -> bool:
    """`args.show`, `debug`, `not os.path.exists(path)`; but not `epoch % 10 == 0`."""
    for node in ast.walk(test):
        if isinstance(node, ast.Attribute) and _OPTIONS.fullmatch(called(node.value)):
            return True
        if isinstance(node, ast.Call) and last_word(node) in _EXISTENCE_CHECKS:
            return True
        if isinstance(node, ast.Name) and _SWITCHES.search(node.id):
            return True
        string = node.value if isinstance(node, ast.Constant) else None
        if isinstance(string, str) and _SWITCHES.search(string):
            return True  # config["show"], os.environ.get("DISPLAY")
    return False
