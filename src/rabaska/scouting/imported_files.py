"""What a source imports, and the files of the project that are meant, however deep they lie."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rabaska.scouting.source import Source, SourceLine, as_module, is_file, read

MOST_REACHED = 60  # files; a library beside a script may have hundreds
_DEEPEST = 6  # packages that pass on what packages pass on


Get = Callable[[str], Source | None]  # a file by its name, relative to the project


@dataclass(frozen=True)
class Import:
    """`from ..module import names`, or `import module` where there are no names."""

    module: str
    names: tuple[str, ...]
    level: int  # dots in front
    place: SourceLine

    @property
    def candidates(self) -> tuple[str, ...]:
        """The modules that may be meant: `google.cloud.storage` by `from google.cloud import …`."""
        return (*(f"{self.module}.{name}" for name in self.names), self.module)

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]


class Files:
    """The Python files of a project, each read when it is first asked for."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._read: dict[str, Source | None] = {}
        self._modules: dict[str, Source] = {}

    def get(self, name: str) -> Source | None:
        """The file with this name, relative to the project; None when there is none."""
        if name not in self._read:
            path = self._project / name
            self._read[name] = read(path, name) if is_file(path) else None
        return self._read[name]

    def module(self, source: Source) -> Source:
        """The same file as another sees it that imports it."""
        return self._modules.setdefault(source.name, as_module(source))


def reached(main: Source, files: Files) -> tuple[Source, ...]:
    """`main`, and the project's own files that it imports."""
    found, waiting = {main.name: main}, [main]
    while waiting:
        source = waiting.pop(0)
        for wanted in imports(source):
            for name in wanted.names or ("",):
                for other in _files_of(wanted, name, source.name, main.name, files.get):
                    if other.name not in found and not other.problem and len(found) < MOST_REACHED:
                        found[other.name] = files.module(other)
                        waiting.append(found[other.name])
    return tuple(found.values())


def imports(source: Source) -> Iterator[Import]:
    for node in source.nodes:
        yield from imports_of(node, source)


def imports_of(node: ast.AST, source: Source) -> Iterator[Import]:
    """What a statement imports; nothing where it is another one."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(alias.name, (), 0, source.place(node, f"import {alias.name}"))
    elif isinstance(node, ast.ImportFrom):
        names = tuple(alias.name for alias in node.names)
        module = node.module or ""
        shown = f"import {'.' * node.level}{module}"
        yield Import(module, names, node.level, source.place(node, shown))


def own_modules(
    wanted: Import, name: str, importer: str, main: str, get: Get
) -> tuple[Source | None, Source | None]:
    """The project's own files that an import of `name` means: a module, and one inside it."""
    for folder in _folders(wanted, importer, main):
        base = "/".join(part for part in (folder, wanted.module.replace(".", "/")) if part)
        outer = _module(base, get) if base else None
        inner = _module(f"{base}/{name}".lstrip("/"), get) if name and name != "*" else None
        if outer or inner:
            return outer, inner
    return None, None


def _files_of(
    wanted: Import, name: str, importer: str, main: str, get: Get, depth: int = 0
) -> Iterator[Source]:
    """The innermost file, or the one from which a package has the name."""
    outer, inner = own_modules(wanted, name, importer, main, get)
    if inner is None and outer is not None:
        yield from list(_passed_on(outer, name, main, get, depth)) or [outer]
    elif inner is not None:
        yield inner


def _folders(wanted: Import, importer: str, main: str) -> list[str]:
    """Where Python would look: beside the importer, beside the script, at the project's top."""
    own = importer.rpartition("/")[0].split("/")
    if wanted.level:
        return ["/".join(own[: max(0, len(own) - (wanted.level - 1))])]
    beside, script = "/".join(own), main.rpartition("/")[0]
    return list(dict.fromkeys((beside, script, "", "src")))


def _module(path: str, get: Get) -> Source | None:
    return get(f"{path}.py") or get(f"{path}/__init__.py")


def _passed_on(package: Source, name: str, main: str, get: Get, depth: int) -> Iterator[Source]:
    """The files from which a package's `__init__.py` has a name that others take from it."""
    if not package.name.endswith("__init__.py") or not name or name in _defined(package):
        return
    if depth > _DEEPEST:
        return
    within = list(imports(package))
    exact = [each for each in within if name in each.names]
    for each in exact or [each for each in within if "*" in each.names]:
        for source in _files_of(each, name if exact else "*", package.name, main, get, depth + 1):
            if exact or name in _defined(source) or source.name.endswith("__init__.py"):
                yield source


def _defined(source: Source) -> set[str]:
    """The names that a file itself defines at its top."""
    names = set()
    for node in source.tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names
