"""The measured part of docs/performance.md, made from results.json: `python benchmarks/page.py`."""

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "performance.md"
BEGIN, END = "<!-- made by benchmarks/page.py -->\n", "<!-- end of what is made -->\n"


def main() -> int:
    results = json.loads((HERE / "results.json").read_text("utf-8"))
    if results["quick"] or results["failed"]:
        print("only a complete long form becomes the page", file=sys.stderr)
        return 1
    PAGE.write_text(renewed(PAGE.read_text("utf-8"), results), "utf-8")
    return 0


def renewed(page: str, results: dict[str, Any]) -> str:
    """The page with the figures of these results between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n".join(lines(results)) + "\n" + END + after


def lines(results: dict[str, Any]) -> list[str]:
    machine, versions = results["machine"], results["versions"]
    told = [
        f"Measured on {results['date'][:10]} at commit {results['commit']}: "
        f"{machine['processor']}, "
        f"{machine['processors']} processors, {machine['memory'] / 2**30:.0f} GiB, "
        f"{machine['system']}; Python {versions['python']}, {versions['tar']}.",
        "",
        *(f"Note: {complaint}." for complaint in results["busy"]),
        "| Benchmark | Work | Beside | Ours | Theirs | Ratio | Asked |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, rows in results["benchmarks"].items():
        for row in rows:
            asked = "" if row["at_least"] is None else f"{row['at_least']:g}"
            ratio = f"{row['ratio']:.2f} ± {row['spread']:.2f}" + (
                ", falls short" if row["falls_short"] else ""
            )
            amounts = [f"{row[whose]:.3g} {row['unit']}" for whose in ("ours", "theirs")]
            cells = [name, row["work"], row["peer"], *amounts, ratio, asked]
            told.append(f"| {' | '.join(cells)} |")
    return told


if __name__ == "__main__":
    sys.exit(main())
