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
    "SLURM_TMPDIR",
    "LSCRATCH",
    "TMPDIR",
)
SCHEDULER_PROGRAMS = ("sbatch", "qsub", "msub", "sqsub", "qconf", "pbsnodes", "qmgr", "pbs_server")
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
_BEGIN = re.compile(r"@@asked (\S+)\n(.*?)\n@@exit (\d+)$", re.DOTALL | re.MULTILINE)

_ASK = """\
ask() {
  printf '\\n@@asked %s\\n' "$1"
  timeout "$2" bash -c "$3" </dev/null 2>&1
  printf '\\n@@exit %s\\n' "$?"
}
"""

# `type module` holds in login shells only, so the shell that is asked is told how to be one.
MODULE = "type module >/dev/null 2>&1 || source /etc/profile >/dev/null 2>&1; "

# A site has the commands of one scheduler; the others' questions cost nothing there.
_WHO = 'echo "@user $(id -un)"; echo "@groups $(id -Gn)"; '
OTHER_QUEUES = {
    "queues": f"command -v pbsnodes >/dev/null && {{ {_WHO}qstat -Q -f; }}",
    "hosts": "pbsnodes -a",
    "server": "command -v pbsnodes >/dev/null && qstat -B -f",
    "grid_queues": "set -o pipefail; "
    'qconf -sql | while read -r each; do qconf -sq "$each" && echo; done',
    "grid_hosts": "qhost -q -xml && "
    'qconf -sel | while read -r each; do qconf -se "$each" && echo; done',
}

QUESTIONS: Mapping[str, str] = {
    "variables": "".join(f'echo "{name}=${{{name}:-}}"; ' for name in VARIABLES),
    "programs": f"for each in {' '.join((*SCHEDULER_PROGRAMS, 'rsync', *QUOTA_PROGRAMS))}; do "
    'command -v "$each" >/dev/null && echo "$each"; done; true',
    "schedulers": 'sbatch --version; qstat --version; echo "SGE_ROOT=${SGE_ROOT:-}"; true',
    "partitions": "sinfo --noheader --format='%P|%l|%D|%c|%m|%G|%a|.'",
    **OTHER_QUEUES,
    "config": "scontrol show config",
    # Where sacctmgr is for administrators only, sshare tells the same.
    "accounts": "sacctmgr --noheader --parsable2 show associations user=$(id -un) format=Account "
    "2>/dev/null || sshare -U --noheader --parsable2 --format=Account",
    "pythons": f"for each in {' '.join(PYTHONS)}; do "
    'command -v "$each" >/dev/null && echo "$each $("$each" --version 2>&1)"; done; true',
    "modules": f"{MODULE}module --terse avail",
    "wheelhouse": f"{MODULE}module load python >/dev/null 2>&1; python3 -m pip config list",
}

# What may have changed since a site was looked at.
TODAY = {name: QUESTIONS[name] for name in ("partitions", *OTHER_QUEUES, "accounts")}

PROBE_NAME = "probe"
# On a compute node: what the job is given, and whether it reaches out.
PROBE = (
    "".join(f'echo "{name}=${{{name}:-}}"; ' for name in VARIABLES)
    + "timeout 10 bash -c 'exec 3<>/dev/tcp/pypi.org/443' 2>/dev/null && echo internet=yes"
    + " || echo internet=no"
)

NODES_NAME = "nodes"
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


def script(more: Mapping[str, str] | None = None, usual: Mapping[str, str] = QUESTIONS) -> str:
    """All questions at once: one round trip, whatever the distance."""
    asked = {**usual, **(more or {})}
    patience = {PROBE_NAME: _PATIENCE_FOR_JOBS}
    lines = [
        f"ask {name} {patience.get(name, _PATIENCE)} {shlex.quote(asking)}"
        for name, asking in asked.items()
    ]
    return _ASK + "\n".join(lines) + "\n"


def answers(output: str) -> dict[str, SiteAnswer]:
    found = _BEGIN.findall(output.replace("\r\n", "\n"))
    return {name: SiteAnswer(int(code), text.strip("\n")) for name, text, code in found}


def probe_question(account: str = "") -> str:
    """A job of one minute; `srun` waits for it and prints what it printed."""
    pays = f" --account={shlex.quote(account)}" if account else ""
    return f"srun --quiet --ntasks=1 --time=1{pays} bash -c {shlex.quote(PROBE)}"


def nodes_question(store: str) -> str:
    """What a job found out about the nodes; `store` is a shell word."""
    return f"cat {store}/nodes.json"


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
