"""Processes: who descends from whom, who still lives, and how a whole tree is ended.

Linux is read through /proc; elsewhere `ps` answers the same questions more slowly.
"""

import os
import signal
import subprocess
import sys
import time
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Set

# From <sys/prctl.h>.
_SET_CHILD_SUBREAPER = 36
_GET_CHILD_SUBREAPER = 37

_PAUSE = 0.05  # between two looks at processes that are asked to end
_PATIENCE = 10.0  # a process stuck in the kernel does not die of KILL; nobody waits for it forever


class Process(NamedTuple):
    pid: int
    parent: int
    group: int
    session: int
    started: str  # together with the pid it names one process, whatever the pid is used for later
    dead: bool  # ended, but its parent has not noticed


def become_reaper() -> bool:
    """From now on orphans among our descendants become our children; False where that cannot be."""
    return _prctl(_SET_CHILD_SUBREAPER, 1) == 0


def is_reaper() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        import ctypes
    except ImportError:
        return False
    answer = ctypes.c_int(0)
    return _prctl(_GET_CHILD_SUBREAPER, ctypes.byref(answer)) == 0 and bool(answer.value)


def _prctl(option: int, argument: object) -> int:
    if not sys.platform.startswith("linux"):
        return -1
    try:
        import ctypes  # some clusters' Pythons were built without it

        return int(ctypes.CDLL(None).prctl(option, argument, 0, 0, 0))
    except (ImportError, OSError, AttributeError):
        return -1


def boot_id() -> str:
    """Names this boot of this computer and the space in which its pids mean something.

    A container has pids of its own under the same kernel: a pid recorded there says nothing here.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id") as stream:
            boot = stream.read().strip()
        return "{} {}".format(boot, os.readlink("/proc/self/ns/pid"))
    except OSError:
        return _printed("sysctl", "-n", "kern.bootsessionuuid").strip()


def start_id(pid: int) -> Optional[str]:
    """What tells this process from a later one with the same pid; None when none is alive."""
    process = _read_process(pid) if os.path.isdir("/proc/self") else _table().get(pid)
    return None if process is None or process.dead else process.started


def age(pid: int) -> Optional[float]:
    """Seconds since a process was made, also if it became another program; None: unknown."""
    try:
        with open("/proc/uptime") as stream:
            up = float(stream.read().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    process = _read_process(pid)
    if process is None:
        return None
    return up - int(process.started) / os.sysconf("SC_CLK_TCK")


def is_alive(pid: int, started: str) -> bool:
    return start_id(pid) == started


def descendants(*pids: int) -> List[int]:
    """Every living process below `pids`, themselves left out; children before grandchildren."""
    return _below(pids, _table())


def children(pid: int) -> List[int]:
    return [one.pid for one in _table().values() if one.parent == pid and not one.dead]


def started(pids: Iterable[int]) -> Dict[int, str]:
    """Those that live, each with what tells it from a later one of the same number."""
    table = _table()
    return {one: table[one].started for one in pids if one in table and not table[one].dead}


def heads(known: Dict[int, str]) -> List[int]:
    """Those that live and whose parent is none of them: whom a signal to the others would pass by.

    In a pipeline it is the writer: who reads what it prints (`tee`) ends when the writer does.
    """
    table = _table()
    alive = [one for one in known if one in table and table[one].started == known[one]]
    alive = [one for one in alive if not table[one].dead]
    written = {pipe for one in alive for pipe in (_pipe(one, 1), _pipe(one, 2)) if pipe}
    found = [one for one in alive if table[one].parent not in alive]
    return [one for one in found if _pipe(one, 0) not in written] or found


def _pipe(pid: int, descriptor: int) -> str:
    """The pipe that a process has as this descriptor; "" where it is something else."""
    try:
        leads_to = os.readlink("/proc/{}/fd/{}".format(pid, descriptor))
    except OSError:
        return ""
    return leads_to if leads_to.startswith("pipe:") else ""


def carrying(variable: str, value: str) -> List[int]:
    """The living processes whose environment was given `variable` with `value`, ours left out.

    Finds what escaped every other net: a tag in the environment survives a double fork and a new
    session. Only Linux shows it, and only for processes of the same user.
    """
    wanted = "{}={}".format(variable, value).encode("utf-8")
    found = []
    for pid in _numbered_entries():
        try:
            with open("/proc/{}/environ".format(pid), "rb") as stream:
                environment = stream.read()
        except OSError:
            continue
        if wanted in environment.split(b"\0") and pid != os.getpid():
            found.append(pid)
    return found


def signal_all(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # gone already, or never ours to end


def reap_adopted(own: int) -> None:
    """Bury dead orphans that were left to us, and leave our own child `own` to its `Popen`."""
    while hasattr(os, "waitid"):
        try:
            dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if dead is None or dead.si_pid == own:
            return
        _reap(dead.si_pid)


def end_tree(pid: int, grace: float) -> bool:
    """End `pid` and all that came from it: TERM, `grace` seconds, KILL. True when none is left.

    A reaper ends every process below itself, because double-forked orphans are its children now;
    it should have no other child at that moment. Without a reaper, members of the session that
    `pid` leads and whatever was once seen below it are ended. `pid` itself is left for its `Popen`.
    """
    seen: Dict[int, str] = {}

    def tree() -> List[int]:
        table = _table()
        known = [
            one for one, started in seen.items() if one in table and table[one].started == started
        ]
        led = [one.pid for one in table.values() if pid in (one.group, one.session)]
        roots = {pid, *known, *led}
        if is_reaper():
            roots.add(os.getpid())
        found = {one for one in [*roots, *_below(roots, table)] if one in table}
        found.discard(os.getpid())
        seen.update((one, table[one].started) for one in found)
        return [one for one in sorted(found) if not table[one].dead]

    return end_all(tree, grace, own=pid)


def end_all(find: Callable[[], List[int]], grace: float, own: int = 0) -> bool:
    """End whatever `find` finds, again and again until it finds nothing: TERM, `grace`, KILL."""
    asked: Set[int] = set()
    start = time.monotonic()
    while True:
        left = find()
        if not left:
            break
        waited = time.monotonic() - start
        if waited > grace + _PATIENCE:
            return False
        if waited >= grace:
            signal_all(left, signal.SIGKILL)
        else:
            new = [pid for pid in left if pid not in asked]
            signal_all(new, signal.SIGTERM)
            signal_all(new, signal.SIGCONT)  # a stopped process would sleep through TERM
            asked.update(new)
        reap_adopted(own)
        time.sleep(_PAUSE)
    reap_adopted(own)
    return True


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass


def _below(roots: Iterable[int], table: Dict[int, Process]) -> List[int]:
    children: Dict[int, List[int]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process.pid)
    found: List[int] = []
    reached = set(roots)
    frontier = list(reached)
    while frontier:
        below = [child for parent in frontier for child in children.get(parent, ())]
        frontier = [child for child in below if child not in reached]
        reached.update(frontier)
        found.extend(child for child in frontier if not table[child].dead)
    return found


def _table() -> Dict[int, Process]:
    if not os.path.isdir("/proc/self"):
        return _table_of_ps()
    looked = (_read_process(pid) for pid in _numbered_entries())
    return {process.pid: process for process in looked if process is not None}


def _numbered_entries() -> List[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _read_process(pid: int) -> Optional[Process]:
    try:
        with open("/proc/{}/stat".format(pid), "rb") as stream:
            line = stream.read()
    except OSError:
        return None
    # The name in parentheses may itself hold spaces and parentheses: proc(5), /proc/pid/stat.
    fields = line[line.rfind(b")") + 2 :].split()
    if len(fields) < 20:
        return None  # it went away while it was read
    state, parent, group, session = fields[0], int(fields[1]), int(fields[2]), int(fields[3])
    return Process(pid, parent, group, session, fields[19].decode(), state in (b"Z", b"X"))


def _table_of_ps() -> Dict[int, Process]:
    table = {}
    for line in _printed("ps", "-A", "-o", "pid=,ppid=,pgid=,stat=,lstart=").splitlines():
        words = line.split(None, 4)
        if len(words) == 5:
            pid, parent, group = (int(word) for word in words[:3])
            table[pid] = Process(pid, parent, group, 0, words[4], words[3].startswith("Z"))
    return table


def _printed(*words: str) -> str:
    """What a command prints; nothing when there is no such command."""
    try:
        done = subprocess.run(words, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return ""
    return done.stdout.decode("utf-8", "replace")
