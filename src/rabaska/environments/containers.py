"""Images of Apptainer or Singularity: where they lie on a cluster, and the lines that use them."""

import hashlib
import re
import shlex
from collections.abc import Sequence

from rabaska.domain.projects import EnvironmentRecipe
from rabaska.domain.shell_words import expanding
from rabaska.node.environment.pack_environment import fingerprint
from rabaska.node.job.container import BINDS, IMAGE, RUNTIMES

NO_RUNTIME = 3  # exit code: there is nothing that could pull, or run, an image

_FOUND = " || ".join(f"command -v {name}" for name in RUNTIMES)


def is_address(image: str) -> bool:
    """Whether it is pulled from elsewhere, as `docker://debian` is."""
    return re.match(r"[a-z-]+://", image) is not None


def place(recipe: EnvironmentRecipe, envs: str) -> str:
    """Where the image lies, or will lie, on the cluster; may begin with `~` or a variable."""
    if recipe.here is not None:
        return f"{envs}/{fingerprint(str(recipe.here))}.sif"
    if is_address(recipe.image):
        return f"{envs}/{hashlib.sha256(recipe.image.encode()).hexdigest()[:16]}.sif"
    return recipe.image


def setup(image: str, binds: Sequence[str], failed: str) -> list[str]:
    """The lines of a job script; the agent starts the program in what they name."""
    lines = [f"export {IMAGE}={expanding(image)}"]
    if binds:
        lines.append(f"export {BINDS}={expanding(','.join(binds))}")
    why = shlex.quote("there is no apptainer or singularity on the node")
    return [*lines, f"{{ {_FOUND}; }} >/dev/null || export {failed}={why}"]


def question(image: str) -> str:
    """A script that says whether an image of the cluster can be used there."""
    path = expanding(image)
    return f"{{ {_FOUND}; }} >/dev/null || exit {NO_RUNTIME}\ntest -r {path}"


def pull_script(address: str, image: str, modules: Sequence[str]) -> str:
    """Pull it one time; of two that begin together one waits, where the cluster knows locks.

    What is unpacked meanwhile is large: not in the home folder, where it would go by itself.
    """
    where, partial = shlex.quote(image), shlex.quote(f"{image}.partial")
    envs = shlex.quote(image.rpartition("/")[0])
    lock = shlex.quote(f"{image.rpartition('/')[0]}/.{image.rpartition('/')[2]}.lock")
    lines = [
        "set -e",
        f"mkdir -p {envs}",
        f"exec 9> {lock}",
        "flock 9 2>/dev/null || true",
        f"[ -e {where} ] && touch {where} && exit 0",
        *modules,
        f"tool=$({_FOUND}) || exit {NO_RUNTIME}",
        f"work=$(mktemp -d {envs}/.pull-XXXXXX) && trap 'rm -rf \"$work\"' EXIT",
        'export APPTAINER_CACHEDIR="$work/cache" APPTAINER_TMPDIR="$work"',
        'export SINGULARITY_CACHEDIR="$work/cache" SINGULARITY_TMPDIR="$work"',
        f'"$tool" --quiet pull "$work/image.sif" {shlex.quote(address)} >&2',
        f'mv "$work/image.sif" {partial}',
        f"mv {partial} {where}",
    ]
    return "\n".join(lines)
