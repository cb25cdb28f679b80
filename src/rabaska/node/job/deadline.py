"""How long until the program is asked to stop: counted, not read from the clock of the day.

A clock that is set an hour ahead must not end a job an hour early. After a suspension only the
scheduler knows how much of the job's time is left: Slurm adds the time for which it suspended a
job itself, and not that for which others stopped it. Where it can be asked, it is asked then;
elsewhere the time counts, because a job that ends early costs less than one that is killed.
"""

import shlex
import threading
import time
from typing import Callable, Mapping, Optional

from .. import asking
from ..record.events import say

ASK_AGAIN = "RABASKA_ASK_END"  # a command that prints when the job ends, if there is one
_SLEPT = 1.0  # seconds; a shorter pause changes nothing
_PATIENCE = 30.0  # seconds with a scheduler that does not answer


class Deadline:
    def __init__(
        self, due: float, grace: float, slept: Callable[[], float], environment: Mapping[str, str]
    ) -> None:
        self._due = due  # by the monotonic clock
        self._grace = grace
        self._slept = slept
        self._known = slept()
        self._words = shlex.split(environment.get(ASK_AGAIN, ""))
        self._asking = None  # type: Optional[threading.Thread]

    def left(self) -> float:
        """Seconds; as many as it takes to find out, right after a suspension."""
        slept = self._slept()
        if slept - self._known > _SLEPT:
            self._known = slept
            self._ask_again()
        if self._asking is not None and self._asking.is_alive():
            return _PATIENCE
        return self._due - time.monotonic()

    def _ask_again(self) -> None:
        if not self._words:
            return
        self._asking = threading.Thread(target=self._find_out, name="deadline", daemon=True)
        self._asking.start()

    def _find_out(self) -> None:
        try:
            told = asking.heard(self._words, _PATIENCE, stderr=None)
            if told.exit_code == asking.NO_ANSWER:
                raise OSError("{} did not answer".format(self._words[0]))
        except OSError as problem:
            say("the scheduler could not be asked when this job ends: {}".format(problem))
            return
        ends = moment(told.said.decode("utf-8", "replace"))
        if ends is not None and ends > time.time():
            self._due = time.monotonic() + ends - time.time() - self._grace


def moment(text: str) -> Optional[float]:
    """Seconds since 1970, or local time as Slurm prints it; None for anything else."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return time.mktime(time.strptime(text.strip(), "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None  # such as "N/A", or nothing where the queue did not answer
