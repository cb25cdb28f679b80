"""Imports that a program certainly does when it is started, however it is used."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rabaska.scouting.scripts import files_of
from rabaska.scouting.source import Source, SourceLine, called, last_word

_CAUGHT = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
_SIMPLE = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)


@dataclass(frozen=True)
class Import:
    module: str  # dotted, with dots in front where it is relative
    names: tuple[str, ...]  # what is taken from it
    place: SourceLine

    @property
    def candidates(self) -> tuple[str, ...]:
        """The modules that may be meant: `google.cloud.storage` by `from google.cloud import …`."""
        return (*(f"{self.module}.{name}" for name in self.names), self.module)

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]


def certain_imports(sources: Sequence[Source]) -> Iterator[Import]:
    """Those of the first source, and of the others as far as they are certainly imported.

    Left out is what stands in `try` with a handler for it, below an `if`, in a loop, or in a
    function that nothing calls for certain.
    """
    by_name = {source.name: source for source in sources}
    waiting, done = [source.name for source in sources[:1]], set[str]()
    while waiting:
        name = waiting.pop(0)
        if name in done:
            continue
        done.add(name)
        for found in _of(by_name[name], is_main=name == sources[0].name):
            yield found
            waiting += _own_files(found, name, by_name)


def _own_files(found: Import, importer: str, by_name: Mapping[str, Source]) -> list[str]:
    files = [file for module in found.candidates for file in files_of(module, importer)]
    return [file for file in files if file in by_name]


def _of(source: Source, *, is_main: bool) -> Iterator[Import]:
    functions = {
        node.name: node
        for node in source.tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    called_before: set[str] = set()

    def read(lines: Sequence[ast.stmt]) -> Iterator[Import]:
        for line in lines:
            if isinstance(line, ast.Import):
                for alias in line.names:
                    yield Import(alias.name, (), source.place(line, f"import {alias.name}"))
            elif isinstance(line, ast.ImportFrom):
                module = "." * line.level + (line.module or "")
                names = tuple(alias.name for alias in line.names)
                yield Import(module, names, source.place(line, f"import {module}"))
            elif isinstance(line, ast.If):
                if is_main and _is_main_guard(line.test):
                    yield from read(line.body)
                elif any(isinstance(node, ast.Return) for node in ast.walk(line)):
                    return  # what follows is done in some cases only
            elif isinstance(line, ast.Try):
                if not any(_catches_import_error(handler) for handler in line.handlers):
                    yield from read(line.body)
                yield from read(line.finalbody)
            elif isinstance(line, ast.With | ast.AsyncWith):
                if not any(last_word(item.context_expr) == "suppress" for item in line.items):
                    yield from read(line.body)
            elif isinstance(line, ast.ClassDef):
                yield from read(line.body)
            elif isinstance(line, _SIMPLE) and is_main:
                for name in _called(line.value):
                    if name in functions and name not in called_before:
                        called_before.add(name)
                        yield from read(functions[name].body)

    yield from read(source.tree.body)


def _called(value: ast.expr | None) -> Iterator[str]:
    """`main` by `main()` and by `sys.exit(main())`; not by `debug and main()`."""
    if isinstance(value, ast.Await):
        value = value.value
    if isinstance(value, ast.Call):
        yield called(value)
        for argument in value.args:
            yield from _called(argument)


def _is_main_guard(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and called(test.left) == "__name__"


def _catches_import_error(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or last_word(kind) in _CAUGHT for kind in kinds)
