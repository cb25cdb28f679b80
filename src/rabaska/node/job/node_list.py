"""The other nodes of a job where there is no srun: which they are, and what starts a word there."""

import os
import shlex
from typing import List, Mapping, NamedTuple

SRUN = "srun"  # Slurm's own; everything else goes through our `spread`
PBSDSH = "pbsdsh"  # PBS Pro, OpenPBS and Torque
QRSH = "qrsh"  # Grid Engine
SSH = "ssh"

_LISTS = {PBSDSH: "PBS_NODEFILE", QRSH: "PE_HOSTFILE"}


class JobNode(NamedTuple):
    name: str
    place: int  # in the scheduler's list of the job's processors


class NotReached(Exception):
    """A node of the job cannot be reached, or is not there."""


def hosts(environment: Mapping[str, str], own: str) -> List[JobNode]:
    """Each node of the job once, its first node first; `own` alone where no list tells."""
    path = next((environment[name] for name in _LISTS.values() if environment.get(name)), "")
    if not path:
        return [JobNode(own, 0)]
    with open(path) as stream:
        names = [line.split()[0] for line in stream if line.split()]
    return [JobNode(name, names.index(name)) for name in dict.fromkeys(names)]


def several(environment: Mapping[str, str], own: str, count: int) -> List[JobNode]:
    """As many nodes as the program was promised."""
    if count == 1:
        return [JobNode(own, 0)]
    try:
        found = hosts(environment, own)
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


def starting(reach: str, host: JobNode, words: List[str]) -> List[str]:
    """The command that starts `words` on `host`."""
    if reach == PBSDSH:
        return ["pbsdsh", "-n", str(host.place), "--"] + words
    if reach == QRSH:
        return ["qrsh", "-inherit", "-nostdin", host.name] + words
    line = " ".join(map(shlex.quote, words))
    return ["ssh", "-n", "-o", "BatchMode=yes", host.name, line]


def on_this_site(reach: str, search: str) -> str:
    """`reach`, or ssh where the node does not have that program."""
    folders = search.split(os.pathsep)
    there = any(os.access(os.path.join(folder, reach), os.X_OK) for folder in folders if folder)
    return reach if there else SSH


def _short(name: str) -> str:
    return name.partition(".")[0]
