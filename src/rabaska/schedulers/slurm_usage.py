"""What Slurm's accounting counted of a job: its time, its processors, its memory.

`sacct` counts memory by step: the job's own line has none, `12.batch` and `12.0` have.
"""

import re

from rabaska.domain.jobs import UsedResources

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_FIELDS = 9  # JobID,State,ExitCode,Reason,ElapsedRaw,TotalCPU,NCPUS,MaxRSS,ReqMem


def used(output: str) -> dict[str, UsedResources]:
    """By job, as sacct calls it."""
    found: dict[str, UsedResources] = {}
    peaks: dict[str, int] = {}
    for line in output.splitlines():
        parts = line.strip().split("|")
        if len(parts) != _FIELDS or not parts[0][:1].isdigit():
            continue
        job, _, step = parts[0].partition(".")
        elapsed, processor, cores, peak, limit = parts[4:]
        peaks[job] = max(peaks.get(job, 0), _size(peak, 1) or 0)
        if not step:
            found[job] = UsedResources(
                seconds=float(elapsed) if _is_count(elapsed) else None,
                processor=_seconds(processor),
                cores=int(cores) if _is_count(cores) else None,
                memory_limit=_size(limit, int(cores) if _is_count(cores) else 1),
            )
    return {
        job: UsedResources(
            one.seconds, one.processor, one.cores, peaks[job] or None, one.memory_limit
        )
        for job, one in found.items()
    }


def _is_count(text: str) -> bool:
    return re.fullmatch(r"\d{1,12}", text, re.ASCII) is not None


def _size(text: str, cores: int) -> int | None:
    """`123K`; before 21.08 the memory asked for has a letter more: per node or per core."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)([KMGT]?)([nc]?)", text, re.ASCII)
    if not found:
        return None
    size = round(float(found[1]) * _UNITS[found[2]]) * (cores if found[3] == "c" else 1)
    return size or None


def _seconds(text: str) -> float | None:
    """`1-02:03:04`, `02:03:04` or `03:04.567`."""
    found = re.fullmatch(
        r"(?:(\d{1,6})-)?(?:(\d{1,6}):)?(\d{1,6}):(\d{1,6}(?:\.\d{1,6})?)", text, re.ASCII
    )
    if not found:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
