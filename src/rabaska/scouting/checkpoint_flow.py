"""Where the content of a checkpoint goes: from an option or a folder to a load, and on from there.

Names are followed, not values: what is assigned in any branch counts. A path becomes content where
it is loaded.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rabaska.scouting.scopes import Program, Scope
from rabaska.scouting.source import argument, last_word, parameters, text

PATH, CONTENT = 1, 2
_ROUNDS = 12  # assignments that lead to assignments
# What is made of them says nothing of the content itself.
_ASIDE = re.compile(
    r"^(len|print|isinstance|type|exists|isfile|isdir|is_file|is_dir|makedirs|mkdir|save|dump"
    r"|info|debug|warning|warn|error|copy|copyfile|rename|replace|remove|unlink|append|add"
    r"|SummaryWriter|add_argument|parse_args)$"
)
_OF_TEXT = ("replace", "copy")  # of a path's name or of what was loaded, not of a file
_LOADS = re.compile(
    r"^(load|loads|restore|unpickle|read|read_text|read_bytes|safe_load|full_load|loadtxt"
    r"|load_\w+|restore_\w+|read_\w+|from_bytes)$"
)
_INTO_STATE = re.compile(r"^(load_state_dict|load_weights|load_state|set_weights|set_state\w*)$")
_BY_FRAMEWORK = ("ckpt_path", "resume_from_checkpoint")
_EVALUATES = ("test", "validate", "predict")  # of a trainer: nothing goes on from what they load
_PASSED_ON = re.compile(r"resume|ckpt|checkpoint|restore")
NUMBER = "int"  # of a path makes the number in it: content, though no file was read
OURS = re.compile(r"RABASKA_(CHECKPOINTS?|RESUME|OUTPUT)", re.I)  # the variables that lead to one
# `manager.latest_step()`; `optimizer.step()` and `train_step()` tell nothing.
_KNOWS_LAST = re.compile(r"(last|latest|newest|best|all|max|resume|restore)\w*(step|epoch)", re.I)
_NO_PART = ("shape", "size", "dtype", "ndim")

Key = tuple[int, str]  # the scope it belongs to, 0 for attributes of any object; its name


@dataclass(frozen=True)
class CheckpointLoad:
    """A call that reads a file of ours."""

    scope: Scope
    call: ast.Call


class Flow:
    """One tracing, from names (`seeds`, in lower case) and fixed paths."""

    def __init__(
        self, program: Program, seeds: frozenset[str], fixed: frozenset[str] = frozenset()
    ) -> None:
        self._program = program
        self._seeds = seeds
        self._fixed = fixed
        self._known: dict[Key, int] = {}
        self._returned: dict[Scope, list[int]] = {}
        self._filled: set[Key] = set()  # parameters that a function puts content into
        self.loads: dict[int, CheckpointLoad] = {}
        self.used = False  # something is done with the path
        self.saved = False  # a state is written below the path
        self.state = False  # content reaches a model or an optimizer
        self.framework: CheckpointLoad | None = None  # a path goes to a trainer that does the rest
        self.opaque = False  # path or content goes where it cannot be followed
        self._trace()

    def _trace(self) -> None:
        for _ in range(_ROUNDS):
            before = (dict(self._known), {scope: list(b) for scope, b in self._returned.items()})
            for scope in self._program.scopes:
                self._defaults(scope)
                for node in scope.nodes:
                    self._statement(node, scope)
            if before == (self._known, self._returned):
                break

    def _defaults(self, scope: Scope) -> None:
        """`def main(snapshot_path="snapshot.pt")`."""
        if scope.above is not None and isinstance(scope.node, ast.FunctionDef) and self._fixed:
            for name, default in parameters(scope.node).items():
                self._mark_parameter(scope, name, self.bits(default, scope.above))

    def _statement(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value, scope)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
            if node.value is not None:
                self._assign(node.target, node.value, scope)
        elif isinstance(node, (ast.For, ast.comprehension)):
            self._mark(node.target, self.bits(node.iter, scope), scope)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._mark(node.optional_vars, self.bits(node.context_expr, scope), scope)
        elif isinstance(node, ast.Return) and node.value is not None:
            self._return(node.value, scope)
        elif isinstance(node, ast.Call):
            self.bits(node, scope)

    def _return(self, value: ast.expr, scope: Scope) -> None:
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        returned = [self.bits(part, scope) for part in parts]
        before = self._returned.get(scope, [])
        if before and len(before) != len(returned):
            combined = 0
            for bits in (*before, *returned):
                combined |= bits
            self._returned[scope] = [combined] * max(len(before), len(returned))
            return
        before = before or [0] * len(returned)
        self._returned[scope] = [a | b for a, b in zip(before, returned, strict=True)]

    def _assign(self, target: ast.expr, value: ast.expr, scope: Scope) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            several = self._several(value, len(target.elts), scope)
            for part, bits in zip(target.elts, several, strict=True):
                self._mark(part, bits, scope)
        else:
            self._mark(target, self.bits(value, scope), scope)

    def _several(self, value: ast.expr, count: int, scope: Scope) -> list[int]:
        """What each of several targets gets."""
        if isinstance(value, ast.Tuple) and len(value.elts) == count:
            return [self.bits(part, scope) for part in value.elts]
        combined = self.bits(value, scope)
        if isinstance(value, ast.Call):
            for function in self._program.called_by(value, scope):
                parts = self._returned.get(function, [])
                if len(parts) == count:
                    return parts
        return [combined] * count

    def _mark(self, target: ast.AST, bits: int, scope: Scope) -> None:
        if not bits:
            return
        if isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                self._mark(part, bits, scope)
        elif isinstance(target, (ast.Starred, ast.Subscript)):
            self._mark(target.value, bits, scope)
            if isinstance(target, ast.Subscript):
                self._fill(target.value, bits, scope)
        elif isinstance(target, ast.Name):
            self._add((id(scope.owner(target.id)), target.id), bits)
        elif isinstance(target, ast.Attribute):
            self._add((0, target.attr), bits)

    def _fill(self, target: ast.AST, bits: int, scope: Scope) -> None:
        """`variables["epoch"] = …`, of a parameter: the caller's dictionary has it then."""
        if bits & CONTENT and isinstance(target, ast.Name) and target.id in scope.taken:
            self._filled.add((id(scope), target.id))

    def _add(self, key: Key, bits: int) -> None:
        self._known[key] = self._known.get(key, 0) | bits

    def bits(self, node: ast.AST | None, scope: Scope) -> int:
        """Whether an expression is made of the path, or of what was loaded from it."""
        if isinstance(node, ast.Name):
            own = self._known.get((id(scope.owner(node.id)), node.id), 0)
            return own | (PATH if node.id.lower() in self._seeds else 0)
        if isinstance(node, ast.Attribute):
            if self._program.is_of_others(node, scope):
                return 0  # os.path
            part = 0 if node.attr in _NO_PART else self.bits(node.value, scope)
            own = self._known.get((0, node.attr), 0)
            return own | part | (PATH if node.attr.lower() in self._seeds else 0)
        if isinstance(node, ast.Subscript):
            named = text(node.slice).lower()
            ours = bool(named) and (named in self._seeds or OURS.fullmatch(named))
            return (PATH if ours else 0) | self.bits(node.value, scope)
        if isinstance(node, ast.Call):
            return self._call(node, scope)
        if isinstance(node, ast.Constant):
            return PATH if isinstance(node.value, str) and _plain(node.value) in self._fixed else 0
        if node is None or isinstance(node, (ast.Compare, ast.Lambda)):
            return 0
        found = 0
        for child in ast.iter_child_nodes(node):
            found |= self.bits(child, scope)
        return found

    def _call(self, call: ast.Call, scope: Scope) -> int:
        word = last_word(call)
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        arguments = [*call.args, *(each.value for each in call.keywords)]
        given, on = (
            [self.bits(each, scope) for each in arguments],
            self.bits(receiver, scope),
        )
        combined = on
        for bits in given:
            combined |= bits
        if any(OURS.fullmatch(text(each)) for each in call.args):
            return PATH  # os.environ.get("RABASKA_CHECKPOINT")
        if word == "get" and call.args and text(call.args[0]).lower() in self._seeds:
            return PATH  # cfg.get("ckpt_path")
        if word in _EVALUATES and argument(call, _BY_FRAMEWORK[0]) is not None:
            return 0
        functions = self._program.called_by(call, scope)
        self.saved = self.saved or (PATH in given and word in ("save", "dump"))
        of_text = bool(on) and word in _OF_TEXT
        if not functions and (not combined or (_ASIDE.search(word) and not of_text)):
            return 0
        self.used = self.used or bool(combined & PATH)
        self._sinks(call, scope, arguments, given, functions)
        if functions:
            return self._bound(call, functions, scope)
        if combined & PATH and not combined & CONTENT and self._reads(call, word, on):
            self.loads.setdefault(id(call), CheckpointLoad(scope, call))
            for each in arguments:
                if isinstance(each, ast.Name) and not self.bits(each, scope):
                    self._mark(each, CONTENT, scope)  # fabric.load(path, state)
            if isinstance(receiver, ast.Name) and not self._program.is_of_others(receiver, scope):
                self._mark(receiver, CONTENT, scope)  # checkpoint.restore(path)
            return CONTENT
        return combined

    def _reads(self, call: ast.Call, word: str, on: int) -> bool:
        if _LOADS.search(word) or _INTO_STATE.search(word):
            return True
        # A number in the path, or what a manager of checkpoints knows of its folder.
        return word == NUMBER or bool(on and _KNOWS_LAST.search(word))

    def _sinks(
        self,
        call: ast.Call,
        scope: Scope,
        arguments: Sequence[ast.expr],
        given: Sequence[int],
        functions: Sequence[Scope],
    ) -> None:
        word = last_word(call)
        if _INTO_STATE.search(word) and any(given):
            self.state = True
        if word == "update" and any(bits & CONTENT for bits in given):
            into = call.func.value if isinstance(call.func, ast.Attribute) else None
            if isinstance(into, ast.Name):
                self._mark(into, CONTENT, scope)
                self._fill(into, CONTENT, scope)
            else:
                self.opaque = True  # self.__dict__.update(…)
        if word == "load_objects" and any(bits & CONTENT for bits in given):
            self._engine(call, scope)
        if word == "setattr" and any(bits & CONTENT for bits in given):
            self.opaque = True
        if functions:
            return
        for keyword in call.keywords:
            bits = self.bits(keyword.value, scope)
            if bits and keyword.arg in _BY_FRAMEWORK:
                self.framework = CheckpointLoad(scope, call)
            elif bits & PATH and _PASSED_ON.search(keyword.arg or "") and not _LOADS.search(word):
                self.opaque = True

    def _engine(self, call: ast.Call, scope: Scope) -> None:
        """`Checkpoint.load_objects(to_load={"trainer": trainer})`: an engine of ignite counts."""
        objects = argument(call, "to_load", 0)
        if isinstance(objects, ast.Name):
            lines = [node for node in scope.nodes if isinstance(node, ast.Assign)]
            assigned = [node.value for node in lines if ast.unparse(node.targets[0]) == objects.id]
            objects = assigned[-1] if assigned else objects
        if not isinstance(objects, ast.Dict):
            self.opaque = True
        elif re.search(r"trainer|engine", ast.unparse(objects)):
            self.framework = CheckpointLoad(scope, call)

    def _bound(self, call: ast.Call, functions: Sequence[Scope], scope: Scope) -> int:
        """A call of a function of the program: its parameters get what is given."""
        result = 0
        for function in functions:
            named = [(each.arg, each.value) for each in call.keywords if each.arg]
            for name, value in (*zip(function.parameters, call.args, strict=False), *named):
                self._mark_parameter(function, name, self.bits(value, scope))
                if (id(function), name) in self._filled:
                    self._mark(value, CONTENT, scope)
            if any(each.arg is None for each in call.keywords):
                self._unfold(function)
            for bits in self._returned.get(function, []):
                result |= bits
        return result

    def _unfold(self, function: Scope) -> None:
        """`train(**c)`, where `c.resume_step` was set before: attributes become parameters."""
        for name in function.taken:
            self._mark_parameter(function, name, self._known.get((0, name), 0))

    def _mark_parameter(self, function: Scope, name: str, bits: int) -> None:
        if bits:
            self._add((id(function), name), bits)


def _plain(path: str) -> str:
    return path.removeprefix("./").rstrip("/")
