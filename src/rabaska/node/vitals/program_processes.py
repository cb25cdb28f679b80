"""The processes of a program on this node: processor time, reads and writes, its data workers."""

import os
from typing import Dict, List, NamedTuple, Optional, Set

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_ALL_AGAIN = 20  # looks after which also others' processes are opened: numbers are used again
_SETTLED = 2  # looks at a process, after which it stays what it was taken for
_WORKER_NAME = b"pt_data_worker"  # as PyTorch calls them since 2.6
_WAITS = b"D"  # for a disk or a file server: proc(5), /proc/pid/stat


class Sums(NamedTuple):
    """What all of them did since the last look, and what they are now."""

    processor: float = 0.0  # seconds
    of_workers: float = 0.0  # seconds, of data workers alone
    held_up: float = 0.0  # seconds for which they could run and had no processor
    workers_held_up: float = 0.0
    read: int = 0  # bytes, from storage
    written: int = 0
    resident: int = 0  # bytes; what forked processes share counts for each
    workers: int = 0
    waiting: int = 0  # workers that wait for storage at this moment
    processes: int = 0


class _Stat(NamedTuple):
    name: bytes
    state: bytes
    parent: int
    started: bytes
    processor: float  # seconds
    resident: int  # bytes


class _Known:
    """One process, as the looks before have seen it."""

    def __init__(self, started: bytes, ours: bool) -> None:
        self.started = started
        self.ours = ours
        self.worker = False
        self.looks = 0
        self.processor = self.held_up = 0.0
        self.read = self.written = 0


class ProgramProcesses:
    """Finds the processes by a variable that a program and all it starts have: `tag`.

    Only processes of our own user are opened, and each environment is read once. A data worker is
    what PyTorch calls one, or a fork of a Python that goes on as the same command.
    """

    def __init__(self, tag: str, proc: str = "/proc") -> None:
        self._tag = tag.encode("utf-8", "surrogateescape")
        self._proc = proc
        self._known: Dict[int, _Known] = {}
        self._others: Set[str] = set()  # processes that are not the program's
        self._looks = 0

    def look(self) -> Sums:
        stats = self._stats()
        for pid in [one for one in self._known if one not in stats]:
            del self._known[pid]
        total = Sums()
        # Parents first: what they started is theirs.
        for pid in sorted(stats, key=lambda one: int(stats[one].started)):
            known = self._recognised(pid, stats)
            if not known.ours:
                self._others.add(str(pid))
            else:
                total = self._added(total, pid, stats[pid], known)
        return total

    def _stats(self) -> Dict[int, _Stat]:
        user, found = os.getuid(), {}
        try:
            names = os.listdir(self._proc)
        except OSError:
            names = []
        self._looks += 1
        if self._looks % _ALL_AGAIN == 0:
            self._others = {str(os.getpid())}
        for name in names:
            if not name.isdigit() or name in self._others:
                continue
            try:
                if os.stat(os.path.join(self._proc, name)).st_uid != user:
                    self._others.add(name)
                    continue
            except OSError:
                continue
            stat = self._stat(name)
            if stat is not None:
                found[int(name)] = stat
        return found

    def _stat(self, pid: str) -> Optional[_Stat]:
        line = self._content(pid, "stat")
        name, rest = line[line.find(b"(") + 1 : line.rfind(b")")], line[line.rfind(b")") + 2 :]
        fields = rest.split()
        if len(fields) < 22 or fields[0] in (b"Z", b"X"):
            return None
        seconds = (int(fields[11]) + int(fields[12])) / _TICKS
        return _Stat(name, fields[0], int(fields[1]), fields[19], seconds, int(fields[21]) * _PAGE)

    def _recognised(self, pid: int, stats: Dict[int, _Stat]) -> _Known:
        stat, known = stats[pid], self._known.get(pid)
        if known is None or known.started != stat.started:
            parent = self._known.get(stat.parent)
            known = _Known(stat.started, bool(parent and parent.ours) or self._is_tagged(pid))
            self._known[pid] = known
        if known.ours and known.looks < _SETTLED:
            known.worker = self._is_worker(pid, stat, stats.get(stat.parent))
        known.looks += 1
        return known

    def _is_tagged(self, pid: int) -> bool:
        return self._tag in self._content(str(pid), "environ").split(b"\0")

    def _is_worker(self, pid: int, stat: _Stat, parent: Optional[_Stat]) -> bool:
        if stat.name == _WORKER_NAME:
            return True
        above = self._known.get(stat.parent)
        if parent is None or above is None or not above.ours or above.worker:
            return False
        words = self._content(str(pid), "cmdline")
        forked = words == self._content(str(stat.parent), "cmdline")
        return forked and b"python" in words.split(b"\0")[0].rpartition(b"/")[2]

    def _added(self, total: Sums, pid: int, stat: _Stat, known: _Known) -> Sums:
        spent = max(0.0, stat.processor - known.processor)
        known.processor = stat.processor
        read, written = self._transferred(pid)
        came, went = max(0, read - known.read), max(0, written - known.written)
        known.read, known.written = read, written
        held_up = self._held_up(pid)
        delayed, known.held_up = max(0.0, held_up - known.held_up), held_up
        waits = known.worker and stat.state == _WAITS
        return Sums(
            total.processor + spent,
            total.of_workers + (spent if known.worker else 0.0),
            total.held_up + delayed,
            total.workers_held_up + (delayed if known.worker else 0.0),
            total.read + came,
            total.written + went,
            total.resident + stat.resident,
            total.workers + int(known.worker),
            total.waiting + int(waits),
            total.processes + 1,
        )

    def _held_up(self, pid: int) -> float:
        """Seconds in the kernel's queue for a processor: proc(5), /proc/pid/schedstat."""
        fields = self._content(str(pid), "schedstat").split()
        return int(fields[1]) / 1e9 if len(fields) > 1 and fields[1].isdigit() else 0.0

    def _transferred(self, pid: int) -> List[int]:
        """Bytes that were read from storage, and written to it."""
        found = {}
        for line in self._content(str(pid), "io").splitlines():
            name, _, number = line.partition(b": ")
            if number.isdigit():
                found[name] = int(number)
        return [found.get(b"read_bytes", 0), found.get(b"write_bytes", 0)]

    def _content(self, pid: str, name: str) -> bytes:
        try:
            with open(os.path.join(self._proc, pid, name), "rb") as stream:
                return stream.read()
        except OSError:
            return b""
