"""The runner of the tests hides no failure: a repeat is named, and stale notes are not repeated."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.suite import verdict

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[2]
FLAKY = """
import pathlib, pytest

@pytest.mark.parametrize("number", range({count}))
def test_passes_the_second_time(number):
    mark = pathlib.Path(__file__).with_name(f"mark-{{number}}")
    seen = mark.exists()
    mark.touch()
    assert seen
"""


def suite(folder: Path, program: str, *, ci: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(program)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "CI": ci}
    return subprocess.run(
        [sys.executable, "-m", "tests.suite", "test_it.py"],
        cwd=folder, env=environment, check=False, capture_output=True, text=True,
    )  # fmt: skip


def test_what_passes_only_the_second_time_is_named(tmp_path):
    done = suite(tmp_path, FLAKY.format(count=1), ci="true")

    assert done.returncode == 0, done.stdout
    assert "flaky: test_it.py::test_passes_the_second_time[0]" in done.stdout


def test_ci_fails_at_the_third_such_name(tmp_path):
    done = suite(tmp_path, FLAKY.format(count=3), ci="true")

    assert done.returncode == 1
    assert done.stdout.count("flaky: ") == 3


def test_what_fails_twice_is_a_failure(tmp_path):
    done = suite(tmp_path, "def test_no():\n    assert False\n")

    assert done.returncode == 1
    assert "flaky" not in done.stdout


def test_a_run_that_did_not_end_is_not_repeated(tmp_path):
    stale = tmp_path / ".pytest_cache/v/cache"
    stale.mkdir(parents=True)
    (stale / "lastfailed").write_text('{"test_it.py::test_yes": true}')

    done = suite(tmp_path, "import os\ndef test_yes():\n    pass\nos._exit(3)\n")

    assert done.returncode not in (0, 1)
    assert "once more" not in done.stdout


@pytest.mark.parametrize(("count", "code"), [(2, 0), (3, 1)])
def test_outside_of_ci_names_are_enough(capsys, count, code):
    names = [f"test-{number}" for number in range(count)]

    assert verdict(names, in_ci=False) == 0
    assert verdict(names, in_ci=True) == code
