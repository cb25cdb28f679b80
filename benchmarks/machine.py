"""On what it was measured: computer, versions, commit; and whether others used it meanwhile."""

import os
import platform
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

from rabaska.node.version import __version__

_STOLEN, _USED = 0.02, 0.1  # parts of the processors' time that are too much


class BusyWatch:
    """Notices whether other programs, or other guests of the host, used the processors."""

    def __init__(self, rest: float = 1.0) -> None:
        before = _processor_time()
        time.sleep(rest)  # nothing of ours runs now, so whatever is used is used by others
        self._used = _share(before, _processor_time(), "used")
        self._begun = _processor_time()

    def complaints(self) -> list[str]:
        stolen = _share(self._begun, _processor_time(), "stolen")
        found = []
        if self._used > _USED:
            found.append(f"other programs used {self._used:.0%} of the processors before we began")
        if stolen > _STOLEN:
            found.append(f"the host took {stolen:.0%} of the processors' time away")
        return found


def _processor_time() -> dict[str, int]:
    """Ticks since the computer started; nothing where the system does not count them so."""
    try:
        fields = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))
    except (OSError, ValueError):
        return {"all": 0, "used": 0, "stolen": 0}
    user, nice, system, idle, waiting, irq, soft_irq, stolen = fields
    used = user + nice + system + irq + soft_irq
    return {"all": used + idle + waiting + stolen, "used": used, "stolen": stolen}


def _share(before: dict[str, int], after: dict[str, int], what: str) -> float:
    passed = after["all"] - before["all"]
    return (after[what] - before[what]) / passed if passed else 0.0


def described(repository: Path) -> dict[str, object]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _said(["git", "-C", str(repository), "describe", "--always", "--dirty"]),
        "machine": {
            "processor": _processor(),
            "processors": os.cpu_count(),
            "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        },
        "versions": {
            "rabaska": __version__,
            "python": platform.python_version(),
            **{name: _said([name, "--version"]) for name in ("tar", "rsync", "ssh")},
        },
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "")


def _said(words: list[str]) -> str:
    """The first line of what a program prints; nothing if there is none."""
    if words[0] == "ssh":
        words = ["ssh", "-V"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return (done.stdout or done.stderr).split("\n", 1)[0]
