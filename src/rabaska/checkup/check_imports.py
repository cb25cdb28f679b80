"""Checks of what the program imports: packages that its environment will not have."""

import importlib.metadata
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from rabaska.checkup.finding import Finding
from rabaska.checkup.pinned_packages import Requirement, has_more, plain_name, read
from rabaska.checkup.subject import Subject, virtualenv_advice
from rabaska.domain.shell_words import expanding
from rabaska.knowledge.packages import MORE, brought, packages, providers
from rabaska.node.command_words import is_python
from rabaska.scouting.certain_imports import certain_imports
from rabaska.scouting.imported_files import Import
from rabaska.scouting.local_modules import STANDARD, local_modules
from rabaska.sites.questions import MODULE

QUESTION = "imports"  # its name
_MISSING = "missing modules:"
_ASK = (
    "import importlib.util as u; print('{}', *[m for m in '{}'.split() if u.find_spec(m) is None])"
)
# Modules that only start with another package, which nothing installs along with theirs.
ALSO_NEEDS = {"torch.utils.tensorboard": "tensorboard"}
# Modules of a site that bring no packages for Python.
_WITHOUT_PACKAGES = re.compile(
    r"(python|cuda|cudnn|cudatoolkit|gcc|intel|nvhpc|openmpi|nccl|stdenv|cmake|rust|ffmpeg|rocm)\b",
    re.I,
)


def not_listed(subject: Subject, text: str) -> Iterator[Finding]:
    """Packages that are imported at once and that no line of the requirements brings."""
    listed = read(text)
    if not listed or has_other_sources(subject):
        return
    installed = Installed(listed, open_ended=has_more(text))
    for module, found in wanted_modules(subject).items():
        certainty = installed.lacks(module)
        if certainty:
            yield unlisted(subject, module, found, certain=certainty == "certain")


def has_other_sources(subject: Subject) -> bool:
    """Whether packages may come from elsewhere: modules of the site, or a path of the user's."""
    modules = (*subject.cluster.modules, *subject.project.environment.modules)
    more = [name for name in modules if not _WITHOUT_PACKAGES.match(name)]
    return bool(more) or "PYTHONPATH" in subject.variables


@dataclass(frozen=True)
class Installed:
    """What a list of packages comes to once pip has installed it."""

    listed: tuple[Requirement, ...]
    open_ended: bool = False  # it has lines whose packages nobody can tell

    def lacks(self, module: str) -> str:
        """`certain`, `likely`, or nothing where a package of the list has the module."""
        names = {requirement.name for requirement in self.listed}
        theirs = {*packages_with(module)}
        if plain_name(module) in names or theirs & brought({*names, *self._perhaps()}):
            return ""
        if self.open_ended or any(not _is_known(each) for each in self.listed):
            return ""  # nobody can tell here; what pip resolves is compared when a run is made
        if not theirs:
            return "" if _is_part(module, names) else "likely"
        return "likely" if any(map(_is_of_another_time, self.listed)) else "certain"

    def _perhaps(self) -> Iterator[str]:
        """What an older release brings along, or an extra."""
        for requirement in self.listed:
            known = packages().get(requirement.name)
            if known and not requirement.loose:
                yield from known.formerly
            if known and requirement.extras:
                yield from known.extras


def _is_known(requirement: Requirement) -> bool:
    known = packages().get(requirement.name)
    if known is None or not known.modules or requirement.elsewhere:
        return False
    return not requirement.extras or MORE not in known.extras


def _is_of_another_time(requirement: Requirement) -> bool:
    """Pinned to a release so old that it may have brought other packages along."""
    known, version = packages()[requirement.name], requirement.version
    parts = 1 if version[:1] > (0,) else 2
    has_any = known.requires or known.formerly
    return bool(version and has_any) and version[:parts] != known.version[:parts]


def _is_part(module: str, names: set[str]) -> bool:
    """Of a package that has more modules than the table, or is named alike."""
    word = plain_name(module)
    return any(word in name or name in word or not packages()[name].is_complete for name in names)


def packages_with(module: str) -> tuple[str, ...]:
    if module in ALSO_NEEDS:
        return (ALSO_NEEDS[module],)
    return providers(module) or _installed_here(module.partition(".")[0])


@cache
def _distributions() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()


def _installed_here(module: str) -> tuple[str, ...]:
    names = _distributions().get(module, [])
    return tuple(dict.fromkeys(plain_name(name) for name in names))


def unlisted(subject: Subject, module: str, found: Import, *, certain: bool) -> Finding:
    theirs = packages_with(module)
    package = theirs[0] if theirs else module
    named = f"`{package}`" if theirs else f"the package that has `{module}`"
    return Finding(
        "environment.missing",
        f"{package} is imported, but not in the requirements",
        str(found.place),
        "the environment on the cluster has only what the requirements list",
        f"add {named} to {subject.requirements_file}",
        serious=certain,
        likely=True,
    )


def question(subject: Subject) -> dict[str, str]:
    """Which of the program's modules its Python lacks; none where another environment is built."""
    python = next((word for word in subject.project.command if is_python(word)), "")
    names = sorted({_asked(module) for module in wanted_modules(subject)})
    if subject.project.environment.kind != "current" or not python or not names:
        return {}
    modules = (*subject.cluster.modules, *subject.project.environment.modules)
    words = " ".join(expanding(name) for name in modules)
    load = f"{MODULE}module load {words} >/dev/null 2>&1; " if words else ""
    interpreter = f'"$(command -v {shlex.quote(python)} || command -v python3)"'
    return {
        QUESTION: f"{load}{interpreter} -c {shlex.quote(_ASK.format(_MISSING, ' '.join(names)))}"
    }


def _asked(module: str) -> str:
    """What `find_spec` can look up without importing anything."""
    return ALSO_NEEDS.get(module, module.partition(".")[0])


def missing(subject: Subject, answer: str) -> Iterator[Finding]:
    lacking = answer.rpartition(_MISSING)[2].split() if _MISSING in answer else []
    where = {_asked(module): found for module, found in wanted_modules(subject).items()}
    for name in lacking:
        theirs = packages_with(name)
        on = "this computer" if subject.cluster.is_here else subject.cluster.name
        yield Finding(
            "environment.module",
            f"{name} is imported, but the job's Python does not have it",
            str(where[name].place) if name in where else "",
            f"[environment] is `current`: the job uses the Python of {on}",
            _advice(subject, theirs[0] if theirs else name),
            serious="PYTHONPATH" not in subject.variables,
            likely=True,
        )


def _advice(subject: Subject, package: str) -> str:
    if subject.cluster.is_here:
        return f"`pip install {package}` in that Python"
    listed = subject.packages
    file = listed.file if listed and listed.kind == "requirements" else "requirements.txt"
    path = subject.project.folder / file
    names = read(path.read_text("utf-8", "replace")) if path.is_file() else ()
    is_listed = plain_name(package) in {requirement.name for requirement in names}
    more = "" if is_listed else f", with `{package}` in that file"
    return f"{virtualenv_advice(subject, file)}{more}; or name `modules` that have it there"


def wanted_modules(subject: Subject) -> Mapping[str, Import]:
    """The modules of others that the program certainly imports, each with its first place."""
    own = local_modules(subject.project.folder)
    wanted: dict[str, Import] = {}
    for found in certain_imports(subject.sources):
        if found.level or found.top in own or found.top in STANDARD:
            continue
        for module in (*found.candidates, found.top):
            if module in ALSO_NEEDS:
                wanted.setdefault(module, found)
        wanted.setdefault(_level(found), found)
    return wanted


def _level(found: Import) -> str:
    """The top of a package; more of the name where several packages share the top."""
    shared = not providers(found.top) and next(filter(providers, found.candidates), "")
    return shared or found.top
