"""The script that a command starts, as far as its words tell."""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

_PYTHON = re.compile(r"(python|pypy)[0-9.]*")
_PYTHON_VALUES = ("-W", "-X", "--check-hash-based-pycs")
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_SHELL_VALUES = ("-o", "+o", "-O", "+O", "--rcfile", "--init-file")
_LAUNCHERS = ("torchrun", "deepspeed", "accelerate")
_LAUNCHING_MODULES = (
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate.commands.launch",
    "deepspeed.launcher.runner",
)
# Programs that start the rest of their words. One in a container sees other files, and is not here.
_WRAPPERS = (
    "env",
    "exec",
    "nice",
    "ionice",
    "nohup",
    "setsid",
    "stdbuf",
    "time",
    "timeout",
    "taskset",
    "numactl",
    "srun",
    "mpirun",
    "mpiexec",
    "horovodrun",
    "nsys",
    "uv",
    "poetry",
    "pipenv",
)
_OTHER_FOLDER = re.compile(r"(-C|-D|--?(chdir|wdir|workdir|directory|project))(=.*)?")
_SCRIPT = re.compile(r".*\.(py|sh)")
# What `init` writes for a program that looks for its data at fixed places.
_LINKS = re.compile(r'((mkdir -p|ln -sfn) [^;&|]+ && )*exec "\$@"')


@dataclass(frozen=True)
class StartedScript:
    """A file of the project, as the command spells it, or a module after `-m`."""

    word: str
    is_module: bool = False


def started_script(command: Sequence[str]) -> StartedScript | None:
    """None where the words do not tell, or where it is not looked for in the code."""
    started = _started(list(command))
    if (
        started is None
        or started.word.startswith(("/", "~", "-"))
        or re.search(r"[{}$*]", started.word)
    ):
        return None
    return started


def _started(words: list[str]) -> StartedScript | None:
    if not words:
        return None
    name, rest = posixpath.basename(words[0]), words[1:]
    if _PYTHON.fullmatch(name):
        return _of_python(rest)
    if name in _SHELLS:
        return _of_shell(rest)
    if name in _LAUNCHERS:
        return _of_launcher(rest)
    if "/" in words[0] and _SCRIPT.fullmatch(name):
        return StartedScript(words[0])
    return _wrapped(rest) if name in _WRAPPERS else None


def _wrapped(words: list[str]) -> StartedScript | None:
    """By the first word that starts a script; the options of wrappers are too many to know."""
    for place, word in enumerate(words):
        if _OTHER_FOLDER.fullmatch(word):
            return None
        name = posixpath.basename(word)
        if _PYTHON.fullmatch(name) or name in (*_SHELLS, *_LAUNCHERS):
            return _started(words[place:])
    return None


def _of_python(words: list[str]) -> StartedScript | None:
    while words and words[0].startswith("-"):
        if re.fullmatch(r"-|-[bBdEiIOPqsSuvx]*c", words[0]):
            return None
        if re.fullmatch(r"-[bBdEiIOPqsSuvx]*m", words[0]):
            if words[1:] and words[1] in _LAUNCHING_MODULES:
                return _of_launcher(words[2:])
            return StartedScript(words[1], is_module=True) if words[1:] else None
        words = words[2 if words[0] in _PYTHON_VALUES else 1 :]
    return StartedScript(words[0]) if words and _SCRIPT.fullmatch(words[0]) else None


def _of_shell(words: list[str]) -> StartedScript | None:
    while words and words[0].startswith(("-", "+")):
        if re.fullmatch(r"-[a-z]*c", words[0]):
            linked = len(words) > 2 and _LINKS.fullmatch(words[1])
            return _started(words[3:]) if linked else None
        if re.fullmatch(r"-|-[a-z]*s", words[0]):
            return None
        words = words[2 if words[0] in _SHELL_VALUES else 1 :]
    return StartedScript(words[0]) if words and _SCRIPT.fullmatch(words[0]) else None


def _of_launcher(words: list[str]) -> StartedScript | None:
    for place, word in enumerate(words):
        if word in ("--no_python", "--no-python"):
            return None
        if word in ("-m", "--module"):
            return StartedScript(words[place + 1], is_module=True) if words[place + 1 :] else None
        if _SCRIPT.fullmatch(word) and not word.startswith("-"):
            return StartedScript(word)
    return None
