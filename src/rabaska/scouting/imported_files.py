"""The files of a project that one of its scripts imports, however deep they lie."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rabaska.scouting.source import Source, as_module, is_file, read

MOST_REACHED = 60  # files; a library beside a script may have hundreds
_DEEPEST = 6  # packages that pass on what packages pass on


@dataclass(frozen=True)
class Import:
    """`from ..module import name`, or `import module` where `name` is empty."""

    module: str
    name: str = ""
    level: int = 0  # dots in front


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
            for other in _files_of(wanted, source.name, main.name, files):
                if other.name not in found and not other.problem and len(found) < MOST_REACHED:
                    found[other.name] = files.module(other)
                    waiting.append(found[other.name])
    return tuple(found.values())


def imports(source: Source) -> Iterator[Import]:
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield Import(node.module or "", alias.name, node.level)


def _files_of(
    wanted: Import, importer: str, main: str, files: Files, depth: int = 0
) -> Iterator[Source]:
    """The file that an import means: a module, or the file from which a package has the name."""
    for folder in _folders(wanted, importer, main):
        base = "/".join(part for part in (folder, wanted.module.replace(".", "/")) if part)
        if wanted.name and wanted.name != "*":
            inner = _module(f"{base}/{wanted.name}".lstrip("/"), files)
            if inner:
                yield inner
                return
        module = _module(base, files) if base else None
        if module is None:
            continue
        passed_on = list(_passed_on(module, wanted.name, main, files, depth))
        yield from passed_on or [module]
        return


def _folders(wanted: Import, importer: str, main: str) -> list[str]:
    """Where Python would look: beside the importer, beside the script, at the project's top."""
    own = importer.rpartition("/")[0].split("/")
    if wanted.level:
        return ["/".join(own[: max(0, len(own) - (wanted.level - 1))])]
    beside, script = "/".join(own), main.rpartition("/")[0]
    return list(dict.fromkeys((beside, script, "", "src")))


def _module(path: str, files: Files) -> Source | None:
    return files.get(f"{path}.py") or files.get(f"{path}/__init__.py")


def _passed_on(package: Source, name: str, main: str, files: Files, depth: int) -> Iterator[Source]:
    """The files from which a package's `__init__.py` has a name that others take from it."""
    if not package.name.endswith("__init__.py") or not name or name in _defined(package):
        return
    if depth > _DEEPEST:
        return
    within = list(imports(package))
    exact = [each for each in within if each.name == name]
    for each in exact or [each for each in within if each.name == "*"]:
        for source in _files_of(each, package.name, main, files, depth + 1):
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
