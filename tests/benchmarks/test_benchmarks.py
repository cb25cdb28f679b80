"""The programme of benchmarks: what it measures, tells, keeps and ends with."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"

TOY = """
from rows import Row

NAME = "toy"


def run(quick):
    work = "sorting" if quick else "sorting more"
    return [Row(work, "bubbles", ours=1.0, theirs={theirs}, ratio={theirs}, at_least=2.0)]
"""


@pytest.fixture
def programme(tmp_path):
    def programme(theirs: str, *words: str) -> tuple[subprocess.CompletedProcess[str], Path]:
        (tmp_path / "toy.py").write_text(TOY.format(theirs=theirs))
        results = tmp_path / "results.json"
        command = [sys.executable, FOLDER / "all.py", "--folder", tmp_path, "--results", results]
        done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
        return done, results

    return programme


def test_a_ratio_that_is_reached_is_shown_and_kept(programme):
    done, results = programme("2.0", "--quick")

    assert done.returncode == 0, done.stderr
    assert "sorting" in done.stdout
    assert "bubbles" in done.stdout
    row = json.loads(results.read_text())["benchmarks"]["toy"][0]
    assert row["ratio"] == 2.0
    assert row["falls_short"] is False
    assert [path.name for path in results.parent.glob("*.partial")] == []


def test_a_ratio_that_falls_short_ends_with_exit_code_1(programme):
    done, results = programme("1.9")

    assert done.returncode == 1
    assert "falls short" in done.stdout
    assert json.loads(results.read_text())["benchmarks"]["toy"][0]["work"] == "sorting more"


def test_a_benchmark_that_fails_is_told_and_ends_with_exit_code_1(programme):
    done, results = programme("no_such_name")

    assert done.returncode == 1
    assert "NameError" in done.stderr
    assert json.loads(results.read_text())["failed"] == ["toy"]


def test_contenders_take_turns_and_the_median_counts(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    from measuring import medians

    took_part: list[str] = []
    costs = {"ours": iter([99.0, 1.0, 2.0, 9.0]), "theirs": iter([99.0, 5.0, 5.0, 4.0])}

    def contender(name: str) -> float:
        took_part.append(name)
        return next(costs[name])

    found = medians({name: lambda name=name: contender(name) for name in costs}, repeats=3)

    assert found == {"ours": 2.0, "theirs": 5.0}
    rounds = [set(took_part[i : i + 2]) for i in range(0, 8, 2)]
    assert rounds == [{"ours", "theirs"}] * 4


def test_a_command_that_fails_is_not_measured(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    from measuring import processor_seconds

    assert processor_seconds([sys.executable, "-c", "pass"]) > 0
    with pytest.raises(RuntimeError, match="exit code 3"):
        processor_seconds([sys.executable, "-c", "raise SystemExit(3)"])


SPREAD_TOY = """
from measuring import Cost
from rows import Row

NAME = "toy"


def run(quick):
    ours, theirs = Cost([1.0, 1.0, 1.0, 1.0, 1.0]), Cost([1.7, 1.9, 1.9, {high}, {high}])
    return [Row("sorting", "bubbles", ours, theirs, theirs / ours, 2.0)]
"""


@pytest.mark.parametrize(("high", "code"), [("2.2", 0), ("1.9", 1)])
def test_a_row_falls_short_by_more_than_it_differs_from_round_to_round(programme, high, code):
    _, results = programme("2.0")
    (results.parent / "toy.py").write_text(SPREAD_TOY.format(high=high))
    command = [sys.executable, FOLDER / "all.py", "--folder", results.parent]

    done = subprocess.run(
        [*command, "--results", results], capture_output=True, text=True, check=False
    )

    assert done.returncode == code, done.stdout + done.stderr
    kept = json.loads(results.read_text())
    row = kept["benchmarks"]["toy"][0]
    assert (row["spread"] > 0, row["falls_short"]) == (code == 0, code == 1)
    assert kept["commit"]
    assert kept["versions"]["python"]
    assert kept["machine"]["processors"]


def test_the_page_is_made_from_complete_results(programme):
    sys.path.insert(0, str(FOLDER))
    import page

    _, results = programme("2.0")
    text = f"before\n{page.BEGIN}old\n{page.END}after\n"

    made = page.renewed(text, json.loads(results.read_text()))

    assert made.startswith("before\n")
    assert made.endswith("after\n")
    assert "old" not in made
    assert "| toy | sorting more | bubbles | 1 s | 2 s | 2.00 ± 0.00 | 2 |" in made
    assert page.renewed(made, json.loads(results.read_text())) == made


def test_help_starts_within_five_times_the_start_of_python(tmp_path):
    results = tmp_path / "results.json"
    command = [sys.executable, FOLDER / "all.py", "--quick", "--results", results]
    only = tmp_path / "only"
    only.mkdir()
    (only / "startup.py").write_text((FOLDER / "startup.py").read_text())

    done = subprocess.run([*command, "--folder", only], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(results.read_text())["benchmarks"]["start-up"][0]["ratio"] >= 1.0
