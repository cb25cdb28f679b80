"""Lines of a job script that make an environment on the job's nodes, and report where they fail."""

import re
import shlex
from dataclasses import dataclass

from rabaska.domain.shell_words import expanding

# Read by the node side: a job whose environment failed ends at once and says so.
FAILED = "RABASKA_SETUP_FAILED"
FOLDER = "RABASKA_ENV"
SPACE = "RABASKA_SPACE"  # the job's own folder on its node, which the agent uses and removes


@dataclass(frozen=True)
class BuildSite:
    """What a recipe must know of the cluster it is used on."""

    envs: str  # the folder where environments are kept
    local: str = ""  # node-local space inside a job, as a shell expression
    modules: tuple[str, ...] = ()  # loaded before every environment
    wheelhouse: tuple[str, ...] = ()  # folders of wheels that the site keeps
    every_node: str = ""  # words that run a command once on each node of a job; "": one node
    program: tuple[str, ...] = ("rabaska",)  # the words that start our node side
    local_is_shared: bool = False  # whether all jobs of a user find the same node-local folder
    search_path: str = ""  # the folder of the submitting shell's `python`, where jobs can see it
    here: bool = False


def failure(what: str) -> str:
    return f"export {FAILED}={shlex.quote(what)}"


def in_job(site: BuildSite, steps: list[str], use: str) -> list[str]:
    """The steps as somebody would type them, on each node of the job where there are several."""
    space = shlex.join([*site.program, "job-folder"])
    agreed = " --all-nodes" if site.every_node and site.local_is_shared else ""
    where = [*_space(site, agreed), f'export {SPACE} {FOLDER}="${SPACE}/env" &&']
    if not site.every_node:
        own = steps if use in steps else [*steps, use]
        return [*where, *or_failed(own)]
    enter = f'{space} --at "${SPACE}"'
    on_every_node = [f"{site.every_node} bash -e <<END &&", enter, *steps, "END"]
    return [*where, *on_every_node, *or_failed([use])]


def kept_on_node(name: str, use: str, site: BuildSite, steps: list[str]) -> list[str]:
    """The same steps where all jobs see one folder of the node: the first job's serve the others.

    Its folder is not the job's own, so only what enters it is done in each.
    """
    pins = shlex.quote(f"{site.envs}/{name}.txt")
    keep = f"{shlex.join([*site.program, 'kept-env'])} {name} {pins} {_word(site.local)}"
    lines = [f"{step} &&" for step in steps[:-1]]
    return [
        *_space(site),
        f"export {SPACE} &&",
        f"{FOLDER}=\"$({keep} <<'END'",
        *lines,
        steps[-1],
        "END",
        ')" &&',
        f"export {FOLDER} &&",
        *or_failed([use]),
    ]


def _space(site: BuildSite, options: str = "") -> list[str]:
    folder = shlex.join([*site.program, "job-folder"])
    return [f'{SPACE}="$({folder} --owner $${options} {_word(site.local)})" &&']


def or_failed(steps: list[str]) -> list[str]:
    """The steps one after another, up to the first that fails; the agent is told of it."""
    joined = [f"{step} &&" for step in steps[:-1]]
    return [*joined, f"{steps[-1]} ||", f"  {failure('its environment could not be made')}"]


def _word(local: str) -> str:
    """Node-local space as a word; empty where a site names none, or leaves it empty."""
    variable = re.fullmatch(r"\$\{(\w+)(?::-)?\}", local)
    return expanding(f"${variable[1]}" if variable else local) if local else '""'
