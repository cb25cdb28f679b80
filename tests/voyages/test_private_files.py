"""What a run leaves on this computer is for its user alone; what the user asked for is as usual."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

UMASK = 0o022  # what most systems give their users

PRINTS_UMASK = """
import os, sys
before = os.umask(0)
print("umask %03o" % before)
os.umask(before)
open(sys.argv[1] + "/result.txt", "w").write("done")
"""


@pytest.fixture(autouse=True)
def usual_umask():
    before = os.umask(UMASK)
    yield
    os.umask(before)


def open_to_others(folder):
    """What somebody else may read, write or enter below `folder`, links left out."""
    found = []
    for parent, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(parent, name)
            if not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) & 0o077:
                found.append(path.relative_to(folder).as_posix())
    return found


def mode(path):
    return oct(stat.S_IMODE(path.stat().st_mode))


def test_nothing_that_we_write_can_be_read_by_others_but_a_programs_files_are_its_own(user):
    user.settings(command='"python train.py {output}"')
    user.write("train.py", PRINTS_UMASK)

    run = user.types("run").output.strip()
    user.types("wait")

    assert mode(user.home) == "0o700"
    results = f"store/runs/{run}/kept/000/output/result.txt"
    assert open_to_others(user.home) == [results]
    assert "umask 022" in user.types("logs").output


def test_what_is_brought_home_is_for_whoever_may_see_the_project(user):
    user.types("run", "--wait")

    user.types("fetch")

    brought = next((user.project / "results").iterdir())
    assert mode(user.project / "results") == "0o755"
    assert mode(brought / "output" / "result.json") == "0o644"


def test_the_settings_that_init_writes_are_an_ordinary_file(user):
    user.types("init", "--force")

    assert mode(user.project / "rabaska.toml") == "0o644"


def test_a_home_that_was_left_open_is_closed(user):
    (user.home / "store" / "runs").mkdir(parents=True)

    user.types("status", "--all")

    assert mode(user.home) == "0o700"


def test_of_a_folder_with_other_things_in_it_only_what_is_ours_is_closed(user):
    (user.home / "store" / "runs").mkdir(parents=True)
    (user.home / "photographs").mkdir()

    user.types("status", "--all")

    assert [mode(user.home / name) for name in (".", "store", "photographs")] == [
        "0o755",
        "0o700",
        "0o755",
    ]


def test_a_program_that_imports_rabaska_keeps_its_umask_and_its_home_is_closed(user):
    code = "import os, rabaska; rabaska.run('.'); print('%03o' % os.umask(0))"

    said = subprocess.run(
        [sys.executable, "-c", code], cwd=user.project, env=user.environment,
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert said.stdout == "022\n"
    assert mode(user.home) == "0o700"
    user.types("wait")
