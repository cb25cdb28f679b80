"""The other nodes of a job where there is no srun: which they are, and what starts a word there.

Both are told by `reach`, in words of the job's scheduler: first a shell command that lists the
nodes, a name at the beginning of each line; after `; ` what stands before a command on one of them,
where `{host}` is its name and `{place}` its place in that list.
"""

import os
import shlex
import subprocess
from typing import List, NamedTuple, Tuple

# As runs that were made by earlier versions call them.
_BEFORE = {
    "pbsdsh": 'cat "$PBS_NODEFILE"; pbsdsh -n {place} --',
    "qrsh": 'cat "$PE_HOSTFILE"; qrsh -inherit -nostdin {host}',
}
_SSH = ["ssh", "-n", "-o", "BatchMode=yes", "{host}"]


class JobNode(NamedTuple):
    name: str
    place: int  # in the scheduler's list of the job's processors


class NotReached(Exception):
    """A node of the job cannot be reached, or is not there."""


def hosts(reach: str, own: str) -> List[JobNode]:
    """Each node of the job once, its first node first; `own` alone where no list tells."""
    listing, _ = _parts(reach)
    if not listing:
        return [JobNode(own, 0)]
    told = subprocess.Popen(
        ["sh", "-c", listing],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        start_new_session=True,  # some schedulers warn every process of a job's group
    )
    said, complained = told.communicate()
    if told.returncode != 0:
        raise OSError(" ".join(complained.split()) or "exit code {}".format(told.returncode))
    names = [line.split()[0] for line in said.splitlines() if line.split()]
    return [JobNode(name, names.index(name)) for name in dict.fromkeys(names)]


def several(reach: str, own: str, count: int) -> List[JobNode]:
    """As many nodes as the program was promised."""
    if count == 1:
        return [JobNode(own, 0)]
    try:
        found = hosts(reach, own)
    except OSError as problem:
        raise NotReached("the list of this job's nodes cannot be read: {}".format(problem))
    if len(found) < count:
        names = ", ".join(host.name for host in found)
        raise NotReached("the job has {} of {} nodes: {}".format(len(found), count, names))
    return found[:count]


def host_called(name: str, known: List[JobNode]) -> JobNode:
    """By its full name or the first word of it: schedulers and programs differ in that."""
    for same in (lambda host: host.name == name, lambda host: _short(host.name) == _short(name)):
        for host in known:
            if same(host):
                return host
    raise NotReached("{} is no node of this job".format(name))


def starting(reach: str, host: JobNode, words: List[str], search: str) -> List[str]:
    """The command that starts `words` on `host`; by ssh where PATH, `search`, lacks the other."""
    _, before = _parts(reach)
    if not before or not _is_there(before[0], search):
        before, words = _SSH, [" ".join(map(shlex.quote, words))]
    told = [word.replace("{host}", host.name) for word in before]
    return [word.replace("{place}", str(host.place)) for word in told] + words


def _parts(reach: str) -> Tuple[str, List[str]]:
    listing, _, words = _BEFORE.get(reach, reach).partition("; ")
    return listing, words.split()


def _is_there(program: str, search: str) -> bool:
    folders = search.split(os.pathsep)
    return any(os.access(os.path.join(folder, program), os.X_OK) for folder in folders if folder)


def _short(name: str) -> str:
    return name.partition(".")[0]
