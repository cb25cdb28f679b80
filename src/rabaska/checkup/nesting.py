"""What stands around a piece of code: loops, and conditions that make it optional."""

import ast
import re

from rabaska.scouting.source import Source, called, last_word

_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)

_OPTIONS = re.compile(r"args|opts?|options|cfg|config|conf|FLAGS|hparams|params|self(\.\w+)?", re.I)
_WISHES = re.compile(r"show|plot|debug|visual|display|interact|download|pretrain|wandb|track", re.I)
_LOOKS = {"exists", "isfile", "isdir", "is_file", "is_dir", "isatty"}


class Nesting:
    """Knows the parents of every node of one source."""

    def __init__(self, source: Source) -> None:
        self._parents = {
            id(child): node for node in source.nodes for child in ast.iter_child_nodes(node)
        }

    def is_optional(self, node: ast.AST) -> bool:
        """Whether it is done only if an option says so, or if something is not there yet."""
        return any(
            isinstance(each, ast.If | ast.IfExp) and _is_a_choice(each.test)
            for each in self._around(node)
        )

    def loops_around(self, node: ast.AST) -> int:
        """Loops of its own function around it, counted until a condition that skips rounds."""
        count = 0
        for each in self._around(node):
            if isinstance(each, (ast.If, ast.Try, *_SCOPES)):
                break
            count += isinstance(each, _LOOPS)
        return count

    def _around(self, node: ast.AST) -> list[ast.AST]:
        found = []
        at = self._parents.get(id(node))
        while at is not None:
            found.append(at)
            at = self._parents.get(id(at))
        return found


def _is_a_choice(test: ast.expr) -> bool:
    """`args.show`, `debug`, `not os.path.exists(path)`; but not `epoch % 10 == 0`."""
    for each in ast.walk(test):
        if isinstance(each, ast.Attribute) and _OPTIONS.fullmatch(called(each.value)):
            return True
        if isinstance(each, ast.Call) and last_word(each) in _LOOKS:
            return True
        if isinstance(each, ast.Name) and _WISHES.search(each.id):
            return True
    return False
