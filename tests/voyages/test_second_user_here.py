"""Two users of one computer: what one runs on `here`, the other cannot read, list or replace."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from tests.second_user import SPY, pried
from tests.voyages.conftest import User, end_everything_of

BOB = 4242  # any number will do: no name is needed for it
KEY = "4f7c0ffee9911d5e"

TRAIN = """
import os, sys, time
print("local", os.environ["RABASKA_LOCAL"], "key", len(os.environ["WANDB_API_KEY"]))
open(os.environ["RABASKA_OUTPUT"] + "/model.pt", "w").write("weights")
print("ready", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
"""

SETTINGS = """
command = "python train.py {gate}"

[environment]
secrets = ["WANDB_API_KEY"]

[data.numbers]
path = "numbers"
"""

pytestmark = [
    pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users"),
    pytest.mark.slow,
]


def bob(words, stdin=""):
    become = ["/usr/bin/setpriv", f"--reuid={BOB}", f"--regid={BOB}", "--clear-groups"]
    return subprocess.run(
        [*become, *words], input=stdin, env={}, capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture
def alice(monkeypatch):
    """A user whose folders lie where everybody can come to, and one for temporary files as /tmp."""
    place = Path(tempfile.mkdtemp(prefix="two-users-"))
    place.chmod(0o755)
    (place / "tmp").mkdir()
    (place / "tmp").chmod(0o1777)
    (place / "project" / "numbers").mkdir(parents=True)
    (place / "project" / "numbers" / "one.txt").write_text("1")
    monkeypatch.setenv("TMPDIR", str(place / "tmp"))
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    someone = User(place / "project", place / "home")
    someone.write("train.py", TRAIN)
    someone.write("rabaska.toml", SETTINGS.format(gate=someone.gate))
    before = os.umask(0o022)
    yield someone
    os.umask(before)
    end_everything_of(someone.home)
    shutil.rmtree(place)


def below(*folders):
    return [os.path.join(parent, name) for folder in folders
            for parent, inside, names in os.walk(folder) for name in (*inside, *names)]  # fmt: skip


def test_another_user_of_this_computer_finds_no_way_in(alice):
    place = alice.project.parent
    for name in ("env", "root", "rabaska-0", "rabaska-1-1"):
        bob(["/usr/bin/python3", "-c",
             f"import os; os.mkdir({str(place / 'tmp' / name)!r}); "
             f"os.chmod({str(place / 'tmp' / name)!r}, 0o777)"])  # fmt: skip
    prepared = set(below(place / "tmp"))

    run = alice.types("run").output.strip()
    end = time.monotonic() + 60
    while "ready" not in alice.types("logs", run).output:
        assert time.monotonic() < end
        time.sleep(0.1)
    made = set(below(alice.home, place / "tmp")) - prepared
    during = pried(bob, [str(alice.home), *sorted(made)])
    overheard = bob(["/usr/bin/python3", "-c", SPY])
    alice.gate.touch()
    alice.types("wait", run)
    after = pried(bob, [str(alice.home), *below(alice.home)])

    assert any(path.endswith("/job/code/train.py") for path in made)
    assert during == []
    assert after == []
    assert KEY not in overheard
    assert "key 16" in alice.types("logs", run).output
    assert set(below(place / "tmp")) == prepared, "nothing is left"


def test_where_temporary_files_belong_to_somebody_else_another_place_is_taken(alice, monkeypatch):
    theirs = alice.project.parent / "theirs"
    theirs.mkdir()
    theirs.chmod(0o777)
    os.chown(theirs, BOB, BOB)
    monkeypatch.setenv("TMPDIR", str(theirs))
    alice.gate.touch()

    run = alice.types("run").output.strip()
    alice.types("wait", run)

    assert str(theirs) not in alice.types("logs", run).output


def test_a_home_that_belongs_to_somebody_else_is_not_used(alice):
    alice.home.mkdir()
    alice.home.chmod(0o777)
    os.chown(alice.home, BOB, BOB)

    said = alice.types("run", code=3)

    assert f"{alice.home} belongs to another user" in said.errors
    assert below(alice.home) == []


@pytest.mark.parametrize("room", ["clusters", "store"])
def test_a_home_in_which_somebody_else_was_first_is_not_used(alice, room):
    theirs = alice.home / room
    theirs.mkdir(parents=True)
    theirs.chmod(0o777)
    os.chown(theirs, BOB, BOB)

    said = alice.types("run", code=3)

    assert f"{theirs} belongs to another user" in said.errors
    assert below(alice.home) == [str(theirs)]
