"""Every command of every page is run, in order, and prints what the page says."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import PAGES, Step, name_of, starting_folder, steps
from shapes import difference, shape

BIN = Path(sys.executable).parent
WITH_STEPS = [page for page in PAGES if steps(page)]


class Reader:
    """Somebody who types what a page says, in a copy of the example it starts from."""

    def __init__(self, example: Path, folder: Path) -> None:
        self.parent = folder
        self.project = folder / example.name
        ignored = shutil.ignore_patterns("data", "output", "results", "__pycache__")
        shutil.copytree(example, self.project, ignore=ignored)
        self.environment = {
            **os.environ,
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "RABASKA_HOME": str(folder / "home"),
            "OMP_NUM_THREADS": "1",
        }

    def type(self, step: Step) -> tuple[int, str]:
        program = ["bash", "-c"] if step.language == "console" else [sys.executable, "-c"]
        done = subprocess.run(
            [*program, step.command], cwd=self.project, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            check=False,
        )  # fmt: skip
        printed = done.stdout.decode("utf-8", "replace")
        for mine, documented in ((str(self.parent), "/home/ada"), (socket.gethostname(), "laptop")):
            printed = printed.replace(mine, documented)
        return done.returncode, printed

    def leave(self) -> None:
        """Let no job of a page outlive its test."""
        _, told = self.type(Step("rabaska status --all --json 2>/dev/null"))
        for run in json.loads(told or "[]"):
            self.type(Step(f"rabaska cancel {run['name']}"))


@pytest.fixture
def reader_of(tmp_path: Path) -> Iterator[object]:
    readers: list[Reader] = []

    def reader_of(page: Path) -> Reader:
        example = starting_folder(page)
        assert example is not None, f"{name_of(page)} has commands but names no example to run in"
        readers.append(Reader(example, tmp_path))
        return readers[-1]

    yield reader_of
    for reader in readers:
        reader.leave()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", WITH_STEPS, ids=name_of)
def test_every_command_of_the_page_works_and_prints_what_it_shows(page, reader_of):
    reader = reader_of(page)

    for step in steps(page):
        exit_code, printed = reader.type(step)

        assert exit_code == 0, f"{step.command}\n{printed}"
        if step.language == "console":
            assert not difference(step.printed, printed), f"{step.command}\n{printed}"


def test_the_readme_shows_a_whole_journey():
    readme = next(page for page in PAGES if page.name == "README.md" and starting_folder(page))

    typed = " ".join(step.command for step in steps(readme))

    assert all(f"rabaska {word}" in typed for word in ("init", "run", "fetch"))


def test_names_numbers_and_times_do_not_count_and_words_do():
    page = ["run digits-8485: submitted to here as job 1", "took 3 s"]

    assert difference(page, "run digits-00ff: submitted to here as job 12\ntook 1 min 20 s") == ""
    assert "refused" in difference(page, "run digits-00ff: refused by here\ntook 2 s")
    assert "submitted" in difference(page, "took 2 s")
    assert shape("4,000 files, 3.2 MB") == shape("10 files, 12 kB")


def test_left_out_lines_may_be_anything_but_what_is_shown_must_come_in_order():
    page = ["…", "first", "…", "second"]

    assert difference(page, "noise\nfirst\nnoise\nsecond\n") == ""
    assert "second" in difference(page, "second\nfirst\n")
