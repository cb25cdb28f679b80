"""The counter of a training loop: whether it can be seen, and begins with what was loaded."""

import ast
import re
from collections.abc import Iterator

from rabaska.scouting.checkpoint_flow import CONTENT, Flow
from rabaska.scouting.scopes import Program, Scope
from rabaska.scouting.source import argument, last_word, literal

# What only training does; `optimizer.step` alone is called by schedulers of others too.
_TRAINS = re.compile(
    r"^(\w*backward|apply_gradients|minimize|train_on_batch|partial_fit|fit"
    r"|\w*train(ing)?_(step|batch|epoch|one_epoch)\w*)$"
)
_COUNTS = ("range", "trange", "arange", "count", "enumerate", "islice")
_EPOCHS = "max_epochs"
_FIRST_ROUND = ("initial_epoch", "start_epoch", "initial_step", "init_step", "start_step")


def counts_rounds(program: Program) -> bool:
    """Whether the training loop can be seen: one over numbers, or one with a condition."""
    for scope in program.scopes:
        for node in scope.nodes:
            if isinstance(node, ast.While):
                return True
            if isinstance(node, ast.For) and re.search(r"range|enumerate", ast.unparse(node.iter)):
                return True
            if isinstance(node, ast.Call) and last_word(node) == "run" and argument(node, _EPOCHS):
                return True  # by an engine of ignite
    return False


def resumes_counter(flow: Flow, program: Program) -> bool:
    """Whether the loop that trains begins with a number that was loaded.

    Any loop counts where none is seen to train: the training may be in a library.
    """
    training = training_loops(program)
    return any(
        _begins_with_content(flow, node, scope)
        for scope in program.scopes
        for node in scope.nodes
        if not training or _is_of_training(node, scope, training)
    )


def training_loops(program: Program) -> frozenset[int]:
    """The loops, by `id`, in which something is trained, through the functions they call."""
    training = {
        id(scope)
        for scope in program.scopes
        if any(isinstance(node, ast.Call) and _trains(node) for node in scope.nodes)
    }
    reached = [
        (scope, call, {id(function) for function in program.called_by(call, scope)})
        for scope in program.scopes
        for call in scope.nodes
        if isinstance(call, ast.Call)
    ]
    before = -1
    while before < len(training):
        before = len(training)
        training |= {id(scope) for scope, _, functions in reached if functions & training}
    calls = [
        (scope, call)
        for scope, call, functions in reached
        if functions & training or (not functions and _trains(call))
    ]
    around = (parent for scope, call in calls for parent in scope.around(call))
    return frozenset(id(node) for node in around if isinstance(node, (ast.For, ast.While)))


def _trains(call: ast.Call) -> bool:
    return bool(_TRAINS.search(last_word(call)))


def _is_of_training(node: ast.AST, scope: Scope, training: frozenset[int]) -> bool:
    """Whether `node` is a loop that trains, or tells the first round of one."""
    if isinstance(node, (ast.For, ast.While)):
        return id(node) in training
    if not isinstance(node, ast.Call) or last_word(node) not in _COUNTS:
        return True  # `fit(initial_epoch=…)`
    child: ast.AST = node
    for parent in scope.around(node):
        if isinstance(parent, ast.For) and child is parent.iter:
            return id(parent) in training
        if isinstance(parent, ast.comprehension):
            return False
        child = parent
    return any(id(other) in training for other in scope.nodes)  # `rounds = range(first, last)`


def _begins_with_content(flow: Flow, node: ast.AST, scope: Scope) -> bool:
    if isinstance(node, ast.Call):
        return _first_round(flow, node, scope)
    if isinstance(node, ast.While):
        counted = any(_counted(flow, inner, scope) for inner in ast.walk(node))
        return counted or _goes_on_from(flow, node.test, scope)
    if isinstance(node, ast.For):
        return any(_passes_over(flow, inner, scope) for inner in _inside(node))
    return False


def _first_round(flow: Flow, call: ast.Call, scope: Scope) -> bool:
    word = last_word(call)
    firsts = [argument(call, name) for name in _FIRST_ROUND]
    if word in ("range", "trange", "arange") and len(call.args) > 1:
        firsts.append(call.args[0])
    elif word in ("count", "enumerate"):
        firsts.append(argument(call, "start", 0 if word == "count" else 1))
    elif word == "islice" and len(call.args) > 2:
        firsts.append(call.args[1])
    elif word == "learn" and literal(argument(call, "reset_num_timesteps")) is False:
        return bool(flow.loads)  # Stable-Baselines counts in the model itself
    return any(flow.bits(first, scope) & CONTENT for first in firsts if first is not None)


def _counted(flow: Flow, node: ast.AST, scope: Scope) -> bool:
    """`step += 1`, of a step that was loaded."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        return bool(flow.bits(node.target, scope) & CONTENT)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
        target, left = node.targets[0], node.value.left
        same = ast.dump(_loaded(target)) == ast.dump(_loaded(left))
        return same and bool(flow.bits(left, scope) & CONTENT)
    return False


def _goes_on_from(flow: Flow, test: ast.expr, scope: Scope) -> bool:
    """`while step + resume_step < most`, of a step that was loaded."""
    sums = [node for node in ast.walk(test) if isinstance(node, ast.BinOp)]
    return any(flow.bits(node, scope) & CONTENT for node in sums if isinstance(node.op, ast.Add))


def _passes_over(flow: Flow, node: ast.AST, scope: Scope) -> bool:
    """`if epoch < first: continue`, or `if step >= most: break` of a step that was loaded."""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    leaves = any(isinstance(line, (ast.Continue, ast.Break, ast.Return)) for line in node.body)
    sides = (node.test.left, *node.test.comparators)
    return leaves and any(flow.bits(side, scope) & CONTENT for side in sides)


def _inside(loop: ast.For) -> Iterator[ast.AST]:
    return (node for line in loop.body for node in ast.walk(line))


def _loaded(node: ast.AST) -> ast.AST:
    """The same name, read rather than assigned, so that both can be compared."""
    return ast.parse(ast.unparse(node), mode="eval").body
