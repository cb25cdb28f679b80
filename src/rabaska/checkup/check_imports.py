"""Checks of what the program imports: packages that its environment will not have."""

import ast
import re
import shlex
import sys
from collections.abc import Iterator

from rabaska.checkup.pinned_packages import Requirement, plain_name, read
from rabaska.checkup.subject import Finding, Subject, virtualenv_advice
from rabaska.domain.shell_words import expanding
from rabaska.node.command_words import is_python
from rabaska.scouting.source import Source
from rabaska.sites.questions import MODULE

QUESTION = "imports"  # its name
_MISSING = "missing modules:"
_ASK = (
    "import importlib.util as u; print('{}', *[m for m in '{}'.split() if u.find_spec(m) is None])"
)
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


def not_listed(subject: Subject, wanted: tuple[Requirement, ...], text: str) -> Iterator[Finding]:
    open_ended = re.search(r"^\s*(-r|-e|-c|git\+|https?:|\.)", text, re.MULTILINE)
    if not wanted or open_ended or subject.project.environment.modules:
        return
    names = {requirement.name for requirement in wanted}
    missing: dict[str, str] = {}
    for source in subject.sources:
        for module, line in imports(source):
            package = PACKAGE_OF.get(module)
            providers = {package} | _BROUGHT_BY.get(package or "", set())
            if package and not names & providers:
                missing.setdefault(package, f"{source.name}, line {line}: import {module}")
    for package, place in missing.items():
        yield Finding(
            "environment.missing",
            f"{package} is imported, but not in the requirements",
            place,
            "the environment on the cluster has only what the requirements list",
            f"add `{package}` to the requirements",
        )


def imports(source: Source) -> Iterator[tuple[str, int]]:
    """Modules that are imported at once, outside `try` and functions."""
    for node in source.tree.body:
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").split(".")[0], node.lineno


def question(subject: Subject) -> dict[str, str]:
    """Which of the program's modules its Python lacks; none where another environment is built."""
    python = next((word for word in subject.project.command if is_python(word)), "")
    names = sorted(_modules(subject))
    if subject.project.environment.kind != "current" or not python or not names:
        return {}
    modules = (*subject.cluster.modules, *subject.project.environment.modules)
    words = " ".join(expanding(name) for name in modules)
    load = f"{MODULE}module load {words} >/dev/null 2>&1; " if words else ""
    interpreter = f'"$(command -v {shlex.quote(python)} || command -v python3)"'
    return {
        QUESTION: f"{load}{interpreter} -c {shlex.quote(_ASK.format(_MISSING, ' '.join(names)))}"
    }


def missing(subject: Subject, answer: str) -> Iterator[Finding]:
    lacking = answer.rpartition(_MISSING)[2].split() if _MISSING in answer else []
    where = _modules(subject)
    for name in lacking:
        package = PACKAGE_OF.get(name, name)
        on = "this computer" if subject.cluster.is_here else subject.cluster.name
        yield Finding(
            "environment.module",
            f"{name} is imported, but the job's Python does not have it",
            where.get(name, ""),
            f"[environment] is `current`: the job uses the Python of {on}",
            _advice(subject, package),
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


def _modules(subject: Subject) -> dict[str, str]:
    """The modules of others that the program imports at once, each with the first place."""
    folder = subject.project.folder
    places: dict[str, str] = {}
    for source in subject.sources:
        beside = (folder / source.name).parent
        for name, line in imports(source):
            own = any(
                (place / f"{name}.py").exists() or (place / name).is_dir()
                for place in (folder, beside, folder / "src")
            )
            if name and not own and name not in sys.stdlib_module_names and name != "rabaska":
                places.setdefault(name, f"{source.name}, line {line}: import {name}")
    return places
