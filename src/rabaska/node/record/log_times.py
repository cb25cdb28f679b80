"""logs/job-001.times: how long a job's log was at which moment, noted every few seconds.

1763440000.0<TAB>12345     seconds since 1970, bytes
"""

import os
from typing import Optional

from .run_folder import RunFolder

EVERY = 5.0  # seconds


def times_file(run: RunFolder, job: int) -> str:
    return os.path.join(run.logs, "job-{:03d}.times".format(job))


class LogTimes:
    """Notes the length of a log that grows."""

    def __init__(self, run: RunFolder, job: int) -> None:
        self._log, self._file = run.log(job), times_file(run, job)
        self._noted, self._size = 0.0, 0

    def note(self, now: float) -> None:
        if 0 <= now - self._noted < EVERY:
            return
        try:
            size = os.stat(self._log).st_size
        except OSError:
            return
        if size != self._size:
            with open(self._file, "a") as stream:
                stream.write("{:.1f}\t{}\n".format(now, size))
            self._noted, self._size = now, size


def printed_by(run: RunFolder, job: int, moment: float) -> Optional[int]:
    """How many bytes were printed by then, to the end of a line; None: all of them.

    Of a log without times, all is new that was written to since.
    """
    try:
        if os.stat(run.log(job)).st_mtime < moment:
            return None
    except OSError:
        return 0
    found = 0
    try:
        with open(times_file(run, job)) as stream:
            for line in stream:
                when, _, size = line.partition("\t")
                if float(when) > moment:
                    break
                found = int(size)
    except (OSError, ValueError):
        pass
    return _next_line(run.log(job), found)


def _next_line(path: str, at: int) -> int:
    if not at:
        return 0
    with open(path, "rb") as stream:
        stream.seek(at - 1)
        return at - 1 + len(stream.readline())
