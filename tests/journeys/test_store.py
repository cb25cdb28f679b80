"""The store on a cluster: nobody else can change what runs there in our name."""

import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from rabaska.domain.clusters import Cluster
from rabaska.errors import CommandFailed, SettingsError
from rabaska.remote.place import Outcome
from rabaska.remote.this_computer import Here
from rabaska.steps.connect import ConnectedCluster, resolved_store

ALICE, MALLORY, STAFF = 4241, 4242, 4243  # any numbers will do: no names are needed for them

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can be several users")


class AsAlice(Here):
    """A login node where alice works."""

    def run(self, script, *, feed=b"", again=""):
        become = ["/usr/bin/setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", f"--groups={STAFF}"]
        done = subprocess.run(
            [*become, "bash", "-c", f"umask 077\n{script}"], input=feed, capture_output=True,
            env={"PATH": "/usr/bin:/bin", "USER": "alice", "HOME": "/nowhere"}, check=False,
        )  # fmt: skip
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    def send(self, source, target):
        self.run(f"mkdir -p {os.path.dirname(target)}; cat > {target}", feed=source.read_bytes())


@pytest.fixture
def scratch():
    """A folder as /scratch often is: root's, and everybody may make folders in it."""
    place = Path(tempfile.mkdtemp(prefix="scratch-"))
    place.chmod(0o1777)
    yield place
    shutil.rmtree(place)


def made(path, owner, mode, group=None):
    path.mkdir()
    os.chown(path, owner, owner if group is None else group)
    path.chmod(mode)
    return path


def resolved(store, share="nobody"):
    cluster = Cluster("lab", "lab", "slurm", host="lab", store=str(store), share=share)
    return resolved_store(cluster, AsAlice())


def refused(store, share="nobody"):
    with pytest.raises(SettingsError) as caught:
        resolved(store, share)
    return caught.value


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_store_that_is_not_there_is_made_for_us_alone(scratch):
    assert resolved(scratch / "alice" / "rabaska") == f"{scratch}/alice/rabaska"
    assert mode(scratch / "alice") == mode(scratch / "alice" / "rabaska") == 0o700


@pytest.mark.parametrize("mode", [0o1777, 0o777, 0o2770], ids=oct)
def test_a_store_where_others_may_make_the_rooms_is_refused(scratch, mode):
    store = made(scratch / "shared", 0, mode, STAFF)
    made(store / "node", MALLORY, 0o777)

    said = refused(store)

    assert said.why.startswith(f"{store} belongs to root")
    assert f'store = "{store}/$USER/rabaska"' in said.hint


@pytest.mark.parametrize("room", ["node", "code", "packs", "envs", "runs", "queue"])
def test_a_room_that_somebody_else_made_is_refused(scratch, room):
    store = made(scratch / "alice", ALICE, 0o755)
    made(store / room, MALLORY, 0o755)

    assert f"{store}/{room} belongs to another user" in refused(store).why


def test_a_room_that_leads_to_somebody_else_is_refused(scratch):
    store = made(scratch / "alice", ALICE, 0o700)
    theirs = made(scratch / "theirs", MALLORY, 0o755)
    (store / "node").symlink_to(theirs)
    os.lchown(store / "node", ALICE, ALICE)

    assert f"{store}/node belongs to another user" in refused(store).why


def test_a_link_that_somebody_else_laid_is_refused(scratch):
    store = made(scratch / "alice", ALICE, 0o700)
    (store / "node").symlink_to(made(scratch / "hers", ALICE, 0o700))
    os.lchown(store / "node", MALLORY, MALLORY)

    assert f"{store}/node belongs to another user" in refused(store).why


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775], ids=oct)
def test_a_room_that_others_may_write_to_is_refused(scratch, mode):
    store = made(scratch / "alice", ALICE, 0o700)
    made(store / "node", ALICE, mode, STAFF)

    said = refused(store)

    assert said.why.startswith(f"others may write to {store}/node")
    assert f"chmod go-w {store}/node" in said.hint


def test_a_group_may_write_only_where_the_store_is_shared_with_it(scratch):
    store = made(scratch / "alice", ALICE, 0o2770, STAFF)
    made(store / "node", ALICE, 0o2775, STAFF)
    made(store / "mine", ALICE, 0o2775, STAFF)

    assert refused(store).why.startswith(f"others may write to {store},")
    assert resolved(store, "group") == str(store)
    assert mode(store / "node") == 0o2750


def test_a_store_of_nothing_but_rooms_is_closed_and_used(scratch):
    store = made(scratch / "alice", ALICE, 0o775, STAFF)
    made(store / "node", ALICE, 0o755)

    assert resolved(store) == str(store)
    assert mode(store) == mode(store / "node") == 0o700


def test_a_store_of_ours_with_other_things_is_refused_where_others_may_write(scratch):
    store = made(scratch / "alice", ALICE, 0o1777)
    made(store / "mine", ALICE, 0o700)

    assert refused(store).why.startswith(f"others may write to {store},")


def test_a_folder_above_that_anybody_could_have_made_must_be_ours_or_roots(scratch):
    """Whoever owns it can rename the store, and put another in its place before a job starts."""
    made(scratch / "alice", MALLORY, 0o777)

    assert f"{scratch}/alice belongs to another user" in refused(scratch / "alice" / "store").why


def test_a_folder_above_in_which_everybody_may_rename_is_refused(scratch):
    scratch.chmod(0o777)
    made(scratch / "alice", ALICE, 0o700)

    assert f"everybody may rename what is in {scratch}" in refused(scratch / "alice").why


def test_a_store_in_a_colleagues_project_folder_is_used(scratch):
    scratch.chmod(0o755)
    project = made(scratch / "def-prof", MALLORY, 0o2770, STAFF)

    assert resolved(project / "alice" / "rabaska") == f"{project}/alice/rabaska"


def test_a_program_in_a_folder_of_somebody_else_is_not_started(scratch):
    """A run that was submitted when its store was still accepted."""
    node = made(scratch / "node", MALLORY, 0o777)
    program = node / "0123.pyz"
    program.write_text("print('hello')")
    os.chown(program, ALICE, ALICE)
    there = ConnectedCluster(
        cluster=Cluster("lab", "lab", "slurm", host="lab"), place=AsAlice(),
        store=str(scratch), python="python3", program=program,
    )  # fmt: skip

    with pytest.raises(CommandFailed, match="another user"):
        there.ask("status")
