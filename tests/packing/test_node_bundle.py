"""The node side as one file."""

import os
import subprocess
import sys
import zipfile

from rabaska.node.version import __version__
from rabaska.packing.node_bundle import bundle


def test_the_same_sources_give_the_same_file(tmp_path):
    one, two = bundle(tmp_path / "one"), bundle(tmp_path / "two")

    assert one.name == two.name
    assert one.read_bytes() == two.read_bytes()


def test_what_is_there_is_not_written_again(tmp_path):
    before = bundle(tmp_path)
    os.utime(before, (1, 1))

    after = bundle(tmp_path)

    assert after == before
    assert after.stat().st_mtime == 1
    assert list(tmp_path.iterdir()) == [after]


def test_it_holds_what_travels_and_nothing_else(tmp_path):
    names = zipfile.ZipFile(bundle(tmp_path)).namelist()

    assert names == sorted(names)
    assert {"__main__.py", "rabaska/__init__.py", "rabaska/node/data/stage.py"} <= set(names)
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    rooms = {name.split("/")[1] for name in names if name.startswith("rabaska/")}
    assert rooms == {"__init__.py", "node", "training"}


def test_a_program_can_import_from_it_without_an_installed_rabaska(tmp_path):
    program = (
        "from rabaska.training import PackedDataset; from rabaska.node import version\n"
        "print(version.__file__, version.__version__)"
    )

    path = str(bundle(tmp_path))

    said = subprocess.check_output(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = [{path!r}]\n{program}"],
        text=True,
    )  # fmt: skip

    file, version = said.split()
    assert file.startswith(str(tmp_path))
    assert version == __version__
