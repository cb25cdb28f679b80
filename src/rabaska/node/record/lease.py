"""Who holds a run: exactly one agent at a time, and a stale one can no longer write.

`carried/<n>` leads to what the program writes, where n is the job that holds the run. The next
job claims the run by renaming it to `carried/<n+1>`. If the holder before it left no record of
its end, the folder itself, `kept/<m>/`, is renamed too, and the paths of a holder that was thought
dead stop resolving. No clock of another machine is ever compared with ours.

A node may remember for a minute what a folder held (NFS does), so neither a rename nor a listing
proves anything: Linux takes a rename for done when it finds the folder under its new name already.
What proves it is `jobs/<n>/claimed`. It is made exclusively, which the server decides, so one of
several contenders makes it; and who takes over writes into it, which the old holder sees at its
next sign of life, because a file that is opened is asked for anew (close-to-open).
"""

import errno
import os
import socket
import threading
import time
from typing import Callable, NamedTuple, Optional, Tuple

from .. import awake_clock, files, processes
from . import carried_links, jobs
from .run_folder import RunFolder

SECONDS = 60.0  # a holder on another machine that gave no sign for so long is over
LOOKS = 20  # at the holder, while one lease is waited out
BEATS = 6  # signs of life in one lease
LONGEST_PAUSE = 2.0  # seconds between two looks at the clock; a longer one was slept through
# What a rename says when another contender was quicker.
_LATE = (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST, errno.ESTALE)
RECORDS = 65536  # bytes that the records of one job take at most, its reserve included


class LeaseDiskFull(Exception):
    """The storage is full; who claimed the run now could not even say that."""


def seconds() -> float:
    return float(os.environ.get("RABASKA_LEASE_SECONDS") or SECONDS)


class LeaseTurn(NamedTuple):
    job: int  # who holds the run, or held it last; 0 when nobody did
    free: bool


def holder_alive(run: RunFolder, job: int) -> Optional[bool]:
    """Whether job `job` still holds the run; None when that cannot be told from here."""
    if job == 0 or jobs.read_ended(run, job) is not None:
        return False
    begun = jobs.read_begun(run, job)
    if begun is None or begun.boot != processes.boot_id() or begun.host != socket.gethostname():
        return None
    return begun.started is not None and processes.is_alive(begun.pid, begun.started)


def wait_for_turn(run: RunFolder, lease: float, interrupted: Callable[[], bool]) -> LeaseTurn:
    """Watch the holder until it is over, or for `lease` seconds.

    A living holder is watched that long too: schedulers may start the next job while the last
    one is still being ended.
    """
    began = time.monotonic()
    job, sign, still_since = -1, None, began  # type: int, Optional[Tuple[int, bytes]], float
    while True:
        now = time.monotonic()
        current = run.holder(), sign_of_life(run, run.holder())
        if current != (job, sign):
            (job, sign), still_since = current, now
        alive = holder_alive(run, job)
        if alive is False or (alive is None and now - still_since >= lease):
            return LeaseTurn(job, free=True)
        # A holder that is watched in silence gets one whole lease from the last sign seen.
        if interrupted() or (now - began >= lease and (alive or still_since > began + lease / 2)):
            return LeaseTurn(job, free=False)
        time.sleep(min(1.0, lease / LOOKS))


def sign_of_life(run: RunFolder, job: int) -> Optional[Tuple[int, bytes]]:
    """What changes as long as the holder lives; opened anew, so that NFS asks its server."""
    try:
        with open(run.heartbeat(job), "rb") as stream:
            return os.fstat(stream.fileno()).st_mtime_ns, stream.read(64)
    except OSError:
        return None


def ask_to_hand_over(run: RunFolder, job: int, job_id: str) -> bool:
    """Ask a living holder to leave the run to us; False when it is of another submission.

    A scheduler that runs one job at a time and starts another has given up the holder's, whose
    node may be cut off from it but not from the storage.
    """
    begun = jobs.read_begun(run, job)
    ours, theirs = job_id.partition("_")[0], (begun.id if begun else "").partition("_")[0]
    if not ours or ours != theirs:
        return False
    files.write_json(run.successor(job), {"id": job_id, "time": time.time()})
    return True


def claim(
    run: RunFolder, last: int, job_id: str, lease: float, *, dead: bool = False
) -> "Optional[Lease]":
    """Become the holder after job `last`; None when another was quicker, or NoRoom.

    `dead` says that nothing of that job is left anywhere, though it recorded no end.
    """
    job = last + 1
    _look_for_room(run)
    try:
        os.rename(run.carried(last), run.carried(job))
    except OSError as problem:
        if problem.errno not in _LATE and os.path.isdir(run.carried(last)):
            raise
        return None
    os.makedirs(run.job(job), exist_ok=True)
    if not _is_first(run, job):
        return None
    _tell_taken(run, last, job)
    carried_links.settle(run, last, job, is_over=dead or jobs.read_ended(run, last) is not None)
    jobs.write_begun(run, _begun(job, job_id))
    files.sync_folder(os.path.dirname(run.carried(job)))
    carried_links.point_output(run, job)
    return Lease(run, job, lease)


def _is_first(run: RunFolder, job: int) -> bool:
    """Whether nobody else claimed the run for this job: the storage decides, once."""
    try:
        descriptor = os.open(run.claimed(job), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    try:
        os.write(descriptor, _mark(0))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return True


def _mark(successor: int) -> bytes:
    """Always as long: a node may remember a file's size for a while."""
    return "taken by {:010d}\n".format(successor).encode("ascii")


def _tell_taken(run: RunFolder, last: int, job: int) -> None:
    """In place: another file under that name might not be seen."""
    try:
        descriptor = os.open(run.claimed(last), os.O_WRONLY)
    except FileNotFoundError:
        return  # the first job has none before it
    try:
        os.pwrite(descriptor, _mark(job), 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_taken(run: RunFolder, job: int) -> bool:
    try:
        with open(run.claimed(job), "rb") as stream:
            said = stream.read(len(_mark(0)))
    except FileNotFoundError:
        return False
    return len(said) == len(_mark(0)) and said != _mark(0)


def _look_for_room(run: RunFolder) -> None:
    trial = "{}.{}.{}{}".format(run.output_link, socket.gethostname(), os.getpid(), files.PARTIAL)
    try:
        with open(trial, "wb") as stream:
            stream.write(b"\0" * RECORDS)
    except OSError as problem:
        raise LeaseDiskFull("{} cannot be written to: {}".format(run.path, problem.strerror))
    finally:
        files.remove_if_there(trial)


def _begun(job: int, job_id: str) -> jobs.Begun:
    pid = os.getpid()
    return jobs.Begun(
        job=job,
        id=job_id,
        host=socket.gethostname(),
        boot=processes.boot_id(),
        pid=pid,
        started=processes.start_id(pid),
        begun=time.time(),
    )


class Lease:
    """The holding of a run, kept alive by a thread.

    Only that thread touches shared storage: when the storage hangs, whoever asks `lost()` still
    gets an answer.
    """

    def __init__(self, run: RunFolder, job: int, lease: float) -> None:
        self.run = run
        self.job = job
        self.stop_asked = False  # somebody wrote STOP into the run
        self.superseded = False
        self.successor = False  # the scheduler started another job, which waits for ours to end
        self.quiet = threading.Lock()  # held around a fork, so that no lock is copied half taken
        self._lease = lease
        self._beats = 0
        # A job that was suspended renews first and is judged then: the time for which nothing of
        # it ran does not count. Who took over meanwhile is seen by the first renewal.
        self.clock = awake_clock.AwakeClock(min(LONGEST_PAUSE, lease / BEATS))
        self._renewed = self.clock.now()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)
        self.renew()
        self._thread.start()

    def lost(self) -> str:
        """Why the run may no longer be written to; "" while it may."""
        if self.superseded:
            return "another job holds the run now"
        silent = self.clock.now() - self._renewed
        if silent > self._lease / 2:
            return "the run folder could not be reached for {:.0f} s".format(silent)
        return ""

    def renew(self) -> None:
        """Give a sign of life, unless another job took over."""
        with self.quiet:
            try:
                # Not whether our own folder is there: a stale program may have made it anew.
                newer = self.run.holder() > self.job
                self.superseded = newer or _is_taken(self.run, self.job)
                if self.superseded or not os.path.isdir(self.run.carried(self.job)):
                    return
                self._beats += 1
                _beat(self.run.heartbeat(self.job), self._beats)
                self.stop_asked = os.path.exists(self.run.stop)
                self.successor = os.path.exists(self.run.successor(self.job))
            except OSError:
                return  # not renewed: `lost` counts the seconds
            self._renewed = self.clock.now()

    def end(self) -> None:
        self._over.set()
        self.clock.end()
        self._thread.join(timeout=1.0)

    def _keep(self) -> None:
        while not self._over.wait(min(self._lease / BEATS, 2.0)):
            self.renew()


def _beat(path: str, number: int) -> None:
    """Change the heartbeat in place: the same few bytes, so that a full disk does not matter."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.pwrite(descriptor, "{:020d}\n".format(number).encode("ascii"), 0)
    except OSError:
        os.utime(path)
    finally:
        os.close(descriptor)
