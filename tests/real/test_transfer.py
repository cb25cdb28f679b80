"""Packs to a real login node and results back: resumed, proven, never half there."""

import functools
import os
import random
import re
import shutil
import signal
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.lab.site import Storage

from rabaska.domain.clusters import Cluster
from rabaska.errors import DamagedPack, NoSpace, Unreachable
from rabaska.journeys.fetch import fetch
from rabaska.node.data import pack_format as packs_node
from rabaska.node.data.tree_digest import tree_digest
from rabaska.packing.node_bundle import bundle
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.remote.arriving_files import ARRIVING
from rabaska.remote.fetch_record import NOTE
from rabaska.remote.login_node import Ssh
from rabaska.remote.place import Parcel
from rabaska.remote.ssh_connection import Connection
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.progress import SilentReporter

pytestmark = pytest.mark.real

MB = 2**20


@pytest.fixture
def make_station(tmp_path, make_voyager):
    """The station of a lab, with a store of its own."""

    def make(running, **differences):
        someone = make_voyager(running)
        folder = someone.sockets / f"rabaska-{os.getuid()}"
        folder.mkdir(mode=0o700)
        place = Ssh(someone.connection)
        return ConnectedCluster(
            cluster=Cluster("lab", "the lab", "slurm", host="lab", **differences),
            place=place,
            store=someone.store,
            python="python3",
            program=bundle(tmp_path / "node"),
        )

    return make


@pytest.fixture
def station(lab, make_station):
    return make_station(lab)


@pytest.fixture
def there(lab, station):
    """The store as the test sees it."""
    return lab.path(station.store)


def folder_of(path, sizes):
    path.mkdir()
    for number, size in enumerate(sizes):
        (path / f"shard-{number:05d}.tar").write_bytes(random.Random(number).randbytes(size))
    return path


def belongs_to_the_user(folder):
    """What the test made as root is the user's, as the folder above it is."""
    subprocess.run(["chown", "-Rh", "--reference", folder.parent, folder], check=True)


def contents(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def test_a_folder_arrives_whole_and_the_second_time_nothing_is_sent(station, there, tmp_path):
    pack = folder_of(tmp_path / "pack", [3 * MB, 10, 0])
    told = []

    parcel = Parcel(pack, f"{station.store}/packs/pack-1")
    station.place.deliver([parcel], station, lambda *moved: told.append(moved))
    first, told[:] = list(told), []
    station.place.deliver([parcel], station, lambda *moved: told.append(moved))

    assert contents(there / "packs/pack-1") == contents(pack)
    assert first[-1] == (3 * MB + 10, 3 * MB + 10)
    assert told == []
    assert os.listdir(there / "packs") == ["pack-1"]


def test_a_push_is_one_call(station, tmp_path, monkeypatch):
    pack = folder_of(tmp_path / "pack", [3 * MB, 10])
    station.run("true")  # our program is there
    notes = noted_calls(tmp_path / "bin", monkeypatch)

    station.place.deliver([Parcel(pack, f"{station.store}/packs/pack")], station)
    first = notes.read_text().splitlines()
    station.place.deliver([Parcel(pack, f"{station.store}/packs/pack")], station)
    both = notes.read_text().splitlines()

    assert (len(first), len(both)) == (1, 2)


def test_only_the_file_that_the_site_deleted_is_sent_again(station, there, tmp_path):
    pack = folder_of(tmp_path / "pack", [3 * MB, 10, 2 * MB])
    parcel = Parcel(pack, f"{station.store}/packs/pack")

    station.place.deliver([parcel], station)
    (there / "packs/pack/shard-00002.tar").unlink()
    again = station.place.deliver([parcel], station)

    assert again.missing == 2 * MB
    assert contents(there / "packs/pack") == contents(pack)
    assert os.listdir(there / "packs") == ["pack"]


def test_a_copy_in_doubt_is_mended_by_sending_what_is_damaged(station, there, tmp_path):
    pack = folder_of(tmp_path / "pack", [3 * MB, MB])
    parcel = Parcel(pack, f"{station.store}/packs/pack")

    station.place.deliver([parcel], station)
    damaged = there / "packs/pack/shard-00001.tar"
    damaged.write_bytes(bytes(MB))
    station.place.deliver([parcel], station)
    unnoticed = damaged.read_bytes() == bytes(MB)
    station.place.deliver([replace(parcel, doubted=True)], station)

    assert unnoticed
    assert contents(there / "packs/pack") == contents(pack)


def noted_calls(folder, monkeypatch):
    """Where an `ssh` that comes before the real one notes each call."""
    folder.mkdir()
    notes = folder / "notes"
    (folder / "ssh").write_text(
        f'#!/bin/sh\necho "$@" >> {notes}\nexec {shutil.which("ssh")} "$@"\n'
    )
    (folder / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return notes


class Cutter:
    """Cuts every ssh connection now and then, at random moments of a transfer."""

    def __init__(self, lab, cuts, seed):
        self.lab, self.left, self.chance = lab, cuts, random.Random(seed)
        self.next_at = self.chance.randrange(MB, 12 * MB)
        self.last, self.repeated, self.cuts = 0, 0, 0

    def __call__(self, done, _total):
        self.repeated += max(0, self.last - done)
        self.last = done
        if self.left and done > self.next_at:
            self.left, self.cuts = self.left - 1, self.cuts + 1
            self.next_at = done + self.chance.randrange(MB, 12 * MB)
            self.lab.kill_ssh_connections()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_push_cut_at_random_moments_goes_on_where_it_was(lab, station, there, tmp_path, seed):
    pack = folder_of(tmp_path / "pack", [7 * MB, 33 * MB, 100, 10 * MB])
    cutter = Cutter(lab, 4, seed)

    station.place.deliver([Parcel(pack, f"{station.store}/packs/pack")], station, cutter)

    assert contents(there / "packs/pack") == contents(pack)
    assert os.listdir(there / "packs") == ["pack"]
    assert cutter.cuts == 4
    # What was under way in pipes and windows is lost with the connection, and nothing else.
    assert cutter.repeated <= cutter.cuts * 8 * MB


def test_a_push_cut_between_the_answer_and_the_order_asks_again(lab, station, there, tmp_path):
    pack = folder_of(tmp_path / "pack", [3 * MB])
    cuts = []

    def cut_once():  # this is asked when the order is written
        if not cuts:
            cuts.append(lab.kill_ssh_connections())
        return False

    parcel = Parcel(pack, f"{station.store}/packs/pack", shrinks=cut_once)
    delivered = station.place.deliver([parcel], station)

    assert cuts[0] > 0  # connections
    assert delivered.missing == 3 * MB
    assert contents(there / "packs/pack") == contents(pack)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_fetch_cut_at_random_moments_goes_on_where_it_was(lab, station, there, tmp_path, seed):
    made = folder_of(tmp_path / "made", [7 * MB, 33 * MB, 100, 10 * MB])
    shutil.copytree(made, there / "results")
    belongs_to_the_user(there)
    cutter = Cutter(lab, 4, seed)

    came = station.place.bring(
        f"{station.store}/results", tmp_path / "fetched", station, moved=cutter
    )

    assert came.files == 4
    (tmp_path / "fetched" / NOTE).unlink()
    assert contents(tmp_path / "fetched") == contents(made)
    assert cutter.cuts == 4
    assert cutter.repeated <= cutter.cuts * 8 * MB


@pytest.mark.slow
def test_a_host_that_cuts_every_transfer_is_given_up_with_a_reason(lab, station, tmp_path):
    pack = folder_of(tmp_path / "pack", [5 * MB])

    def cut(_done, _total):
        lab.kill_ssh_connections()

    station.place.run("true")
    with pytest.raises(Unreachable, match="lost in the middle of a transfer"):
        deliver_with_nothing_arriving(station, pack, cut)


def deliver_with_nothing_arriving(station, pack, cut):
    """Each attempt is cut at its first byte, and what arrived is removed again."""
    target = f"{station.store}/packs/pack"

    def cut_and_remove(done, total):
        cut(done, total)
        station.place.run(f"rm -rf {target}.partial")

    station.place.deliver([Parcel(pack, target)], station, cut_and_remove)


@pytest.mark.parametrize("way", ["stream", "rsync"])
def test_what_arrived_wrong_is_found_and_sent_again(lab, station, there, tmp_path, way):
    pack = folder_of(tmp_path / "pack", [2 * MB, 2 * MB])
    partial = there / "packs/pack.partial"
    partial.mkdir(parents=True)
    (partial / "shard-00000.tar").write_bytes(b"x" * MB)
    (partial / "shard-00001.tar").write_bytes(b"x" * 2 * MB)
    belongs_to_the_user(there)

    place = place_for(way, lab, station, tmp_path)
    place.deliver([Parcel(pack, f"{station.store}/packs/pack")], station)

    assert contents(there / "packs/pack") == contents(pack)
    close(place.transfer)


def test_a_source_that_is_not_what_its_digest_says_never_appears(station, there, tmp_path):
    pack = folder_of(tmp_path / "pack", [1000])
    parcel = Parcel(pack, f"{station.store}/packs/pack", {"shard-00000.tar": "0" * 64})

    with pytest.raises(DamagedPack, match=r"shard-00000.tar arrived damaged, 3 times"):
        station.place.deliver([parcel], station)

    assert not (there / "packs/pack").exists()


def test_a_source_that_shrinks_meanwhile_is_not_waited_for(station, there, tmp_path):
    pack = folder_of(tmp_path / "pack", [5 * MB])
    shard = pack / "shard-00000.tar"
    parcel = Parcel(
        pack, f"{station.store}/packs/pack", {shard.name: packs_node.sha256_of(str(shard))}
    )

    with pytest.raises(DamagedPack, match=r"shard-00000.tar arrived damaged"):
        station.place.deliver([parcel], station, lambda *_: os.truncate(shard, MB))

    assert not (there / "packs/pack").exists()


@pytest.mark.slow
def test_two_senders_of_the_same_pack_do_not_disturb_each_other(station, there, tmp_path):
    pack = folder_of(tmp_path / "pack", [8 * MB, 8 * MB])
    parcel = Parcel(pack, f"{station.store}/packs/pack")

    with ThreadPoolExecutor(2) as senders:
        for sender in [senders.submit(station.place.deliver, [parcel], station) for _ in "ab"]:
            sender.result()

    assert contents(there / "packs/pack") == contents(pack)
    assert os.listdir(there / "packs") == ["pack"]


@pytest.mark.parametrize("way", ["stream", "rsync"])
def test_permissions_and_group_are_the_far_sides_own(lab, station, there, tmp_path, way):
    pack = folder_of(tmp_path / "pack", [10])
    (pack / "shard-00000.tar").chmod(0o640)
    os.chown(pack / "shard-00000.tar", 12345, 12345)
    place = place_for(way, lab, station, tmp_path)

    place.deliver([Parcel(pack, f"{station.store}/packs/pack")], station)

    found = (there / "packs/pack/shard-00000.tar").stat()
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert found.st_gid == there.parent.stat().st_gid
    close(place.transfer)


def place_for(way, lab, station, tmp_path):
    """The station's place, with a host for transfers where rsync is to be used."""
    login = station.place.connection
    return Ssh(login, transfer_of(lab, tmp_path, login) if way == "rsync" else None)


def close(transfer):
    if transfer:
        transfer.close()


def transfer_of(lab, tmp_path, login):
    """A second name for the login node, as a site's host for transfers."""
    config = tmp_path / "ssh_config"
    config.write_text(lab.ssh_config.read_text().replace("Host lab", "Host lab dtn"))
    return Connection("dtn", ("-F", str(config)), login.sockets)


@pytest.mark.parametrize("without", [(), ("rsync",)])
def test_large_transfers_go_to_the_transfer_host(make_lab, make_station, tmp_path, without):
    lab = make_lab(without=without)
    station = make_station(lab)
    pack = folder_of(tmp_path / "pack", [5 * MB, 3])
    dtn = transfer_of(lab, tmp_path, station.place.connection)
    told = []

    place = Ssh(station.place.connection, dtn)
    place.deliver(
        [Parcel(pack, f"{station.store}/packs/pack")], station, lambda *moved: told.append(moved)
    )

    assert contents(lab.path(station.store) / "packs/pack") == contents(pack)
    assert dtn.is_open()
    assert told[-1] == (5 * MB + 3, 5 * MB + 3)
    dtn.close()


@pytest.mark.slow
def test_a_shell_that_prints_a_banner_spoils_nothing(make_lab, make_station, tmp_path):
    lab = make_lab(banner="Welcome to the lab!\n{ be nice }")
    station = make_station(lab)
    pack = folder_of(tmp_path / "pack", [2 * MB, 3])
    dtn = transfer_of(lab, tmp_path, station.place.connection)

    station.place.deliver([Parcel(pack, f"{station.store}/packs/pack")], station)
    Ssh(station.place.connection, dtn).deliver(
        [Parcel(pack, f"{station.store}/packs/again")], station
    )
    chatty = with_chatty_python(lab, station)
    chatty.place.deliver([Parcel(pack, f"{station.store}/packs/thrice")], chatty)
    station.place.bring(f"{station.store}/packs/again", tmp_path / "fetched", station)
    printed = b"".join(station.place.stream("echo one; echo two"))

    for name in ("pack", "thrice"):
        assert contents(lab.path(station.store) / "packs" / name) == contents(pack)
    (tmp_path / "fetched" / NOTE).unlink()
    assert contents(tmp_path / "fetched") == contents(pack)
    assert printed == b"one\ntwo\n"
    assert station.place.run("echo three").output == "three\n"
    dtn.close()


def with_chatty_python(lab, station):
    """The station with a Python that says something first, as a site's wrapper may."""
    python = lab.path(station.store) / "python"
    python.write_text('#!/bin/sh\nprintf "hello\\nand "\nexec python3 "$@"\n')
    python.chmod(0o755)
    return replace(station, python=f"{station.store}/python")


def test_too_many_bytes_are_refused_before_the_first_is_sent(make_lab, make_station, tmp_path):
    lab = make_lab(shared=Storage(size="64m"))
    station = make_station(lab)
    station.run("true")
    lab.fill_shared(leave=10 * MB)
    pack = folder_of(tmp_path / "pack", [20 * MB])
    told = []

    with pytest.raises(NoSpace) as refused:
        station.place.deliver(
            [Parcel(pack, f"{station.store}/packs/pack")], station, lambda *m: told.append(m)
        )

    assert "to be sent: 21 MB; the disk there has room for 1" in refused.value.why
    assert told == []
    assert not (lab.path(station.store) / "packs").exists()


def test_too_many_files_are_refused_before_the_first_is_sent(make_lab, make_station, tmp_path):
    lab = make_lab(shared=Storage(size="64m", files=40))
    station = make_station(lab)
    pack = folder_of(tmp_path / "pack", [1] * 60)

    with pytest.raises(NoSpace, match=r"not enough space .* nothing was sent") as refused:
        station.place.deliver([Parcel(pack, f"{station.store}/packs/pack")], station)

    assert "to be sent: 61 files; the disk there has room for 3" in refused.value.why
    assert not (lab.path(station.store) / "packs").exists()


@pytest.mark.slow
def test_a_disk_that_fills_up_meanwhile_is_told_and_the_push_goes_on_later(
    make_lab, make_station, tmp_path
):
    lab = make_lab(shared=Storage(size="96m"))
    station = make_station(lab)
    pack = folder_of(tmp_path / "pack", [40 * MB])
    parcel = Parcel(pack, f"{station.store}/packs/pack")

    def fill(_done, _total):
        if not lab.path("/scratch/filler").exists():
            lab.fill_shared(leave=4 * MB)

    with pytest.raises(NoSpace, match="no space left on the cluster") as full:
        station.place.deliver([parcel], station, fill)
    lab.path("/scratch/filler").unlink()
    told = []
    station.place.deliver([parcel], station, lambda done, _: told.append(done))

    assert "No space left on device" in full.value.why
    assert told[0] > 3 * MB
    assert contents(lab.path(station.store) / "packs/pack") == contents(pack)


def test_only_what_is_new_is_brought_and_nothing_newer_is_overwritten(station, there, tmp_path):
    results, home = there / "results", tmp_path / "fetched"
    (results / "sub").mkdir(parents=True)
    (results / "a.txt").write_text("theirs")
    (results / "sub" / "b.txt").write_text("theirs")
    (results / "c.pt").write_text("left there")
    (results / "link").symlink_to("a.txt")
    belongs_to_the_user(there)
    home.mkdir()
    (home / "a.txt").write_text("mine, edited later")
    os.utime(results / "a.txt", (1e9, 1e9))

    bring = functools.partial(
        station.place.bring, f"{station.store}/results", home, station, leave_out=["*.pt"]
    )
    first, second = bring(), bring()
    (results / "sub" / "b.txt").write_text("theirs, longer")
    third = bring()

    assert (first.files, second.files, third.files) == (2, 0, 1)
    assert (home / "a.txt").read_text() == "mine, edited later"
    assert (home / "sub" / "b.txt").read_text() == "theirs, longer"
    assert os.readlink(home / "link") == "a.txt"
    assert {*os.listdir(home)} - {NOTE} == {"a.txt", "link", "sub"}


def test_a_log_that_grows_meanwhile_is_brought_as_it_was_and_then_as_it_is(
    station, there, tmp_path
):
    (there / "results").mkdir(parents=True)
    log = there / "results" / "log"
    log.write_bytes(b"first\n" * MB)
    belongs_to_the_user(there)

    def grow(_done, _total):
        with log.open("ab") as stream:
            stream.write(b"more\n")

    bring = functools.partial(
        station.place.bring, f"{station.store}/results", tmp_path / "fetched", station
    )
    bring(moved=grow)
    once = (tmp_path / "fetched" / "log").read_bytes()
    bring()

    assert once.startswith(b"first\n" * MB)
    assert log.read_bytes().startswith(once)
    assert (tmp_path / "fetched" / "log").read_bytes() == log.read_bytes()
    assert len(once) < len(log.read_bytes())


@pytest.mark.slow
def test_results_are_followed_when_the_next_job_takes_over(lab, voyager, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(voyager.sockets))
    there = lab.path(voyager.store) / "runs" / "tiny-1"
    folder_of_results = there / "carried" / "001" / "output"
    folder_of_results.parent.mkdir(parents=True)
    made = folder_of(tmp_path / "made", [3 * MB, 3 * MB, 3 * MB])
    shutil.copytree(made, folder_of_results)
    belongs_to_the_user(lab.path(voyager.store))
    record = RunRecord("tiny-1", "lab", f"{voyager.store}/runs/tiny-1", str(voyager.project), 0.0)

    class TakesOver(SilentReporter):
        def moved(self, what, done, total, *, unit="bytes"):
            if (there / "carried" / "001").exists():
                (there / "carried" / "001").rename(there / "carried" / "002")

    fetched = fetch(record, Home(voyager.home), reporter=TakesOver())

    assert contents(fetched.folder / "output") == contents(made)
    assert not list(fetched.folder.rglob("*.partial"))


FILL = {
    "home": lambda lab: lab.fill_home(),
    "shared": lambda lab: lab.fill_shared(),
    "files": lambda lab: lab.use_up_files("/scratch"),
}


@pytest.mark.parametrize("where", FILL)
@pytest.mark.slow
def test_a_full_disk_there_is_told_with_an_exit_code_of_its_own(make_lab, make_voyager, where):
    small = Storage(size="16m", files=400)
    lab = make_lab(**{"home" if where == "home" else "shared": small})
    voyager = make_voyager(lab)
    if where == "home":
        text = voyager.profile.read_text()
        voyager.profile.write_text(re.sub(r"store = .*", 'store = "~/rabaska"', text))

    FILL[where](lab)
    at_first = voyager.types("run", "--on", "lab", code=6).errors
    lab.free(lab.home if where == "home" else "/scratch")
    voyager.run()
    FILL[where](lab)
    with_all_there = voyager.types("run", "--on", "lab", code=6).errors

    for said in (at_first, with_all_there):
        assert "No space left on device" in said
        assert "hint: free some space there" in said


@pytest.mark.slow
@pytest.mark.parametrize(("ending", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_a_push_that_was_killed_on_the_laptop_goes_on_with_the_next_run(voyager, ending, code):
    for number in range(3):
        data = random.Random(number).randbytes(20 * MB)
        (voyager.project / "numbers" / f"{number}.txt").write_bytes(data)
    packs = voyager.lab.path(voyager.store) / "packs"
    killed = voyager.start("run", "--on", "lab", start_new_session=True)
    voyager.lab.wait_until(
        lambda: sum(path.stat().st_size for path in packs.glob("*.partial/*")) > 5 * MB
    )
    os.killpg(killed.pid, ending)
    killed.communicate()

    voyager.run()

    assert killed.returncode == code

    (pack,) = packs.iterdir()
    assert packs_node.load_manifest(str(pack)).identity == pack.name
    for shard in packs_node.load_manifest(str(pack)).shards:
        digest = tree_digest()
        digest.update((pack / shard.name).read_bytes())
        assert digest.hexdigest() == shard.digest


@pytest.mark.slow
def test_a_fetch_that_was_killed_on_the_laptop_is_completed_by_the_next(lab, voyager):
    voyager.write("rabaska.toml", 'name = "tiny"\ncommand = "sleep 0"\n')
    run = voyager.run("--walltime", "2m")
    voyager.types("wait", run)
    output = lab.path(f"{voyager.store}/runs/{run}/carried/001/output")
    made = [random.Random(number).randbytes(60 * MB) for number in range(2)]
    for number, data in enumerate(made):
        (output / f"{number}.bin").write_bytes(data)
    results = voyager.project / "results" / run

    killed = voyager.start("fetch", run)
    lab.wait_until(
        lambda: sum(path.stat().st_size for path in results.glob(f"{ARRIVING}/*")) > 5 * MB
    )
    killed.kill()
    killed.communicate()
    left = sum(path.stat().st_size for path in results.glob(f"{ARRIVING}/*"))
    voyager.types("fetch", run)

    assert left > 5 * MB
    assert [(results / "output" / f"{number}.bin").read_bytes() for number in (0, 1)] == made
    assert not (results / ARRIVING).exists()
