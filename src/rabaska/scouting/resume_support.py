"""Whether a program resumes from a checkpoint, as its source shows: state and counter, or less."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rabaska.node.record import plan
from rabaska.scouting import script_traits
from rabaska.scouting.checkpoint_flow import NUMBER, OURS, CheckpointLoad, Flow
from rabaska.scouting.loop_counter import counts_rounds, resumes_counter
from rabaska.scouting.option_roles import CHECKPOINTS, LOGS, OUTPUT, RESUME, Role
from rabaska.scouting.scopes import Program, Scope
from rabaska.scouting.script_options import FLAG, POSITIONAL, VALUE, Option
from rabaska.scouting.script_writes import imported
from rabaska.scouting.scripts import Script
from rabaska.scouting.source import (
    UNKNOWN,
    argument,
    called,
    fixed_folder,
    last_word,
    literal,
    text,
)
from rabaska.scouting.start_command import given

_ITSELF = ("BackupAndRestore",)
_MEANS_RESUME = re.compile(r"resum|contin|restor|reload|^last$|^latest$|^auto$", re.I)
_MEANS_OTHER = re.compile(r"eval|test|pretrain|finetune|sample|infer|export", re.I)
_TEXT = re.compile(r"(^|\.)(json|yaml|toml|tomllib)\.|(^|\.)read(_text|lines?)?$")
_LOADED = re.compile(r"^(torch|np|numpy|pickle|joblib)\.load$")
_DEEPEST = 4  # functions that call functions
_MOST_TRIED = 12  # options


@dataclass(frozen=True)
class Resumption:
    """One of the kinds in `node.record.plan`, and where it shows."""

    kind: str
    place: str = ""  # the load that it depends on
    words: tuple[str, ...] = ()  # that would have the program load it, and are not given
    into_model: bool = True  # what is loaded is seen to become part of a model

    @property
    def resumes(self) -> bool:
        return self.kind in (plan.FULL, plan.ITSELF, plan.VARIABLE)


def resumption(
    script: Script, options: Sequence[Option], roles: Sequence[Role], words: Sequence[str]
) -> Resumption:
    """How the program goes on when `words`, of its command and of `resume`, are given to it."""
    program = Program(script.sources)
    place = _uses_our_variables(script)
    if place:
        given = _given(script, program, _options_given(options, words) | {""})
        weights = given is not None and given.kind == plan.WEIGHTS
        return given if given and weights else Resumption(plan.VARIABLE, place)
    given = _given(script, program, _options_given(options, words))
    if given and (given.resumes or given.kind == plan.UNREAD):
        return given
    own = _by_itself(script, program.without_unused(), options, roles, words)
    if own.kind == plan.NOT and not own.words and _has_a_switch(script, roles, words):
        own = Resumption(plan.UNREAD)
    return own if own.resumes or not given else given


def _has_a_switch(script: Script, roles: Sequence[Role], words: Sequence[str]) -> bool:
    """Whether it is told to resume by a switch, and loads something: from where cannot be seen."""
    switches = [role.option for role in roles if role.what == RESUME and role.option.kind == FLAG]
    return any(each.spelled in words for each in switches) and any(
        map(_LOADED.search, script.calls)
    )


def by_option(script: Script, option: Option) -> Resumption | None:
    """What comes of giving a checkpoint to one option; None when nothing is loaded from it."""
    return _given(script, Program(script.sources), frozenset(_variables(option)))


def _given(script: Script, program: Program, names: frozenset[str]) -> Resumption | None:
    """By the options that get the checkpoint; None when no option does, or nothing uses it.

    Our variables lead to it whatever the options are.
    """
    if not names:
        return None
    commands = script_traits.lightning_commands(script)
    if commands and "ckpt_path" in names:
        return Resumption(plan.FULL, str(commands))
    flow = Flow(program, names)
    if flow.framework:
        return Resumption(plan.FULL, _place(flow.framework))
    read = [load for load in flow.loads.values() if last_word(load.call) != NUMBER]
    load = next(iter(sorted(read, key=_is_of_settings)), None)
    if resumes_counter(flow, program):
        return Resumption(plan.FULL, _place(load))
    if flow.opaque or (flow.used and load is None) or (load and not counts_rounds(program)):
        return Resumption(plan.UNREAD, _place(load))
    return Resumption(plan.WEIGHTS, _place(load), into_model=flow.state) if load else None


def _by_itself(
    script: Script,
    program: Program,
    options: Sequence[Option],
    roles: Sequence[Role],
    words: Sequence[str],
) -> Resumption:
    """By what it finds in its own output."""
    for name in _ITSELF:
        if script_traits.uses(script, name):
            return Resumption(plan.ITSELF, str(script_traits.uses(script, name)))
    place = _trainer_resumes(script) or _brain_resumes(script)
    if place:
        return Resumption(plan.ITSELF, place)
    flow = Flow(program, _written_by(script, roles), _fixed_places(script))
    if not flow.loads:
        flow = _by_a_name(program, options, roles) or flow
    read = sorted(flow.loads.values(), key=_is_of_settings)
    loads = [load for load in read if not _is_not_for_training(load, program, options)]
    if flow.framework:
        loads = [flow.framework]
    elif not loads or not resumes_counter(flow, program):
        return Resumption(plan.NOT)
    gates = [_gate(load, program, options) for load in loads]
    wanted = next((gate for gate in gates if gate), ())
    if wanted and not _is_given(wanted, words):
        return Resumption(plan.NOT, _place(loads[0]), wanted)
    return Resumption(plan.ITSELF, _place(loads[0]))


def _by_a_name(program: Program, options: Sequence[Option], roles: Sequence[Role]) -> Flow | None:
    """By an option that is part of the path, as in `os.path.join("logs", args.model)`."""
    taken = {role.option.name for role in roles}
    plain = [each for each in options if each.kind == VALUE and not (each.number or each.truth)]
    named = [each for each in plain if each.name not in taken and not each.choices]
    for option in named[:_MOST_TRIED]:
        flow = Flow(program, frozenset(_variables(option)))
        if flow.saved and flow.loads and resumes_counter(flow, program):
            return flow
    return None


def _is_of_settings(load: CheckpointLoad) -> bool:
    """Whether it reads text, which is the state itself only where nothing else is loaded."""
    return bool(_TEXT.search(called(load.call)))


def _place(load: CheckpointLoad | None) -> str:
    return str(load.scope.source.place(load.call, called(load.call))) if load else ""


def _uses_our_variables(script: Script) -> str:
    for source in script.sources:
        if any(module.startswith("rabaska.training") for module in imported(source)):
            return f"{source.name}: rabaska.training"
        for node in source.nodes:
            if isinstance(node, ast.Constant) and OURS.search(text(node)):
                return str(source.place(node, text(node)))
    return ""


def _options_given(options: Sequence[Option], words: Sequence[str]) -> frozenset[str]:
    """The options whose value the checkpoint is, by the names their variables may have."""
    names: set[str] = set()
    for before, word in zip(("", *words), words, strict=False):
        if "{checkpoint}" not in word:
            continue
        spelled = word.partition("=")[0] if "=" in word else before
        if spelled.startswith("-") or "=" in word:
            plain = spelled.lstrip("-+").replace("-", "_").lower()
            meant = [option for option in options if option.name == plain.replace(".", "_")]
            names |= {plain.rpartition(".")[2], *(n for each in meant for n in _variables(each))}
        else:
            names |= {option.name for option in options if option.kind == POSITIONAL}
    return frozenset(names)


def _written_by(script: Script, roles: Sequence[Role]) -> frozenset[str]:
    """The options that name where the program writes."""
    written = [role.option for role in roles if role.what in (OUTPUT, CHECKPOINTS, LOGS)]
    names = {name for option in written for name in _variables(option)}
    named = {option.name for option in script.options}
    saved = {name.lower() for write in script.writes for name in write.options if write.checkpoint}
    return frozenset(names | (saved & named))


def _variables(option: Option) -> set[str]:
    """What its value may be called: `data.root` is `root` of something."""
    last = option.spelled.lstrip("-+").replace("-", "_").rpartition(".")[2].lower()
    return {option.name, last, option.dest} - {""}


def _fixed_places(script: Script) -> frozenset[str]:
    """Paths, and folders, that stand in the source where it saves."""
    paths = set()
    for write in script.writes:
        path = write.path.removeprefix("./")
        if write.checkpoint and UNKNOWN not in path and path:
            paths.add(path)
        if write.checkpoint and fixed_folder(path):
            paths.add(fixed_folder(path))
    return frozenset(paths)


def _trainer_resumes(script: Script) -> str:
    """`trainer.train(resume_from_checkpoint=True)` looks into the output folder."""
    for source in script.sources:
        for call in source.calls():
            for keyword in call.keywords:
                if keyword.arg == "resume_from_checkpoint" and literal(keyword.value) is True:
                    return str(source.place(call, called(call)))
    return ""


def _brain_resumes(script: Script) -> str:
    """`Brain(checkpointer=…)` of SpeechBrain: its `fit` begins with what the folder has."""
    for source in script.sources:
        if any(module.startswith("speechbrain") for module in imported(source)):
            for call in source.calls():
                given = argument(call, "checkpointer")
                if given is not None and not isinstance(given, ast.Constant):
                    return str(source.place(call, called(call)))
    return ""


def _gate(load: CheckpointLoad, program: Program, options: Sequence[Option]) -> tuple[str, ...]:
    """The words of the option without which the load is not reached; none where it always is."""
    for test in _conditions(load.scope, load.call, program):
        for option, value in _options_tested(test, options):
            if option.kind == FLAG and not _MEANS_OTHER.search(option.name):
                return (option.spelled,)
            if value and _MEANS_RESUME.search(value):
                return tuple(given(option, value))
    return ()


def _is_not_for_training(load: CheckpointLoad, program: Program, options: Sequence[Option]) -> bool:
    """Whether it is loaded to be evaluated, or exported."""
    tests = list(_conditions(load.scope, load.call, program))
    conditions = [condition for test in tests for condition in _options_tested(test, options)]
    return any(_MEANS_OTHER.search(value or option.name) for option, value in conditions)


def _is_given(wanted: tuple[str, ...], words: Sequence[str]) -> bool:
    given = [part for word in words for part in (word, *word.split("=", 1))]
    return all(word in given for word in wanted)


def _conditions(
    scope: Scope, node: ast.AST, program: Program, depth: int = 0
) -> Iterator[ast.expr]:
    """What must hold for `node` to be reached, through the functions that lead to it."""
    child: ast.AST = node
    for parent in scope.around(node):
        body = parent.body if isinstance(parent, (ast.If, ast.IfExp)) else ()
        if child is body or (isinstance(body, list) and child in body):
            yield parent.test  # type: ignore[attr-defined]
        child = parent
    if depth < _DEEPEST and scope.above is not None:
        for caller, call in program.calls_of(scope):
            yield from _conditions(caller, call, program, depth + 1)


def _options_tested(test: ast.expr, options: Sequence[Option]) -> Iterator[tuple[Option, str]]:
    """The options that a condition asks for, and the value they must have, if one is named."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for part in test.values:
            yield from _options_tested(part, options)
    elif isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Eq, ast.In)):
        value = text(test.comparators[0])
        yield from ((option, value) for option in _named(test.left, options) if value)
    elif isinstance(test, (ast.Name, ast.Attribute)):
        yield from ((option, "") for option in _named(test, options) if option.kind == FLAG)
    elif isinstance(test, ast.Call) and last_word(test) == "startswith" and test.args:
        owner = test.func.value if isinstance(test.func, ast.Attribute) else test
        yield from ((option, text(test.args[0])) for option in _named(owner, options))


def _named(node: ast.AST, options: Sequence[Option]) -> list[Option]:
    name = called(node).rpartition(".")[2].lower()
    return [
        option
        for option in options
        if name in (option.name, option.dest) and option.kind in (FLAG, VALUE)
    ]
