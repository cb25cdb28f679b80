"""Checks of what the program's Python needs: packages, imports, builds, and files that count."""

import ast
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from rabaska.checkup.subject import Finding, Subject
from rabaska.domain.gpus import Version, parsed
from rabaska.domain.shell_words import expanding
from rabaska.knowledge.gpu_facts import build_of
from rabaska.node.command_words import is_python
from rabaska.scouting.source import Source
from rabaska.sites.questions import MODULE

_FRAMEWORKS = {"torch": "torch", "tensorflow": "tensorflow", "tensorflow-gpu": "tensorflow"}
PACKAGE_OF = {
    "cv2": "opencv-python",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "skimage": "scikit-image",
    "bs4": "beautifulsoup4",
    "pytorch_lightning": "pytorch-lightning",
    "wandb": "wandb",
    "torch": "torch",
    "torchvision": "torchvision",
    "tensorflow": "tensorflow",
    "timm": "timm",
    "transformers": "transformers",
    "datasets": "datasets",
    "pandas": "pandas",
    "lightning": "lightning",
    "albumentations": "albumentations",
    "einops": "einops",
    "h5py": "h5py",
    "matplotlib": "matplotlib",
    "seaborn": "seaborn",
    "monai": "monai",
    "nibabel": "nibabel",
    "hydra": "hydra-core",
    "omegaconf": "omegaconf",
    "jax": "jax",
    "flax": "flax",
    "torchaudio": "torchaudio",
    "optuna": "optuna",
    "accelerate": "accelerate",
}
# What else brings a package along: then it need not be listed.
_BROUGHT_BY = {
    "pillow": {"torchvision", "matplotlib", "scikit-image", "timm", "albumentations"},
    "pandas": {"seaborn", "datasets"},
    "omegaconf": {"hydra-core"},
    "matplotlib": {"seaborn"},
    "torch": {
        "torchvision",
        "timm",
        "lightning",
        "pytorch-lightning",
        "accelerate",
        "torchaudio",
        "monai",
    },
    "pyyaml": {
        "transformers",
        "timm",
        "hydra-core",
        "omegaconf",
        "accelerate",
        "lightning",
        "pytorch-lightning",
        "datasets",
        "wandb",
        "optuna",
        "albumentations",
    },
    "torchvision": {"timm"},
    "h5py": {"tensorflow", "keras"},
    "opencv-python": {"opencv-python-headless", "albumentations", "opencv-contrib-python"},
    "tensorflow": {"tensorflow-gpu", "tensorflow-cpu"},
    "lightning": {"pytorch-lightning"},
    "jax": {"flax"},
}
_OLDEST_IN_WHEELHOUSE = (3, 10)
_NEWEST_GPU_NEEDS = (2, 5, 1)  # of torch in the Alliance's wheelhouse, for H100


@dataclass(frozen=True)
class Requirement:
    name: str
    version: Version  # empty: not pinned
    cuda: str  # "cu121"
    line: int


def checks(subject: Subject) -> Iterator[Finding]:
    text = subject.project.environment.requirements
    wanted = read(text)
    yield from _unused_list(subject)
    yield from _other_computers(subject, text)
    yield from _not_listed(subject, wanted, text)
    yield from _builds(subject, wanted)
    yield from _old_python(subject)
    yield from _other_processor(subject)


def read(text: str) -> tuple[Requirement, ...]:
    """The packages that a requirements file names, with what is pinned."""
    index = re.search(r"download\.pytorch\.org/whl/(cu\d+)", text)
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        entry = re.match(r"\s*([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*(?:==\s*([\w.+!]+))?", line)
        if entry:
            version = entry[2] or ""
            cuda = version.partition("+")[2] or (index[1] if index else "")
            found.append(Requirement(plain_name(entry[1]), parsed(version), cuda, number))
    return tuple(found)


def plain_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _unused_list(subject: Subject) -> Iterator[Finding]:
    recipe, listed = subject.project.environment, subject.packages
    if subject.cluster.is_here or recipe.kind != "current" or listed is None or recipe.modules:
        return
    if listed.kind == "conda":
        yield Finding(
            "environment.conda",
            f"{listed.file} describes a conda environment, and none travels",
            "[environment]",
            "an environment made there anew costs 100,000 files and more of your quota",
            'pack it here (conda-pack) and write `kind = "packed"` and its `path`',
        )
    elif listed.kind == "requirements":
        yield Finding(
            "environment.unused",
            f"no package of {listed.file} is installed for the job",
            "[environment]",
            'the kind of its environment is "current": on '
            f"{subject.cluster.name} the program gets the Python it finds",
            virtualenv_advice(subject, listed.file),
        )


def virtualenv_advice(subject: Subject, file: str) -> str:
    """The lines that work whatever stands in [environment], where `kind` would win."""
    return (
        f'write `kind = "virtualenv"` and `requirements = "{file}"` under '
        f"[cluster.{subject.cluster.name}.environment]"
    )


def _other_computers(subject: Subject, text: str) -> Iterator[Finding]:
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(r"@ file://|^\s*(-e\s+)?(/|file:)", line):
            yield Finding(
                "environment.local",
                f"a package comes from this computer: {line.strip()}",
                f"requirements, line {number}",
                "the cluster cannot see that folder",
                "name it with a version, as in `numpy==1.26.4` (`pip list --format=freeze`)",
            )


def _not_listed(subject: Subject, wanted: tuple[Requirement, ...], text: str) -> Iterator[Finding]:
    open_ended = re.search(r"^\s*(-r|-e|-c|git\+|https?:|\.)", text, re.MULTILINE)
    if not wanted or open_ended or subject.project.environment.modules:
        return
    names = {each.name for each in wanted}
    missing: dict[str, str] = {}
    for source in subject.sources:
        for module, line in imports(source):
            package = PACKAGE_OF.get(module)
            there = {package} | _BROUGHT_BY.get(package or "", set())
            if package and not names & there:
                missing.setdefault(package, f"{source.name}, line {line}: import {module}")
    for package, place in missing.items():
        yield Finding(
            "environment.missing",
            f"{package} is imported and not required",
            place,
            "the environment on the cluster is made of what is required, and nothing else",
            f"add `{package}` to the requirements",
        )


def imports(source: Source) -> Iterator[tuple[str, int]]:
    """Modules that are imported at once, outside `try` and functions."""
    for node in source.tree.body:
        if isinstance(node, ast.Import):
            yield from ((each.name.split(".")[0], node.lineno) for each in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").split(".")[0], node.lineno


def _builds(subject: Subject, wanted: tuple[Requirement, ...]) -> Iterator[Finding]:
    gpu = subject.gpu
    if gpu is None:
        return
    for each in wanted:
        framework = _FRAMEWORKS.get(each.name)
        if not framework or not each.version:
            continue
        place = f"requirements, line {each.line}"
        if subject.cluster.wheelhouse:
            # The site builds its own wheels, for its own GPUs; only their first versions count.
            if framework == "torch" and gpu.name == "h100" and each.version < _NEWEST_GPU_NEEDS:
                yield _build_finding(each, "H100", place, "take torch 2.5.1 or newer")
            continue
        build = build_of(framework, each.version, each.cuda)
        if gpu.capability and build and not build.runs_on(gpu):
            advice = build.advice or "take a build that holds code for it, or another queue"
            yield _build_finding(each, gpu.name.upper(), place, advice)


def _build_finding(each: Requirement, gpu: str, place: str, advice: str) -> Finding:
    version = ".".join(map(str, each.version)) + (f"+{each.cuda}" if each.cuda else "")
    return Finding(
        "environment.build",
        f"{each.name} {version} holds no code for a {gpu}",
        place,
        "it stops with `no kernel image is available for execution on the device`",
        advice,
    )


def _old_python(subject: Subject) -> Iterator[Finding]:
    recipe = subject.project.environment
    if not subject.cluster.wheelhouse or recipe.kind != "virtualenv":
        return
    told = [recipe.python, *recipe.modules]
    versions = [
        parsed(found[1]) for word in told if (found := re.search(r"python/?(3\.\d+)", word))
    ]
    if versions and min(versions) < _OLDEST_IN_WHEELHOUSE and subject.cluster.status == "live":
        spelled = ".".join(map(str, min(versions)))
        yield Finding(
            "environment.python",
            f"Python {spelled} is too old for the site's wheels",
            "[environment]",
            f"the wheelhouse of {subject.cluster.name} keeps the newest three",
            "use Python 3.10 or newer",
            serious=False,
        )


def _other_processor(subject: Subject) -> Iterator[Finding]:
    gpu = subject.gpu
    kind = subject.cluster.processor or (gpu.processor if gpu else "")
    travels = subject.project.environment.kind == "packed" and subject.project.environment.here
    if travels and kind not in ("", "x86_64") and sys.platform == "linux":
        yield Finding(
            "environment.processor",
            f"the packed environment does not run on {kind}",
            "[environment]",
            f"the nodes of {subject.cluster.name} have another processor",
            "build it there, or use the site's container",
        )


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
            "environment.module",
            f"{name} is imported, and the Python of the job has none",
            where.get(name, ""),
            f"[environment] is `current`: the job takes what {on} has",
            _advice(subject, package),
        )


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
