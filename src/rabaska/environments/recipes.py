"""The kinds of environment: what each makes beforehand, and what each job does to use it."""

import hashlib
import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rabaska.domain.projects import EnvironmentRecipe
from rabaska.domain.shell_words import expanding
from rabaska.environments import containers
from rabaska.environments.job_lines import (
    FAILED,
    FOLDER,
    BuildSite,
    failure,
    in_job,
    kept_on_node,
    or_failed,
)
from rabaska.node.environment.check_wheels import BY_HAND, NEEDS_PIP, VENV, VIRTUALENV


@dataclass(frozen=True)
class Environment:
    """A recipe resolved for one cluster."""

    setup: tuple[str, ...]  # lines of the job script
    build: str = ""  # a script that makes it once, or nothing to make
    folder: str = ""  # where the build puts it
    built: "BuiltEnvironment | None" = None  # what it is made of, where that is known


@dataclass(frozen=True)
class BuiltEnvironment:
    """What the cluster said of the wheels or the archive an environment is made of."""

    maker: str = VIRTUALENV
    archive: str = ""  # one file of wheels, or a packed environment
    conda: bool = False  # conda-pack made it
    relocate: bool = False  # we made it, with a list of the files that hold its path
    pip: str = ""  # a wheel of pip, for environments that are made by hand
    packages: tuple[str, ...] = ()  # with their versions, as pip chose them
    modules: tuple[str, ...] = ()  # that can be imported then
    unread: tuple[str, ...] = ()  # packages whose modules are not among them
    sent: int = 0  # bytes of wheels that this computer sent
    room: int = 0  # bytes that it takes on the node's disk at least; 0: not known

    @classmethod
    def read(cls, record: Mapping[str, Any], envs: str) -> "BuiltEnvironment":
        archive = record.get("archive", "")
        if archive is True:  # wheels lie beside their record
            archive = f"{envs}/{record['digest']}.tar"
        return cls(
            maker=record.get("maker", VENV),
            archive=archive or "",
            conda=bool(record.get("conda")),
            relocate=bool(record.get("relocate")),
            pip=f"{envs}/{record['digest']}.pip",
            packages=tuple(record.get("packages", ())),
            modules=tuple(record.get("modules", ())),
            unread=tuple(record.get("unread", ())),
            room=record.get("room", 0),
        )


def environment(
    recipe: EnvironmentRecipe, site: BuildSite, built: BuiltEnvironment | None = None
) -> Environment:
    """What `recipe` means on `site`."""
    return replace(_environment(recipe, site, built), built=built)


def _environment(
    recipe: EnvironmentRecipe, site: BuildSite, built: BuiltEnvironment | None
) -> Environment:
    before = [*_modules(recipe, site, failure), *_variables(recipe)]
    if recipe.kind == "activate":
        return Environment(setup=(*before, *or_failed([activation(recipe.path)])))
    if recipe.kind == "virtualenv" and builds_once(recipe, site):
        folder = f"{site.envs}/{digest(recipe, site)}"
        setup = (*before, f"source {shlex.quote(folder + '/bin/activate')}")
        build = _build_script(recipe, site, folder, built)
        return Environment(setup=setup, build=build, folder=folder)
    if recipe.kind == "virtualenv":
        steps = _virtualenv_steps(recipe, site, built or BuiltEnvironment())
        if site.local_is_shared and not site.every_node:
            return Environment(
                setup=(*before, *kept_on_node(digest(recipe, site), _ACTIVATE, site, steps))
            )
        return Environment(setup=(*before, *in_job(site, steps, _ACTIVATE)))
    if recipe.kind == "conda":
        usual = BuiltEnvironment(archive=f"{site.envs}/{digest(recipe, site)}.tar", relocate=True)
        steps, use = _unpacking_steps(built or usual, site), _use(built or usual)
        return Environment(setup=(*before, *in_job(site, steps, use)))
    if recipe.kind == "packed":
        built = built or BuiltEnvironment(archive=f"{site.envs}/PACKED.tar")
        return Environment(
            setup=(*before, *in_job(site, _unpacking_steps(built, site), _use(built)))
        )
    if recipe.kind == "container":
        image = built.archive if built else containers.place(recipe, site.envs)
        return Environment(setup=(*before, *containers.setup(image, recipe.binds, FAILED)))
    current = [f'export PATH={shlex.quote(site.search_path)}:"$PATH"'] if site.search_path else []
    return Environment(setup=(*before, *current))


def builds_once(recipe: EnvironmentRecipe, site: BuildSite) -> bool:
    return (recipe.build or ("once" if site.here else "job")) == "once"


def digest(recipe: EnvironmentRecipe, site: BuildSite) -> str:
    """One name for one content: the same recipe is built once."""
    if recipe.kind == "conda":
        own = sorted((name, text) for name, text in conda_variables(recipe).items())
        conda = [recipe.conda, recipe.file, _all_modules(recipe, site), own]
        return hashlib.sha256(json.dumps(conda).encode()).hexdigest()[:16]
    # Each job installs with its own pip, so where the wheels come from is part of it.
    content: list[object] = [
        recipe.requirements,
        recipe.python,
        _all_modules(recipe, site),
        site.wheelhouse,
    ]
    if not builds_once(recipe, site):
        content.append("job")
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def conda_variables(recipe: EnvironmentRecipe) -> dict[str, str]:
    """What the user tells conda, such as CONDA_OVERRIDE_CUDA where a login node has no GPU."""
    own = ("CONDA_", "MAMBA_")
    return {name: text for name, text in recipe.variables.items() if name.startswith(own)}


def on_login(recipe: EnvironmentRecipe, site: BuildSite) -> list[str]:
    """The same modules as in the job, for questions asked on the login node."""
    return _modules(recipe, site, lambda _: "exit 1")


def _all_modules(recipe: EnvironmentRecipe, site: BuildSite) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*site.modules, *recipe.modules)))


def _modules(
    recipe: EnvironmentRecipe, site: BuildSite, when_refused: Callable[[str], str]
) -> list[str]:
    wanted = _all_modules(recipe, site)
    if not wanted:
        return []
    names = " ".join(shlex.quote(module) for module in wanted)
    # Batch shells do not always define `module` (environment-modules gives 127 there).
    return [
        "type module >/dev/null 2>&1 || source /etc/profile",
        f"module load {names} || {when_refused(f'`module load {names}` failed')}",
    ]


def _variables(recipe: EnvironmentRecipe) -> list[str]:
    return [f"export {name}={shlex.quote(text)}" for name, text in sorted(recipe.variables.items())]


def activation(path: str) -> str:
    """The line that activates a virtualenv or conda folder, or a conda environment by name."""
    if "/" in path:
        return f"source {expanding(path.rstrip('/') + '/bin/activate')}"
    return f'eval "$(conda shell.bash hook)" && conda activate {shlex.quote(path)}'


_ACTIVATE = f'source "${FOLDER}/bin/activate"'


def _virtualenv_steps(
    recipe: EnvironmentRecipe, site: BuildSite, built: BuiltEnvironment
) -> list[str]:
    make = _maker(recipe, site, built)
    places = [expanding(place) for place in site.wheelhouse]
    unpack = []
    if built.archive:
        wheels = f'"${FOLDER}/wheels"'
        unpack = [f"mkdir {wheels}", f"tar -xf {shlex.quote(built.archive)} -C {wheels}"]
        places.append(wheels)
    pins = shlex.quote(f"{site.envs}/{digest(recipe, site)}.txt")
    links = "".join(f" --find-links={place}" for place in places)
    told = shlex.join([*site.program, "install"])
    install = f'{told} "${FOLDER}" -- pip install --quiet --no-index{links} -r {pins}'
    return [f'{make} "${FOLDER}"', *unpack, _ACTIVATE, install]


def _maker(recipe: EnvironmentRecipe, site: BuildSite, built: BuiltEnvironment) -> str:
    """The words that make an environment, before its folder."""
    python = shlex.quote(recipe.python)
    if built.maker == VIRTUALENV:
        other = f" --python={python}" if recipe.python != "python3" else ""
        return f"virtualenv --no-download{other}"
    if built.maker == BY_HAND:
        return f"{python} {shlex.quote(site.program[-1])} venv --pip {shlex.quote(built.pip)}"
    return f"{python} -m venv"


def _unpacking_steps(built: BuiltEnvironment, site: BuildSite) -> list[str]:
    where = f'"${FOLDER}"'
    steps = [f"mkdir -p {where}", f"tar -xf {expanding(built.archive)} -C {where}"]
    if built.relocate:
        return [*steps, f"{shlex.join([*site.program, 'relocate'])} {where}"]
    if built.conda:
        return [*steps, f'"${FOLDER}/bin/python" "${FOLDER}/bin/conda-unpack"']
    # The programs of an environment begin with the path of the Python they were made for.
    repair = f'sed -i "1s|^#!.*/python[0-9.]*\\$|#!${FOLDER}/bin/python|"'
    return [*steps, f'find "${FOLDER}/bin" -type f -exec {repair} {{}} +']


def _use(built: BuiltEnvironment) -> str:
    if built.relocate:
        # As `conda activate` would, without the conda that knows it.
        scripts = f'"${FOLDER}"/etc/conda/activate.d/*.sh'
        return (
            f'export CONDA_PREFIX="${FOLDER}" PATH="${FOLDER}/bin:$PATH" &&\n'
            f'for script in {scripts}; do [ ! -e "$script" ] || source "$script"; done'
        )
    if built.conda:
        return _ACTIVATE
    # Its own `activate` names the folder it was made in.
    return f'export VIRTUAL_ENV="${FOLDER}" PATH="${FOLDER}/bin:$PATH"'


def _build_script(
    recipe: EnvironmentRecipe, site: BuildSite, folder: str, built: BuiltEnvironment | None
) -> str:
    """Build once: the mark `complete` is written last, so a killed build is begun again.

    Of two that begin at the same time one waits, where the cluster knows locks. Prints how many
    files it came to.
    """
    where = shlex.quote(folder)
    lock = shlex.quote(f"{site.envs}/.{digest(recipe, site)}.lock")
    lines = [
        "set -e",
        f"mkdir -p {shlex.quote(site.envs)}",
        f"exec 9> {lock}",
        "flock 9 2>/dev/null || true",
        f"[ -e {where}/complete ] && touch {where} && {{ cat {where}/complete; exit 0; }}",
        *on_login(recipe, site),
        f"rm -rf {where}",
        f"mkdir -p {where}",
        f"cat > {where}/requirements.txt",
        f"{_maker(recipe, site, built or BuiltEnvironment(VENV))} {where} || exit {NEEDS_PIP}",
        *_install_once(recipe, site, folder, built),
        f"find {where} | wc -l > {where}/counted",
        f"mv {where}/counted {where}/complete",
        f"cat {where}/complete",
    ]
    return "\n".join(lines)


def _install_once(
    recipe: EnvironmentRecipe, site: BuildSite, folder: str, built: BuiltEnvironment | None
) -> list[str]:
    """pip installs what was found beforehand, from there alone; else what it finds by itself."""
    where, places, before, after = shlex.quote(folder), [*site.wheelhouse], [], []
    wanted = f"-r {where}/requirements.txt"
    if built and built.packages:
        wanted = f"--no-index -r {shlex.quote(f'{site.envs}/{digest(recipe, site)}.txt')}"
    if built and built.archive:
        places.append(f"{folder}/wheels")
        archive = shlex.quote(built.archive)
        before = [f"mkdir {where}/wheels", f"tar -xf {archive} -C {where}/wheels"]
        after = [f"rm -rf {where}/wheels"]
    links = "".join(f" --find-links={expanding(place)}" for place in places)
    # Where a user's own settings send other packages is no place for these.
    install = (
        f"env -u PIP_TARGET -u PIP_PREFIX PIP_USER=0 "
        f"{where}/bin/pip install --disable-pip-version-check --quiet{links} {wanted}"
    )
    return [*before, install, *after]
