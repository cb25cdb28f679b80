"""Imports and calls that a program certainly makes when it is started, however it is used."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rabaska.scouting.imported_files import Import, imports_of, own_modules
from rabaska.scouting.source import Source, called, last_word

_CAUGHT = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
_SIMPLE = ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return


@dataclass(frozen=True)
class _Step:
    """A statement without others in it, and whether errors of it are caught."""

    source: Source
    line: ast.stmt
    caught: bool


def certain_imports(sources: Sequence[Source]) -> Iterator[Import]:
    """Those of the first source, and of the others as far as they are certainly imported.

    Left out is what stands in `try` with a handler for it, below an `if`, in a loop, or in a
    function that nothing calls for certain.
    """
    for step in _steps(sources):
        yield from imports_of(step.line, step.source)


def certain_calls(sources: Sequence[Source]) -> Iterator[tuple[Source, ast.Call]]:
    """Calls that are certainly made, and whose errors nobody catches."""
    for step in _steps(sources):
        value = getattr(step.line, "value", None)
        if not step.caught and isinstance(step.line, _SIMPLE):
            yield from ((step.source, call) for call in _calls(value))


def _steps(sources: Sequence[Source]) -> Iterator[_Step]:
    by_name = {source.name: source for source in sources}
    waiting, done = [source.name for source in sources[:1]], set[str]()
    while waiting:
        name = waiting.pop(0)
        if name in done:
            continue
        done.add(name)
        for step in _of(by_name[name], is_main=name == sources[0].name):
            yield step
            for found in imports_of(step.line, step.source):
                waiting += _own_files(found, name, sources[0].name, by_name)


def _own_files(found: Import, importer: str, main: str, by_name: Mapping[str, Source]) -> list[str]:
    """Those of `by_name` that Python runs for this import."""
    return [
        source.name
        for name in found.names or ("",)
        for source in own_modules(found, name, importer, main, by_name.get)
        if source is not None
    ]


def _of(source: Source, *, is_main: bool) -> Iterator[_Step]:
    functions = {
        node.name: node
        for node in source.tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    called_before: set[str] = set()

    def read(lines: Sequence[ast.stmt], *, caught: bool = False) -> Iterator[_Step]:
        for line in lines:
            if isinstance(line, ast.If):
                if is_main and _is_main_guard(line.test):
                    yield from read(line.body, caught=caught)
                elif any(isinstance(node, ast.Return) for node in ast.walk(line)):
                    return  # what follows is done in some cases only
            elif isinstance(line, ast.Try):
                if not any(_catches_import_error(handler) for handler in line.handlers):
                    yield from read(line.body, caught=caught or bool(line.handlers))
                yield from read(line.finalbody, caught=caught)
            elif isinstance(line, ast.With | ast.AsyncWith):
                if not any(last_word(item.context_expr) == "suppress" for item in line.items):
                    yield from read(line.body, caught=caught)
            elif isinstance(line, ast.ClassDef):
                yield from read(line.body, caught=caught)
            elif isinstance(line, ast.Import | ast.ImportFrom | _SIMPLE):
                yield _Step(source, line, caught)
                for call in _calls(getattr(line, "value", None)) if is_main else ():
                    name = called(call)
                    if name in functions and name not in called_before:
                        called_before.add(name)
                        yield from read(functions[name].body, caught=caught)

    yield from read(source.tree.body)


def _calls(value: ast.expr | None) -> Iterator[ast.Call]:
    """`main()`, and both of `sys.exit(main())`; not that of `debug and main()`."""
    if isinstance(value, ast.Await):
        value = value.value
    if isinstance(value, ast.Call):
        yield value
        for argument in value.args:
            yield from _calls(argument)


def _is_main_guard(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and called(test.left) == "__name__"


def _catches_import_error(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or last_word(kind) in _CAUGHT for kind in kinds)
