"""What a scheduler's accounting counted of a job: its time, its processors, its memory."""

import re
from collections.abc import Mapping

from rabaska.domain.jobs import UsedResources

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_FIELDS = 9  # JobID,State,ExitCode,Reason,ElapsedRaw,TotalCPU,NCPUS,MaxRSS,ReqMem


def by_qacct(job: Mapping[str, str]) -> UsedResources:
    """Of Grid Engine; `maxvmem` counts what was reserved, too, so that is the second choice."""
    cores = job.get("slots", "")
    resident = _amount(job.get("ru_maxrss", "")) or _amount(job.get("maxvmem", ""))
    return UsedResources(
        seconds=_plain_seconds(job.get("ru_wallclock", "")),
        processor=_plain_seconds(job.get("cpu", "")),
        cores=int(cores) if _is_count(cores) else None,
        memory=resident or None,
    )


def by_pbs(job: Mapping[str, str]) -> UsedResources:
    cores = job.get("resources_used.ncpus", "")
    return UsedResources(
        seconds=_seconds(job.get("resources_used.walltime", "")),
        processor=_seconds(job.get("resources_used.cput", "")),
        cores=int(cores) if _is_count(cores) else None,
        memory=_amount(job.get("resources_used.mem", "")) or None,
        memory_limit=_amount(job.get("Resource_List.mem", "")) or None,
    )


def _plain_seconds(text: str) -> float | None:
    """`0.042s`, or without the letter in older versions."""
    found = re.fullmatch(r"(\d{1,12}(?:\.\d{1,9})?)s?", text, re.ASCII)
    return float(found[1]) if found else None


def _amount(text: str) -> int:
    """`7.715KB`, `12kb`, `1.5G`; 0 for anything else."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)([KMGT]?)B?", text.upper(), re.ASCII)
    return round(float(found[1]) * _UNITS[found[2]]) if found else 0


def by_sacct(output: str) -> dict[str, UsedResources]:
    """By job, as sacct calls it.

    Memory is counted by step: the job's own line has none, `12.batch` and `12.0` have.
    """
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
