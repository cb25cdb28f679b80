"""Every benchmark of a folder, side by side with its peers: `python benchmarks/all.py [--quick]`.

A benchmark is a module with `NAME` and `run(quick: bool) -> list[Row]`. The exit code is 1 when
a ratio falls short of what was asked of it, or when a benchmark failed.
"""

import argparse
import importlib.util
import json
import os
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

from machine import BusyWatch, described
from rich.console import Console
from rich.table import Table
from rows import Row

HERE = Path(__file__).resolve().parent
NO_BENCHMARKS = {"all", "machine", "measuring", "page", "readers", "rows", "shapes"}
QUICK_SECONDS = 240  # after which the quick form begins nothing more


def main() -> int:
    words = argparse.ArgumentParser(description="Run every benchmark.")
    words.add_argument("--quick", action="store_true", help="fewer repeats and smaller data")
    words.add_argument("--folder", type=Path, default=HERE, help="where the benchmarks are")
    words.add_argument("--results", type=Path, default=HERE / "results.json")
    asked = words.parse_args()

    measured, failed, left_out = {}, [], []
    begun, watch = time.monotonic(), BusyWatch()
    for benchmark in benchmarks(asked.folder):
        late = time.monotonic() - begun > QUICK_SECONDS
        if asked.quick and (late or not getattr(benchmark, "QUICK", True)):
            left_out.append(benchmark.NAME)
            continue
        print(f"{benchmark.NAME} …", file=sys.stderr)
        try:
            measured[benchmark.NAME] = benchmark.run(quick=asked.quick)
        except Exception:  # one broken benchmark must not hide the others; it is told and counts
            traceback.print_exc()
            failed.append(benchmark.NAME)
    show(measured)
    busy = watch.complaints()
    for complaint in busy:
        print(f"note: {complaint}; ratios of wall clocks mean little", file=sys.stderr)
    if left_out:
        print(f"left to the long form: {', '.join(left_out)}", file=sys.stderr)
    facts = {"quick": asked.quick, "busy": busy, "left_out": left_out, "failed": failed}
    write(asked.results, measured, {**facts, **described(HERE)})
    return 1 if failed or any(row.falls_short for rows in measured.values() for row in rows) else 0


def benchmarks(folder: Path) -> Iterator[ModuleType]:
    for path in sorted(folder.glob("*.py")):
        if path.stem in NO_BENCHMARKS:
            continue
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        if hasattr(module, "NAME"):
            yield module


def show(measured: dict[str, list[Row]]) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("benchmark", "work", "beside", "ours", "theirs", "ratio", "asked", ""):
        justify = "right" if heading in ("ours", "theirs", "ratio", "asked") else "left"
        table.add_column(heading, justify=justify)
    for name, rows in measured.items():
        for row in rows:
            asked = "" if row.at_least is None else f"{row.at_least:.2f}"
            ratio = f"{row.ratio:.2f}" + (f" ± {row.spread:.2f}" if row.spread else "")
            verdict = "[red]falls short[/]" if row.falls_short else ""
            amounts = [f"{value:.4g} {row.unit}" for value in (row.ours, row.theirs)]
            table.add_row(name, row.work, row.peer, *amounts, ratio, asked, verdict)
    Console().print(table)


def write(path: Path, measured: dict[str, list[Row]], facts: dict[str, object]) -> None:
    results = {
        **facts,
        "benchmarks": {
            name: [{**asdict(row), "falls_short": row.falls_short} for row in rows]
            for name, rows in measured.items()
        },
    }
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(results, indent=2) + "\n", "utf-8")
    os.replace(partial, path)


if __name__ == "__main__":
    sys.exit(main())
