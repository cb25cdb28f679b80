"""The program inside a container of Apptainer or Singularity: what it sees, and how it starts.

The agent stays outside. The job script names the image in RABASKA_CONTAINER, and more folders in
RABASKA_BINDS, with commas between them. Without a terminal, `apptainer exec` passes signals on to
what it runs and ends as that ended (1.4, and Singularity since 3.6), so nothing is lost there.
"""

import json
import os
import shutil
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .. import files, own_program
from ..record.plan import RequestedResources
from ..record.run_folder import RunFolder
from .program_command import Places

IMAGE = "RABASKA_CONTAINER"
BINDS = "RABASKA_BINDS"
BESIDE = "RABASKA_INSIDE"  # told to the program: how something is started beside it
RUNTIMES = ("apptainer", "singularity")

_AMD = "/dev/kfd"
_NVIDIA = "/dev/nvidiactl"
_BIN = "bin"
# Words of a host's Python, which mean nothing in the image, or mislead the one there.
_OF_THE_HOST = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX")


_SETTINGS = ("APPTAINER", "SINGULARITY")  # how the names of its own variables begin
_SET_INSIDE = ("BIND", "CONTAINER", "COMMAND", "ENVIRONMENT", "NAME")


class Container(NamedTuple):
    runtime: str  # the program, as PATH has it
    image: str
    binds: Sequence[str] = ()  # of the user
    gpus: str = ""  # the option that brings the host's drivers


class NoContainer(OSError):
    """The image is not there, or nothing that runs it."""


def given(environment: Mapping[str, str], requested: RequestedResources) -> Optional[Container]:
    """The container that the job script names; None where the program runs without one."""
    image = environment.get(IMAGE, "")
    if not image:
        return None
    path = environment.get("PATH", os.defpath)
    found = [name for name in RUNTIMES if shutil.which(name, path=path)]
    if not found:
        told = "there is no apptainer or singularity on this node; name the module that has it in "
        raise NoContainer(told + "`modules` under [environment]")
    if not os.path.exists(image):
        raise NoContainer("the image {} is not there".format(image))
    binds = [bind for bind in environment.get(BINDS, "").split(",") if bind]
    return Container(found[0], image, binds, gpu_option(requested))


def gpu_option(
    requested: RequestedResources, exists: Callable[[str], bool] = os.path.exists
) -> str:
    """`--nv` or `--rocm` where GPUs were asked for; by what the node has, else by their name."""
    if not requested.gpus:
        return ""
    if exists(_AMD) and not exists(_NVIDIA):
        return "--rocm"
    named_amd = requested.gpu_model.lower().startswith(("mi", "gfx"))
    return "--rocm" if named_amd and not exists(_NVIDIA) else "--nv"


def start_words(container: Optional[Container], folder: str, shown: Sequence[str]) -> List[str]:
    """The words before a command that is to run in `folder`, inside; `shown` are paths it sees."""
    if container is None:
        return []
    words = [container.runtime, "--quiet", "exec", "--pwd", folder]
    if container.gpus:
        words.append(container.gpus)
    for path in list(shown) + list(container.binds):
        words += ["--bind", path]
    return words + [container.image]


def shown(run: RunFolder, places: Places, local: str) -> List[str]:
    """What the program needs to see, each once: run, code, data, the node's disk and our side."""
    program = own_program.own_path()
    paths = [run.path, local, os.path.dirname(program) if os.path.isfile(program) else program]
    for path in places.data.values():
        paths += [path, os.path.realpath(path)]
    own = os.environ.get("TMPDIR", "")
    paths += [own] if os.path.isdir(own) else []
    return list(dict.fromkeys(path for path in paths if not _is_below(path, paths)))


def _is_below(path: str, others: Sequence[str]) -> bool:
    return any(path != other and path.startswith(other.rstrip("/") + "/") for other in others)


def without_host_python(given: Mapping[str, str], wanted: Mapping[str, str]) -> Dict[str, str]:
    """`given` without what is said to the host's Python, unless the user `wanted` it."""
    kept = {name: text for name, text in given.items() if name not in _OF_THE_HOST}
    kept.update(wanted)
    # Packages in the home folder are those of another Python.
    kept.setdefault("PYTHONNOUSERSITE", "1")
    return kept


def environment(
    variables: Dict[str, str], container: Container, run: RunFolder, words: List[str]
) -> Dict[str, str]:
    """`variables` for what is started as `words`; a `python` where the image has only `python3`."""
    spelled = "APPTAINERENV_" if os.path.basename(container.runtime) == RUNTIMES[0] else ""
    spelled = spelled or "SINGULARITYENV_"
    changed = dict(variables)
    changed[spelled + "APPEND_PATH"] = os.path.join(run.path, _BIN)
    changed[BESIDE] = json.dumps(_from_inside(changed, words))
    folder = os.path.join(run.path, _BIN)
    try:
        os.makedirs(folder, exist_ok=True)
        program = os.path.join(folder, "python")
        files.write_program(program, '#!/bin/sh\nexec python3 "$@"\n')
    except OSError:
        pass  # a full disk; then the command itself says what is missing
    return changed


def _from_inside(variables: Mapping[str, str], words: List[str]) -> Dict[str, Any]:
    """`words` for somebody with the environment of the program: its PATH is that of the image."""
    path = variables.get("PATH", os.defpath)
    own = {name: text for name, text in variables.items() if name.startswith(_SETTINGS)}
    own["PATH"] = path
    return {
        "words": [shutil.which(words[0], path=path) or words[0]] + words[1:],
        "variables": own,
    }


def beside(variables: Mapping[str, str], words: List[str]) -> Tuple[List[str], Dict[str, str]]:
    """The words and the environment that start `words` beside a program that has `variables`.

    Its settings may hold secrets, so they are never among the words, which everybody can read.
    """
    changed = dict(variables)
    told = json.loads(changed.get(BESIDE) or "{}")
    if not told:
        return words, changed
    for name in _SET_INSIDE:
        for begin in _SETTINGS:
            changed.pop("{}_{}".format(begin, name), None)
    changed.update(told["variables"])
    return told["words"] + words, changed
