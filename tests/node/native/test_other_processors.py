"""What holds of the compiled part on this processor holds on the others, which qemu emulates."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.needs import processors

TESTS = Path(__file__).parents[2]
# Those that hold C and Python equal, as long as they start no Python of their own.
EQUAL = [
    "packing/test_compiled.py",
    "packing/test_crc.py",
    "node/data/test_compiled_writes.py",
    "training/test_pack_source.py",
]
OWN_PYTHONS = "not every_python and not with_and_without and not holds_without"
# Debian's pytest lacks our plugins, and the options that pyproject.toml gives to them.
OPTIONS = "[pytest]\npythonpath = .\nmarkers =\n  slow\n  pythons\n  torch\n"


@pytest.mark.slow
@pytest.mark.parametrize("machine", processors.emulated())
def test_c_and_python_are_equal(machine, tmp_path):
    if machine in processors.absent():
        pytest.skip(f"no Python for {machine}: `make needs` fetches it, as root on Debian")
    (tmp_path / "pytest.ini").write_text(OPTIONS)
    packages = processors.emulated()[machine] / "usr/lib/python3/dist-packages"
    paths = [TESTS.parent, TESTS.parent / "src", packages]
    words = ["-m", "pytest", "-q", "-c", tmp_path / "pytest.ini", f"--rootdir={TESTS.parent}"]
    words += ["-p", "no:cacheprovider", f"--basetemp={tmp_path / 'own'}", "-k", OWN_PYTHONS]

    ended = subprocess.run(
        [*processors.python(machine), *words, *(TESTS / name for name in EQUAL)],
        check=False, capture_output=True, text=True, cwd=TESTS.parent,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
    )  # fmt: skip

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert " passed" in ended.stdout
