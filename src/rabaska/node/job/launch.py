"""How the program's processes are started: once, by torchrun, one for each task, or by MPI.

What reaches every node is srun, or our own `on-nodes` where there is none. Every form but the plain
one goes through our own `task` (see there), one for each process that these start, so that a
program on many nodes is asked to stop as gently as one here.
"""

import os
import re
import shlex
import sys
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

from .. import command_words, files
from ..own_program import own_path
from ..record.plan import Launch
from . import node_helper

PROGRAM = "program"
TORCHRUN = "torchrun"
SRUN = "srun"
MPI = "mpi"
MPIRUN = "mpirun"

_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")  # options of Python that take another word
_RANKS = {
    "RANK": (node_helper.PROCESS, "SLURM_PROCID"),
    "LOCAL_RANK": (node_helper.LOCAL, "SLURM_LOCALID"),
    "GROUP_RANK": (node_helper.NODE, "SLURM_NODEID"),
}
_RSH = '#!/bin/sh\nexec {} "$@"\n'
_NODE_RANK = "PET_NODE_RANK"  # as torchrun reads its option --node-rank
_MEETING = "torchrun"  # the file in which the processes of one node find each other
_FIRST_PORT, _PORTS = 10000, 20000  # below what systems hand out by themselves


class Allocation(NamedTuple):
    """Where the processes meet."""

    host: str  # the first node, as the others know it
    port: int
    job_id: str
    folder: str  # on this node, and ours alone


def allocation(environment: Mapping[str, str], job_id: str, host: str, folder: str) -> Allocation:
    """Two jobs on one node have different numbers, and so they have different ports."""
    number = environment.get("SLURM_JOB_ID") or re.sub(r"\D", "", job_id) or "0"
    port = _FIRST_PORT + int(number) % _PORTS
    return Allocation(environment.get("SLURMD_NODENAME") or host, port, job_id or "job", folder)


def launched(
    words: List[str], how: Launch, where: Allocation, task: List[str], inside: Sequence[str] = ()
) -> List[str]:
    """The words that start `words` as `how` says; `task` are those of our own wrapper.

    `inside` are the words that enter a container: every process goes into one of its own, and the
    wrapper with it, since it signals those below it.
    """
    task, alone = list(inside) + task, list(inside)
    if how.form == TORCHRUN:
        words = torchrun(words, how, where)
        if how.nodes == 1:
            return task + ["--below", "--"] + words
        return on_all(how, tasks=1) + task + ["--below", "--node", "--"] + words
    if how.form == SRUN:
        return on_all(how, how.tasks) + task + ["--ranks", "--"] + words
    if how.form == MPI and how.mpi == MPIRUN:
        # mpirun passes its input on to the first process only; signals reach them all.
        return [MPIRUN, "-n", str(how.nodes * how.tasks)] + alone + words
    if how.form == MPI:
        kind = ["--mpi=" + how.mpi] if how.mpi else []
        return srun(how, how.tasks) + kind + task + ["--"] + words
    return alone + words


def through_tasks(how: Launch) -> bool:
    """Whether our own `task` stands between the agent and the program."""
    return how.form in (TORCHRUN, SRUN) or (how.form == MPI and how.mpi != MPIRUN)


def by_starter(how: Launch) -> bool:
    """Whether srun or `on-nodes` starts several tasks, of which it ends all when one fails."""
    return through_tasks(how) and (how.form != TORCHRUN or how.nodes > 1)


def is_elsewhere(how: Launch) -> bool:
    """Whether processes of the program may not be below the agent: srun has them started."""
    by_srun = how.form == MPI or how.reach == SRUN
    return by_starter(how) and (by_srun or how.nodes > 1)


def on_all(how: Launch, tasks: int) -> List[str]:
    """What starts a command `tasks` times on every node."""
    return srun(how, tasks) if how.reach == SRUN else our_launcher(how, tasks)


def our_launcher(how: Launch, tasks: int) -> List[str]:
    words = [sys.executable, own_path(), "on-nodes", "--reach=" + how.reach]
    return words + ["--nodes={}".format(how.nodes), "--tasks={}".format(tasks), "--"]


def srun(how: Launch, tasks: int) -> List[str]:
    """One srun over all nodes; when one process fails, the others do not wait for it in vain."""
    words = ["srun", "--nodes={}".format(how.nodes), "--ntasks={}".format(how.nodes * tasks)]
    words += ["--ntasks-per-node={}".format(tasks), "--kill-on-bad-exit=1", "--export=ALL"]
    # srun does not take it over from sbatch since 22.05 (srun(1), --cpus-per-task).
    words.append("--cpus-per-task={}".format((how.cores or 1) * how.tasks // tasks))
    return words


def torchrun(words: List[str], how: Launch, where: Allocation) -> List[str]:
    """`python train.py` → `python -m torch.distributed.run … train.py`.

    Not the `torchrun` on the PATH, which may belong to another Python. Nor `--standalone`, or the
    backend c10d over the network: they unpickle what they find at a port that every user of the
    node can write to, so that anybody could run code as us.
    """
    meeting = ["--rdzv-backend=c10d", "--rdzv-conf=store_type=file"]
    meeting.append("--rdzv-endpoint=" + os.path.join(where.folder, _MEETING))
    if how.nodes > 1:
        # `task` says which node this is.
        meeting = ["--master-addr=" + where.host, "--master-port={}".format(where.port)]
    counts = ["--nnodes={}".format(how.nodes), "--nproc-per-node={}".format(how.tasks)]
    run = ["-m", "torch.distributed.run"] + counts + meeting
    if not command_words.is_python(words[0]):
        return ["python3"] + run + ["--no-python"] + words
    place = _script(words)
    if place is None:
        return [words[0]] + run + ["--no-python"] + words
    return words[:place] + run + words[place:]


def _script(words: List[str]) -> Optional[int]:
    """Where the script, or `-m` and its module, begins; None when Python runs neither."""
    place = 1
    while place < len(words) and words[place].startswith("-"):
        if words[place] == "-m":
            return place
        if words[place] in ("-", "-c"):
            return None
        place += 2 if words[place] in _WITH_VALUE else 1
    return place if place < len(words) else None


def variables(how: Launch, where: Allocation, given: Mapping[str, str]) -> Dict[str, str]:
    """What the processes are told of each other and of their cores."""
    told = {}  # type: Dict[str, str]
    if how.cores:
        told["RABASKA_WORKERS"] = str(how.cores)
        told["OMP_NUM_THREADS"] = given.get("OMP_NUM_THREADS") or str(how.cores)
    if how.form == SRUN:
        told["MASTER_ADDR"] = where.host
        told["MASTER_PORT"] = str(where.port)
        told["WORLD_SIZE"] = str(how.nodes * how.tasks)
        told["LOCAL_WORLD_SIZE"] = str(how.tasks)
    return told


def rank(environment: Mapping[str, str]) -> Dict[str, str]:
    """What srun or `on-nodes` calls this process, in the words of torch.distributed."""
    return {
        ours: environment[theirs]
        for ours, names in _RANKS.items()
        for theirs in names
        if theirs in environment
    }


def node(environment: Mapping[str, str]) -> Dict[str, str]:
    """Which of the nodes this is, in the words of torchrun."""
    number = rank(environment).get("GROUP_RANK")
    return {} if number is None else {_NODE_RANK: number}


def number_of(environment: Mapping[str, str]) -> Optional[str]:
    """Which of all processes this is, from 0."""
    return rank(environment).get("RANK")


def mpi_variables(how: Launch, folder: str, given: Mapping[str, str]) -> Dict[str, str]:
    """What mpirun needs to find the job's other nodes, where it was not built for the scheduler.

    What it starts on other nodes looks for its starter there too, so `folder` is on shared storage.
    Open MPI that knows the scheduler passes over both; before version 5 they begin with OMPI.
    """
    several = how.form == MPI and how.mpi == MPIRUN and how.nodes > 1
    if not several or how.reach == SRUN or not given.get("PBS_NODEFILE"):
        return {}
    path = os.path.join(folder, "rsh.sh")
    ours = [sys.executable, own_path(), "rsh", "--reach", how.reach]
    files.write_whole(path, _RSH.format(" ".join(map(shlex.quote, ours))).encode())
    agent = "sh " + path
    told = {
        "OMPI_MCA_plm_rsh_agent": agent,
        "OMPI_MCA_orte_default_hostfile": given["PBS_NODEFILE"],
        "PRTE_MCA_plm_ssh_agent": agent,
        "PRTE_MCA_prte_default_hostfile": given["PBS_NODEFILE"],
    }
    return {name: text for name, text in told.items() if name not in given}


def task_words(signal: str, failures: Optional[str], python: str = "") -> List[str]:
    """Our own `task`, run by the Python that runs the agent; every node has it, an image not."""
    words = [python or sys.executable, own_path(), "task", "--signal", signal]
    return words + ["--failures", failures] if failures else words
