"""What a run's program printed, job after job, and what it goes on to print.

`tail RUNFOLDER [--job N] [--follow] [--since SECONDS] [--grep PATTERN] [--from BYTE]`

The bytes of the logs pass unchanged; one line announces each job. What is printed is the same
each time, so a reader that lost its connection begins again with --from and the number of bytes
it has. With --grep, lines that match are printed only, and jobs that have some. With --since, what
was printed before is left out; `log_times` says when what was printed.
"""

import argparse
import os
import re
import select
import sys
import time
from typing import BinaryIO, List, Optional, Pattern

from ..record import chain_rule, jobs, lease, log_times, plan, resume_evidence
from ..record.run_folder import RunFolder

CHUNK = 64 * 1024
PAUSE = 0.3  # seconds between two looks at a log


def main(argv: List[str]) -> int:
    parser = argparse.ArgumentParser(prog="tail")
    parser.add_argument("run", metavar="RUNFOLDER")
    parser.add_argument("--job", type=int, metavar="N", help="this job only")
    parser.add_argument("--follow", action="store_true", help="until the run is over")
    parser.add_argument("--from", type=int, default=0, metavar="BYTE", dest="start")
    parser.add_argument("--since", type=float, metavar="SECONDS", help="printed since then only")
    parser.add_argument("--grep", metavar="PATTERN", help="lines that match only")
    options = parser.parse_args(argv)
    run = RunFolder(os.path.abspath(options.run))
    if not os.path.isdir(run.path):
        sys.stderr.write("there is no run folder {}\n".format(run.path))
        return 9
    try:
        printer = Printer(sys.stdout.buffer, options.start)
        if options.grep is not None:
            printer = MatchPrinter(sys.stdout.buffer, options.start, re.compile(options.grep))
        since = None if options.since is None else time.time() - options.since
        _print(printer, run, options.job, options.follow, since)
    except re.error as problem:
        sys.stderr.write("not a regular expression: {}\n".format(problem))
        return 2
    except (BrokenPipeError, KeyboardInterrupt):
        # Nobody reads any more; without this Python complains again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


class Printer:
    """Prints to a stream, but for the first `skip` bytes."""

    def __init__(self, stream: BinaryIO, skip: int = 0) -> None:
        self.stream = stream
        self.skip = skip
        self.last = b"\n"

    def text(self, text: str) -> None:
        self.write(text.encode("utf-8", "surrogateescape"))

    def write(self, data: bytes) -> None:
        self.last = data[-1:] or self.last
        kept = data[self.skip :]
        self.skip -= len(data) - len(kept)
        if kept:
            self.stream.write(kept)
            self.stream.flush()

    def copy(self, path: str, position: int) -> int:
        """Print a file from `position` to its end of now; the new position."""
        try:
            stream = open(path, "rb")
        except OSError:
            return position
        with stream:
            size = os.fstat(stream.fileno()).st_size
            if size < position:  # somebody emptied the log: what comes now is new
                position = 0
            leap = min(self.skip, max(0, size - position - 1))
            self.skip -= leap
            stream.seek(position + leap)
            for data in iter(lambda: stream.read(CHUNK), b""):
                self.write(data)
            return stream.tell()

    def finish(self, path: str, position: int) -> None:
        """Nothing more comes from this file."""

    def is_heard(self) -> bool:
        """False once the reader has gone away, even while there is nothing to print."""
        poll = select.poll()
        poll.register(self.stream.fileno(), 0)
        return not any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


class MatchPrinter(Printer):
    """Prints lines that match a pattern, and the line that announces their job before them.

    What a progress bar drew with carriage returns counts as lines, too.
    """

    def __init__(self, stream: BinaryIO, skip: int, pattern: Pattern[str]) -> None:
        Printer.__init__(self, stream, skip)
        self._pattern = pattern
        self._announced = ""

    def text(self, text: str) -> None:
        self._announced = text.lstrip("\n")

    def copy(self, path: str, position: int) -> int:
        try:
            stream = open(path, "rb")
        except OSError:
            return position
        with stream:
            if os.fstat(stream.fileno()).st_size < position:
                position = 0
            stream.seek(position)
            for line in iter(lambda: stream.readline(CHUNK), b""):
                if not line.endswith(b"\n"):
                    if len(line) < CHUNK:
                        break  # it may go on
                    # A bar that was drawn for days is one line: it is taken piece by piece.
                    line = line[: line.rfind(b"\r") + 1] or line
                    stream.seek(position + len(line))
                position += len(line)
                self._match(line)
        return position

    def finish(self, path: str, position: int) -> None:
        try:
            with open(path, "rb") as stream:
                stream.seek(position)
                self._match(stream.read(CHUNK))
        except OSError:
            return

    def _match(self, line: bytes) -> None:
        for part in line.rstrip(b"\r\n").split(b"\r"):
            if part and self._pattern.search(part.decode("utf-8", "replace")):
                Printer.text(self, self._announced)
                self._announced = ""
                self.write(part + b"\n")


def _print(
    printer: Printer,
    run: RunFolder,
    only: Optional[int],
    follow: bool,
    since: Optional[float] = None,
) -> None:
    job = only or 0
    while only is None or job == only:
        if job == 0:
            _wait(printer, run, job, follow)
        else:
            if only is None:
                _wait_for_record(printer, run, job, follow)
            start = 0 if since is None else log_times.printed_by(run, job, since)
            if only is None and start is not None:
                printer.text(_header(run, job, printer.last))
            if start is not None:
                _print_job(printer, run, job, follow, start)
        job += 1
        if job > run.holder():
            return


def _print_job(printer: Printer, run: RunFolder, job: int, follow: bool, position: int) -> None:
    while True:
        # Asked before copying: what was printed until the job was over is then all there.
        over = not follow or _job_is_over(run, job)
        position = printer.copy(run.log(job), position)
        if over:
            printer.finish(run.log(job), position)
        if over or not printer.is_heard():
            return
        time.sleep(PAUSE)


def _wait(printer: Printer, run: RunFolder, job: int, follow: bool) -> None:
    """Until a job after `job` has begun, or none will."""
    while follow and not _job_is_over(run, job) and printer.is_heard():
        time.sleep(PAUSE)


def _wait_for_record(printer: Printer, run: RunFolder, job: int, follow: bool) -> None:
    """A claim comes a moment before the record of it, which names the job and the machine."""
    while follow and not os.path.exists(run.begun(job)) and printer.is_heard():
        if _job_is_over(run, job):
            return
        time.sleep(PAUSE)


def _job_is_over(run: RunFolder, job: int) -> bool:
    """Whether a later job holds the run, or none will: then nothing is added to this log."""
    return run.holder() > job or is_over(run)


def is_over(run: RunFolder) -> bool:
    """Whether no job will run any more."""
    if os.path.exists(run.done):
        return True
    if lease.holder_alive(run, run.holder()) is not False:
        return False
    decided = resume_evidence.verdict(run, _plan(run), lambda: _newest(run))
    return decided.decision in (chain_rule.FINISHED, chain_rule.GIVE_UP)


def _plan(run: RunFolder) -> Optional[plan.Plan]:
    try:
        return plan.load(run)
    except (plan.WrongFormat, ValueError):
        return None  # damaged: what was printed can be read without it


def _newest(run: RunFolder) -> jobs.Saved:
    run_plan = _plan(run)
    return jobs.newest(run, run.holder(), run_plan.patterns if run_plan else [])


def _header(run: RunFolder, job: int, last: bytes) -> str:
    """The line that announces a job, on a line of its own."""
    begun = jobs.read_begun(run, job)
    parts = ["job {}".format(job)]
    if begun is not None and begun.id:
        parts.append("id {}".format(begun.id))
    if begun is not None and begun.host:
        parts.append(str(begun.host))
    return "{}── {} ──\n".format("" if last == b"\n" else "\n", " · ".join(parts))
