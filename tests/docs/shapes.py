"""What a program printed, without what differs from one time to the next."""

import re
from collections.abc import Sequence

ANY_LINES = "…"
# How many jobs a run takes depends on how fast and how busy the computer is.
_OF_ONE_JOB = re.compile(r"^(job N|N N_N )")
_AMOUNT = re.compile(r"\bN (ms|s|min|h|d|B|kB|MB|GB)\b( N (s|min|h))?")


def shape(line: str) -> str:
    line = re.sub(r"\b[0-9a-f]{12}(?:[0-9a-f]{4})?\b", "DIGEST", line)
    line = re.sub(r"\b(digits)-[0-9a-f]{4}\b", r"\1-NAME", line)
    line = re.sub(r"\d[\d,.]*", "N", line)
    # A program that saves when it is asked to stop takes a moment to do so, or does not.
    line = line.replace("is cancelled;", "is stopping;")
    line = re.sub(r"\s+", " ", line).strip()
    return _AMOUNT.sub("AMOUNT", line)


def difference(documented: Sequence[str], printed: str) -> str:
    """Why `printed` is not what a page shows; "" when it is."""
    shown = [shape(line) for line in documented if line.strip()]
    seen = [shape(line) for line in printed.splitlines() if line.strip()]
    if ANY_LINES not in shown:
        for line in seen:
            if line not in shown:
                return f"printed, but not on the page: {line}"
    fixed = [line for line in shown if line != ANY_LINES and not _OF_ONE_JOB.match(line)]
    rest = iter(seen)
    for line in fixed:
        if line not in rest:
            return f"on the page, but not printed (in this order): {line}"
    of_jobs = [line for line in shown if _OF_ONE_JOB.match(line)]
    if of_jobs and not set(of_jobs) & set(seen):
        return f"none of these was printed: {of_jobs}"
    return ""
