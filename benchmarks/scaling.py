"""Cost grows with the number of files, memory does not: packed and staged, ten times as many each.

`python benchmarks/scaling.py` also draws the figure in docs/performance.md. Processor time is
measured, which other work on the machine hardly changes, from a cold cache. Needs root, for a disk
of its own.
"""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from pathlib import Path

from data import PACK, STAGE, empty_caches, fresh_ext4, make_files
from rows import Row

NAME = "scaling"
QUICK = False  # at a smaller size, starting programs takes most of the time
FIGURE = Path(__file__).resolve().parents[1] / "docs" / "scaling.svg"
SIZE = 200  # bytes in a file: what counts here is their number
MOST_FOLDERS = 1000
# The most memory that a process had begins with that of whoever started it.
SMALL_PARENT = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


@dataclass(frozen=True)
class Cost:
    files: int
    seconds: float  # of processor time
    megabytes: float  # of its largest process, with what it mapped of the index
    index: float  # megabytes


def run(quick: bool) -> list[Row]:
    counts = (1_000, 10_000, 100_000) if quick else (10_000, 100_000, 1_000_000)
    return rows(measured(counts))


def measured(counts: Sequence[int]) -> dict[str, list[Cost]]:
    found: dict[str, list[Cost]] = {"pack": [], "stage": []}
    for count in counts:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as place, fresh_ext4(
            Path(place), "16G", bytes_per_file=4096
        ) as disk:  # fmt: skip
            source = make_files(disk / "files", count, min(count // 10, MOST_FOLDERS), SIZE)
            store, staged = str(disk / "packs"), str(disk / "staged")
            pack = spent([sys.executable, "-c", PACK, str(source), store])
            packed = next(Path(store).glob("data-*"))
            stage = spent([sys.executable, "-c", STAGE, str(packed), staged, "files"])
            index = (packed / "index").stat().st_size / 2**20
        found["pack"].append(Cost(count, *pack, index))
        found["stage"].append(Cost(count, *stage, index))
        print(f"  {count}: {found['pack'][-1]}, {found['stage'][-1]}", file=sys.stderr)
    return found


def spent(command: list[str]) -> tuple[float, float]:
    """Processor seconds and megabytes; from a cold cache, because a million files may not fit."""
    empty_caches()
    words = [sys.executable, "-S", "-c", SMALL_PARENT, *command]
    told = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    seconds, kilobytes = told.split()
    return float(seconds), int(kilobytes) / 1024


def rows(found: dict[str, list[Cost]]) -> list[Row]:
    made = []
    for work, costs in found.items():
        before, last = costs[-2:]
        expected = before.seconds * last.files / before.files
        made.append(Row(
            f"{work} {last.files:,} files", f"{last.files // before.files} times {before.files:,}",
            last.seconds, expected, expected / last.seconds, 0.8,
        ))  # fmt: skip
        allowed = before.megabytes + 20 + last.index
        made.append(Row(
            f"memory to {work} {last.files:,} files", f"{before.files:,} files, 20 MB, the index",
            last.megabytes, allowed, allowed / last.megabytes, 1.0, unit="MB",
        ))  # fmt: skip
    return made


def figure(found: dict[str, list[Cost]]) -> str:
    """Two panels with logarithmic axes: processor seconds, and memory of the largest process."""
    panels = [
        panel(40, "processor seconds", {
            work: [(cost.files, cost.seconds) for cost in costs] for work, costs in found.items()
        }, (0.1, 100)),
        panel(380, "memory, MB", {
            work: [(cost.files, cost.megabytes) for cost in costs] for work, costs in found.items()
        }, (10, 10_000)),
    ]  # fmt: skip
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 300" font-family="sans-serif" '
        'font-size="12">\n<rect width="700" height="300" fill="white"/>\n'
        + "\n".join(panels)
        + "\n</svg>\n"
    )


def panel(
    left: int, title: str, lines: dict[str, list[tuple[int, float]]], limits: tuple[float, float]
) -> str:
    counts = [count for count, _ in next(iter(lines.values()))]
    width, height, top = 260, 200, 40

    def place(count: float, value: float) -> str:
        across = (log10(count) - log10(counts[0])) / (log10(counts[-1]) - log10(counts[0]))
        up = (log10(value) - log10(limits[0])) / (log10(limits[1]) - log10(limits[0]))
        return f"{left + 30 + across * width:.0f},{top + height * (1 - up):.0f}"

    parts = [f'<text x="{left + 30}" y="24">{title}</text>']
    steps = round(log10(limits[1] / limits[0]))
    for value in (limits[0] * 10**step for step in range(steps + 1)):
        begin, end = place(counts[0], value), place(counts[-1], value)
        parts.append(f'<path d="M{begin} L{end}" stroke="#ddd"/>')
        x, y = begin.split(",")
        parts.append(f'<text x="{int(x) - 6}" y="{int(y) + 4}" text-anchor="end">{value:g}</text>')
    for count in counts:
        x, y = place(count, limits[0]).split(",")
        parts.append(f'<text x="{x}" y="{int(y) + 18}" text-anchor="middle">{count:,}</text>')
    for (work, points), colour in zip(lines.items(), ("#1f6fb4", "#d9622b"), strict=True):
        path = " L".join(place(*point) for point in points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        x, y = place(*points[-1]).split(",")
        parts.append(
            f'<text x="{x}" y="{int(y) - 6}" text-anchor="end" fill="{colour}">{work}</text>'
        )
    return "\n".join(parts)


if __name__ == "__main__":
    found = measured((10_000, 100_000, 1_000_000))
    FIGURE.write_text(figure(found), "utf-8")
    for row in rows(found):
        print(f"{row.work} beside {row.peer}: {row.ratio:.2f} (asked {row.at_least})")
