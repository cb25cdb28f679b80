"""What is asked of a site to learn how it works: one script, and its answers one by one."""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

VARIABLES = (
    "HOME",
    "SCRATCH",
    "PROJECT",
    "WORK",
    "STORE",
    "LSCRATCH",
    "TMPDIR",
)
QUOTA_PROGRAMS = (
    "diskusage_report",
    "myquota",
    "showquota",
    "idrquota",
    "lquota",
    "quota_report",
    "quota",
)
PYTHONS = ("python3", *(f"python3.{minor}" for minor in range(6, 16)))

_PATIENCE = 20  # seconds for each question; a hung file system must not hang us
_PATIENCE_FOR_JOBS = 300
_BEGIN = re.compile(r"@@asked (\S+)\n(.*?)\n@@exit (\d{1,9})$", re.DOTALL | re.MULTILINE)

_ASK = """\
ask() {
  printf '\\n@@asked %s\\n' "$1"
  timeout "$2" bash -c "$3" </dev/null 2>&1
  printf '\\n@@exit %s\\n' "$?"
}
"""

# `type module` holds in login shells only, so the shell that is asked is told how to be one.
MODULE = "type module >/dev/null 2>&1 || source /etc/profile >/dev/null 2>&1; "

# About software; those about its scheduler are the schedulers' own.
QUESTIONS: Mapping[str, str] = {
    "pythons": f"for each in {' '.join(PYTHONS)}; do "
    'command -v "$each" >/dev/null && echo "$each $("$each" --version 2>&1)"; done; true',
    "modules": f"{MODULE}module --terse avail",
    "wheelhouse": f"{MODULE}module load python >/dev/null 2>&1; python3 -m pip config list",
}

PROBE_NAME = "probe"
NODES_NAME = "nodes"
DISKS_NAME = "disks"
OUTSIDE = "https://pypi.org/"  # what a job tries to reach, where nobody knows if it can


@dataclass(frozen=True)
class SiteAnswer:
    """What one question gave; a site that does not know the command answers 127."""

    exit_code: int
    text: str

    @property
    def ok(self) -> bool:
        return self.exit_code == 0


NO_ANSWER = SiteAnswer(127, "")


def script(asked: Mapping[str, str]) -> str:
    """All questions at once: one round trip, whatever the distance."""
    patience = {PROBE_NAME: _PATIENCE_FOR_JOBS}
    lines = [
        f"ask {name} {patience.get(name, _PATIENCE)} {shlex.quote(asking)}"
        for name, asking in asked.items()
    ]
    return _ASK + "\n".join(lines) + "\n"


def answers(output: str) -> dict[str, SiteAnswer]:
    found = _BEGIN.findall(output.replace("\r\n", "\n"))
    return {name: SiteAnswer(int(code), text.strip("\n")) for name, text, code in found}


def variables_question(names: Iterable[str] = ()) -> str:
    """What is in the usual variables, and in these."""
    return "".join(f'echo "{name}=${{{name}:-}}"; ' for name in (*VARIABLES, *names))


def programs_question(names: Iterable[str]) -> str:
    """Which of these programs are there, of those that show a quota, and rsync."""
    return (
        f"for each in {' '.join((*names, 'rsync', *QUOTA_PROGRAMS))}; do "
        'command -v "$each" >/dev/null && echo "$each"; done; true'
    )


def job_question(names: Iterable[str] = ()) -> str:
    """For a compute node: what the job is given, and whether it reaches out."""
    return (
        variables_question(names)
        + "timeout 10 bash -c 'exec 3<>/dev/tcp/pypi.org/443' 2>/dev/null && echo internet=yes"
        + " || echo internet=no"
    )


def nodes_question(store: str) -> str:
    """What a job found out about the nodes; `store` is a shell word."""
    return f"cat {store}/nodes.json"


def disks_question(store: str) -> str:
    """The nodes' own disks, as jobs found them."""
    return f"cat {store}/disks.json"


def usable_paths(paths: Iterable[tuple[str, str]]) -> str:
    """Which of the (key, shell word) folders can be written to, read, or are not there."""
    lines = []
    for key, word in paths:
        name = shlex.quote(key)
        lines.append(
            f"if [ -w {word} ]; then echo {name}=written; "
            f"elif [ -r {word} ]; then echo {name}=read; else echo {name}=missing; fi"
        )
    return "; ".join([*lines, "true"])


def pairs(text: str) -> dict[str, str]:
    """`NAME=value` lines, those with a value."""
    found = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, _, value in found if value.strip()}
