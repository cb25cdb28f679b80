"""What several schedulers spell alike: times, names, and what they cannot do."""

import re
import zlib
from collections.abc import Sequence
from datetime import timedelta

from rabaska.domain.jobs import JobSpec

_LONGEST_NAME = 15  # what every PBS ever made accepts


def one_line(text: str) -> str:
    return " ".join(text.split())


def one_word(text: str) -> str:
    return "".join(text.split())


def clock(walltime: timedelta) -> str:
    """`HH:MM:SS`, with more than 24 hours where needed: days are not understood everywhere."""
    seconds = max(1, -(-walltime // timedelta(seconds=1)))
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def job_name(name: str) -> str:
    """A name in letters that every scheduler takes.

    A long one keeps the end that is its own, and a digest for what is left out: jobs that wait
    are found by their name.
    """
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")
    plain = plain if plain[:1].isalpha() else f"r-{plain}".rstrip("-")
    if len(plain) <= _LONGEST_NAME:
        return plain
    return f"{plain[: _LONGEST_NAME - 9]}{zlib.crc32(name.encode()) & 0xFFFF:04x}{plain[-5:]}"


def jobs_called(ask: str) -> tuple[str, ...]:
    """Lists the jobs of a name, for `Capabilities.find`; the shell words `ask` print their ids."""
    listing = f'jobs=$({ask}) || exit; for job in $jobs; do echo "$job named"; done'
    return ("sh", "-c", listing, "{name}")


def carried(ask: str, name: str, job: str) -> list[str]:
    """Prints the name of a job: what the sed words `name` make of what `ask` tells of job `$0`."""
    return ["sh", "-c", f"""told=$({ask}) || exit; printf '%s\\n' "$told" | sed -n '{name}'""", job]


def mebibytes(memory: int | None) -> int:
    return -(-(memory or 0) // 2**20)


def plain_path(path: str) -> str:
    """The path where a directive can hold it, else nothing: colons and commas mean things there."""
    return path if re.fullmatch(r"/[\w./+@=-]*", path, re.ASCII) else ""


def once_on_the_first(spec: JobSpec) -> dict[str, bool]:
    """What is unmet where a job has several nodes, and whether it is."""
    nodes = spec.resources.nodes
    return {
        f"the program is started once, on the first of {nodes} nodes; "
        "`launch` in rabaska.toml starts it on all of them": nodes > 1 and spec.launch == "program",
    }


def said(problems: dict[str, bool]) -> list[str]:
    return [sentence for sentence, holds in problems.items() if holds]


def on_node(find: str, job: str, command: str, *, terminal: bool) -> list[str]:
    """ssh to the node that the shell words `find` print for the job `$0`; `command` is quoted.

    Without a terminal ssh can ask nothing: it takes the key of a node that it never saw, where it
    is new enough to know that word.
    """
    quiet = "ssh -o BatchMode=yes -o LogLevel=ERROR -o ${new:-BatchMode=yes}"
    ssh = "ssh -t" if terminal else quiet
    trial = "new=StrictHostKeyChecking=accept-new; ssh -G -o $new x >/dev/null 2>&1 || new="
    script = f'node=$({find}); {"" if terminal else f"{trial}; "}exec {ssh} "$node" "$1"'
    return ["sh", "-c", script, job, command]


def by_hand(ask: Sequence[str], command: str, *, terminal: bool) -> list[str]:
    """An allocation that gives a shell and takes no command: its user types it there."""
    if not terminal:
        return refusal(f"`{ask[0]} -I` needs a terminal; use `rabaska run` for a batch job")
    words = f"when the shell of the node is there, type: {command}"
    return ["sh", "-c", 'echo "$0" >&2; exec "$@"', words, *ask]


def refusal(why: str) -> list[str]:
    return ["sh", "-c", 'echo "$0" >&2; exit 2', why]
