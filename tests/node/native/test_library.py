"""The library is loaded wherever it can be, and nothing is lost where it cannot."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

NAME = f"librabaska-linux-{platform.machine()}.so"
IS_THERE = "from rabaska.node.native import compiled; print(compiled is not None)"
USED = "from rabaska.node.native.library import library; print(library._name)"


@pytest.fixture
def program(zipapp, tmp_path):
    """The node program, alone in a folder."""
    (tmp_path / "node").mkdir()
    return shutil.copy(zipapp, tmp_path / "node" / "program.pyz")


def printed(program, code, **variables) -> str:
    words = [sys.executable, "-W", "error", "-c", code]
    environment = {"PYTHONPATH": str(program), **variables}
    ended = subprocess.run(words, capture_output=True, text=True, env=environment, check=True)
    return ended.stdout.strip()


def test_it_is_loaded_from_a_copy_beside_the_program(program):
    copy = f"{program}.{NAME}"

    assert printed(program, USED) == copy

    assert os.stat(copy).st_mode & 0o777 == 0o700
    assert sorted(os.listdir(os.path.dirname(program))) == ["program.pyz", f"program.pyz.{NAME}"]


def test_a_copy_that_is_not_what_was_sent_is_written_again(program):
    copy = f"{program}.{NAME}"
    printed(program, USED)
    whole = Path(copy).read_bytes()
    with open(copy, "r+b") as stream:
        stream.truncate(5000)

    assert printed(program, USED) == copy

    assert Path(copy).read_bytes() == whole


def test_where_nothing_can_be_written_it_is_loaded_from_a_folder_of_its_own(program, tmp_path):
    os.mkdir(f"{program}.{NAME}")  # which no file can replace
    (tmp_path / "temporary").mkdir()

    used = printed(program, USED, TMPDIR=str(tmp_path / "temporary"))

    assert used.startswith(str(tmp_path / "temporary"))
    assert os.listdir(tmp_path / "temporary") == []


def test_it_is_not_loaded_from_where_others_could_replace_it(program, tmp_path):
    os.mkdir(f"{program}.{NAME}")
    (tmp_path / "temporary").mkdir()
    (tmp_path / "temporary").chmod(0o777)  # not as /tmp, where only its owner renames a folder

    assert printed(program, IS_THERE, TMPDIR=str(tmp_path / "temporary")) == "False"


@pytest.mark.parametrize(
    ("first", "variables"),
    [
        ("", {"RABASKA_NATIVE": "0"}),
        ("import sys; sys.modules['ctypes'] = None\n", {}),
        ("import platform; platform.machine = lambda: 'sparc'\n", {}),
    ],
    ids=["switched off", "no ctypes", "an odd processor"],
)
def test_without_it_python_does_the_work(program, first, variables):
    work = "\nfrom rabaska.node.data.blocks import crc32; assert crc32(b'cat' * 9999) == 3529818787"

    assert printed(program, first + IS_THERE + work, **variables) == "False"
