"""Checks of what the program imports, where its Python is the one that the job finds."""

import shlex
import sys
from collections.abc import Iterator

from rabaska.checkup.environment import PACKAGE_OF, imports, plain_name, read, virtualenv_advice
from rabaska.checkup.findings import Finding
from rabaska.checkup.subject import Subject
from rabaska.domain.shellwords import expanding
from rabaska.node.job.launch import is_python
from rabaska.scouting.questions import MODULE

QUESTION = "imports"  # its name
_MISSING = "missing modules:"
_ASK = (
    "import importlib.util as u; print('{}', *[m for m in '{}'.split() if u.find_spec(m) is None])"
)


def question(subject: Subject) -> dict[str, str]:
    """Which of the program's modules its Python lacks; none where another environment is built."""
    python = next((word for word in subject.project.command if is_python(word)), "")
    names = sorted(_modules(subject))
    if subject.project.environment.kind != "current" or not python or not names:
        return {}
    modules = (*subject.cluster.modules, *subject.project.environment.modules)
    words = " ".join(expanding(name) for name in modules)
    load = f"{MODULE}module load {words} >/dev/null 2>&1; " if words else ""
    found = f'"$(command -v {shlex.quote(python)} || command -v python3)"'
    return {QUESTION: f"{load}{found} -c {shlex.quote(_ASK.format(_MISSING, ' '.join(names)))}"}


def missing(subject: Subject, said: str) -> Iterator[Finding]:
    lacking = said.rpartition(_MISSING)[2].split() if _MISSING in said else []
    where = _modules(subject)
    for name in lacking:
        package = PACKAGE_OF.get(name, name)
        on = "this computer" if subject.cluster.is_here else subject.cluster.name
        yield Finding(
            "environment.module", f"{name} is imported, and the Python of the job has none",
            where.get(name, ""), f"[environment] is `current`: the job takes what {on} has",
            _advice(subject, package),
        )  # fmt: skip


def _advice(subject: Subject, package: str) -> str:
    if subject.cluster.is_here:
        return f"`pip install {package}` in that Python"
    listed = subject.packages
    file = listed.file if listed and listed.kind == "requirements" else "requirements.txt"
    path = subject.project.folder / file
    names = read(path.read_text("utf-8", "replace")) if path.is_file() else ()
    known = plain_name(package) in {each.name for each in names}
    more = "" if known else f", with `{package}` in that file"
    return f"{virtualenv_advice(subject, file)}{more}; or name `modules` that have it there"


def _modules(subject: Subject) -> dict[str, str]:
    """The modules of others that the program imports at once, each with the first place."""
    folder = subject.project.folder
    found: dict[str, str] = {}
    for source in subject.sources:
        beside = (folder / source.name).parent
        for name, line in imports(source):
            own = any(
                (place / f"{name}.py").exists() or (place / name).is_dir()
                for place in (folder, beside, folder / "src")
            )
            if name and not own and name not in sys.stdlib_module_names and name != "rabaska":
                found.setdefault(name, f"{source.name}, line {line}: import {name}")
    return found
