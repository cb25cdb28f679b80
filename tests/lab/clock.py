"""The controller's warped clock: a 20-minute limit that is over in seconds.

Only the controller runs under libfaketime. Jobs, nodes and clients keep the true time, so a
job sees its 20-minute limit arrive after 20 real seconds when the warp is 60.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path

# Slurm keeps its timeouts in 16 bits.
LONGEST_TIMEOUT = 65_000


def stretched(seconds: int, warp: int) -> int:
    """`seconds` of true time, as a clock that runs `warp` times too fast counts them."""
    return min(LONGEST_TIMEOUT, seconds * warp)


def library() -> Path | None:
    """Where libfaketime for programs with threads is installed."""
    return next(iter(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)


@dataclass(frozen=True)
class Clock:
    warp: int
    began: float = field(default_factory=time.time)

    def now(self) -> float:
        """The time the controller believes it is, in seconds since 1970."""
        return self.began + (time.time() - self.began) * self.warp

    def environment(self) -> dict[str, str]:
        """What a program started now must have in its environment to live by this clock.

        libfaketime counts from the start of each program. A controller that is restarted
        would see time jump back, so it is also told how far the first one had come.
        """
        if self.warp == 1:
            return {}
        ahead = self.now() - time.time()
        return {
            "LD_PRELOAD": str(library()),
            "FAKETIME": f"+{ahead:.3f} x{self.warp}",
            "FAKETIME_NO_CACHE": "1",
            # Threads wait on the monotonic clock; hurrying it makes them spin.
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
