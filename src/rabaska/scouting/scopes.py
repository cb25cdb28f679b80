"""The functions of a program's files, which names are their own, and who calls them."""

import ast
import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rabaska.scouting.source import Source, called, last_word

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef
# By these a program finds what it calls by a name that its source does not show.
_BY_NAME = re.compile(r"^(import_module|instantiate|globals|locals|eval|exec|__import__|init_obj)$")


@dataclass(eq=False)
class Scope:
    """A module or a function, with its own nodes but not those of functions inside."""

    source: Source
    node: ast.AST
    above: "Scope | None" = None
    in_class: bool = False
    nodes: list[ast.AST] = field(default_factory=list)
    names: set[str] = field(default_factory=set)  # assigned or taken as parameters here
    parents: dict[int, ast.AST] = field(default_factory=dict)

    @property
    def parameters(self) -> list[str]:
        if not isinstance(self.node, _FUNCTIONS):
            return []
        given = self.node.args
        plain = [argument.arg for argument in (*given.posonlyargs, *given.args)]
        return plain[1:] if self.in_class and plain[:1] in (["self"], ["cls"]) else plain

    @property
    def taken(self) -> list[str]:
        """Every parameter by its name, those too that only a keyword gives."""
        given = getattr(self.node, "args", None)
        only = given.kwonlyargs if isinstance(given, ast.arguments) else []
        return [*self.parameters, *(argument.arg for argument in only)]

    def owner(self, name: str) -> "Scope":
        """The scope whose variable `name` is."""
        at = self
        while at.above is not None and name not in at.names:
            at = at.above
        return at

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What stands around a node in its own function, the nearest first."""
        at = self.parents.get(id(node))
        while at is not None:
            yield at
            at = self.parents.get(id(at))


class Program:
    """All scopes of a program, and its functions by name."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.scopes: list[Scope] = []
        self.functions: dict[str, list[Scope]] = {}
        self.classes: dict[str, Scope] = {}  # by name, their `__init__`
        own = {part for source in sources for part in source.name.removesuffix(".py").split("/")}
        self._modules = {source.name: _modules(source, own) for source in sources}
        self._taken = {source.name: _taken_from_others(source, own) for source in sources}
        for source in sources:
            self._add(Scope(source, source.tree), source.tree)
        self._calls = [
            (scope, node)
            for scope in self.scopes
            for node in scope.nodes
            if isinstance(node, ast.Call)
        ]

    def is_of_others(self, node: ast.AST, scope: Scope) -> bool:
        """Whether a dotted name begins with a module that is none of the program's files."""
        root = called(node).partition(".")[0]
        return root in self._modules.get(scope.source.name, ())

    def _is_in_others(self, node: ast.AST, scope: Scope) -> bool:
        """Whether a dotted name begins with a module of others, or with what is from one."""
        taken = called(node).partition(".")[0] in self._taken.get(scope.source.name, ())
        return taken or self.is_of_others(node, scope)

    def called_by(self, call: ast.Call, scope: Scope) -> list[Scope]:
        """The functions of the program that a call may mean, by the last word of its name."""
        word = last_word(call)
        if isinstance(call.func, ast.Attribute) and self._is_in_others(call.func, scope):
            return []
        made = self.classes.get(word)
        return [made] if made else self.functions.get(word, [])

    def calls_of(self, wanted: Scope) -> Iterator[tuple[Scope, ast.Call]]:
        for scope, call in self._calls:
            if wanted in self.called_by(call, scope):
                yield scope, call

    def without_unused(self) -> "Program":
        """The same program but for functions, and classes, that none of its lines names."""
        used = {scope for scope in self.scopes if scope.above is None}
        names: set[str] = set()
        fresh = list(used)
        while fresh:
            if any(self._finds_by_name(node) for scope in fresh for node in scope.nodes):
                return self
            names.update(name for scope in fresh for name in self._names_in(scope))
            unused = [scope for scope in self.scopes if scope not in used]
            fresh = [scope for scope in unused if self._is_used(scope, names, used)]
            used.update(fresh)
        kept = copy.copy(self)
        kept.scopes = [scope for scope in self.scopes if scope in used]
        return kept

    def _finds_by_name(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Call):
            return False
        other = last_word(node) == "getattr" and not isinstance(node.args[-1], ast.Constant)
        return other or bool(_BY_NAME.search(last_word(node)))

    def _names_in(self, scope: Scope) -> Iterator[str]:
        for node in scope.nodes:
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.Attribute) and not self.is_of_others(node, scope):
                yield node.attr

    def _is_used(self, scope: Scope, names: set[str], used: set[Scope]) -> bool:
        """Whether one of `names` means it; a library calls methods of what it is the base of."""
        if scope.above is None or scope.above not in used or not isinstance(scope.node, _FUNCTIONS):
            return False
        name, owner = scope.node.name, scope.above.parents.get(id(scope.node))
        if scope.node.decorator_list or not isinstance(owner, ast.ClassDef):
            return bool(scope.node.decorator_list) or name in names
        if owner.decorator_list or owner.bases or name.startswith("__"):
            return owner.name in names or bool(owner.decorator_list)
        return owner.name in names and name in names

    def _add(self, scope: Scope, node: ast.AST) -> None:
        self.scopes.append(scope)
        if isinstance(node, _FUNCTIONS):
            given = node.args
            extra = [each for each in (given.vararg, given.kwarg) if each]
            every = (*given.posonlyargs, *given.args, *given.kwonlyargs, *extra)
            scope.names |= {each.arg for each in every}
        for child in ast.iter_child_nodes(node):
            self._walk(scope, child, node)
        declared = {
            name
            for each in scope.nodes
            if isinstance(each, (ast.Global, ast.Nonlocal))
            for name in each.names
        }
        scope.names -= declared

    def _walk(self, scope: Scope, node: ast.AST, parent: ast.AST, inside: str = "") -> None:
        scope.parents[id(node)] = parent
        if isinstance(node, _FUNCTIONS):
            inner = Scope(scope.source, node, scope, in_class=bool(inside))
            if inside and node.name == "__init__":
                self.classes[inside] = inner
            else:
                self.functions.setdefault(node.name, []).append(inner)
            self._add(inner, node)
            return
        scope.nodes.append(node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            scope.names.add(node.id)
        for child in ast.iter_child_nodes(node):
            name = node.name if isinstance(node, ast.ClassDef) else inside
            self._walk(scope, child, node, name)


def _modules(source: Source, own: set[str]) -> frozenset[str]:
    """The names of modules that a file imports and that are not files of the program."""
    names = set()
    for node in source.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.rpartition(".")[2] not in own:
                    names.add(alias.asname or alias.name.partition(".")[0])
    return frozenset(names)


def _taken_from_others(source: Source, own: set[str]) -> frozenset[str]:
    """What a file takes from modules of others: `checkpoints`, of `flax.training`."""
    names = set()
    for node in source.nodes:
        if not isinstance(node, ast.ImportFrom) or node.level:
            continue
        if (node.module or "").partition(".")[0] not in own:
            names |= {alias.asname or alias.name for alias in node.names}
    return frozenset(names)
