"""Data that is on a cluster, or comes there from an address: the whole way, over real ssh."""

import io
import json
import os
import re
import shutil
import tempfile
import zipfile
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.http_server import file_server
from tests.remote.login_node import login_node

pytestmark = pytest.mark.slow

TRAIN = """
import os, sys
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        print("read", open(os.path.join(folder, name)).read())
print("from", sys.argv[1])
"""
PROFILE = """
title = "Campus"
scheduler = "local"
[reach]
host = "login"
options = {options}
[datasets.animals]
path = "$HOME/shared/animals"
about = "cats and dogs"
layout = "<class>/*.txt"
"""
SETTINGS = """
name = "tiny"
command = "python3 train.py {data.animals}"
[resources]
walltime = "60s"
"""


@pytest.fixture(scope="module")
def login(tmp_path_factory):
    with login_node(tmp_path_factory.mktemp("campus")) as there:
        for name in ("cats/1.txt", "cats/2.txt", "dogs/1.txt"):
            path = there.home / "shared" / "animals" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
        yield there


@pytest.fixture
def campus(login, user, monkeypatch):
    """A user with a cluster `campus`, whose data is written into rabaska.toml."""
    sockets = tempfile.mkdtemp(prefix="rabaska-", dir="/tmp")  # the path of a socket must be short
    monkeypatch.setenv("XDG_RUNTIME_DIR", sockets)
    (user.home / "clusters").mkdir(parents=True)
    profile = PROFILE.format(options=json.dumps(login.options))
    (user.home / "clusters" / "campus.toml").write_text(profile)
    user.write("train.py", TRAIN)
    yield user
    shutil.rmtree(sockets, ignore_errors=True)
    shutil.rmtree(login.home / "rabaska", ignore_errors=True)


def data(user, table):
    (user.project / "rabaska.toml").write_text(SETTINGS + table)


def run(user, *words):
    """What a run on the cluster read, where from, and what `run` said."""
    said = user.types("run", "--on", "campus", "--wait", *words)
    log = user.types("logs").output.splitlines()
    read = sorted(line.removeprefix("read ") for line in log if line.startswith("read "))
    (place,) = (line.removeprefix("from ") for line in log if line.startswith("from "))
    return read, place, said.errors


ANIMALS = ["cats/1.txt", "cats/2.txt", "dogs/1.txt"]


def test_data_on_the_cluster_is_used_in_place_and_then_packed_there(campus, login):
    data(campus, '[data.animals]\npath = "numbers"\n'
         '[cluster.campus.data.animals]\nat = "~/shared/animals"\n')  # fmt: skip

    read, place, said = run(campus)

    there = str(login.home / "shared" / "animals")
    assert (read, place) == (ANIMALS, there)
    assert f"data animals: {there}, used in place on campus" in said
    assert "animals in place" in campus.types("status").output

    data(campus, '[data.animals]\nat = "site:animals"\nas = "files"\n')
    read, place, said = run(campus)

    assert read == ANIMALS
    assert place.endswith(".files")
    assert "3 files, 30 bytes, packed on campus as animals-" in said
    assert not os.path.exists(campus.home / "store" / "packs")  # nothing of it was here
    again = campus.types("data", "pack", "animals", "--on", "campus")
    assert "packed before on campus" in again.errors
    listed = json.loads(campus.types("data", "ls", "--on", "campus", "--json").output)
    assert [each["name"] for each in listed] == [again.output.strip(), "site:animals"]
    assert "cats and dogs; <class>/*.txt" in campus.types("clusters", "show", "campus").output
    advice = json.loads(
        campus.types("data", "advise", "animals", "--on", "campus", "--json").output
    )
    assert (advice["files"], advice["bytes"], advice["pack"]) == (3, 30, True)


def damaged(folder):
    """A pack after its disk changed a byte, and nothing else."""
    shard = folder / "shard-00000.tar"
    times = (shard.stat().st_atime_ns, shard.stat().st_mtime_ns)
    content = bytearray(shard.read_bytes())
    content[513] ^= 255
    shard.write_bytes(content)
    os.utime(shard, ns=times)


def test_a_damaged_pack_that_was_made_there_is_repaired_as_the_hint_says(campus, login):
    data(campus, '[data.animals]\nat = "site:animals"\nas = "files"\n')
    pack = campus.types("data", "pack", "--on", "campus").output.strip()
    damaged(login.home / "rabaska" / "packs" / pack)

    told = campus.types("run", "--on", "campus", "--wait", code=10).output
    (hint,) = re.findall(r"hint: `rabaska (.*?)`, then `rabaska resume", told)
    for words in ([], ["animals"], [pack]):
        refused = campus.types("data", "verify", *words, "--on", "campus", code=5).errors
        assert f"rabaska {hint}" in refused
    repaired = campus.types(*hint.split())
    campus.types("resume")

    assert f"repaired on campus: {pack}" in repaired.errors
    assert "finished" in campus.types("wait").output
    assert f"{pack} is complete" in campus.types("data", "verify", "--on", "campus").errors


def test_a_job_packs_what_is_too_large_for_the_login_node(campus):
    data(campus, '[data.animals]\nat = "~/shared/animals"\nas = "shards"\n')

    packing = campus.types("data", "pack", "--on", "campus", "--job").output.strip()
    campus.types("wait", packing)
    said = campus.types("data", "pack", "--on", "campus").errors

    assert "packed as animals-" in campus.types("logs", packing).output
    assert "packed before on campus as animals-" in said


def test_a_wrong_path_is_told_before_the_queue_with_the_line_to_write(campus, login):
    data(campus, '[data.animals]\nat = "~/shared/animal"\n')

    refused = campus.types("run", "--on", "campus", code=3).errors

    shared = login.home / "shared"
    assert f"campus has no {shared}/animal for dataset animals" in refused
    assert f'did you mean `at = "{shared}/animals"`?' in refused
    told = " ".join(campus.types("doctor", "--on", "campus", code=None).output.split())
    assert f'did you mean `at = "{shared}/animals"`?' in told
    assert "no runs yet" in campus.types("status", code=9).errors


def test_an_archive_comes_from_an_address_once_and_is_proven(campus):
    with file_server() as server:
        url = server.serves("/animals.zip", _zip())
        data(campus, f'[data.animals]\nurl = "{url}"\n')

        read, _, said = run(campus)
        assert read == ANIMALS
        assert "packed before" in campus.types("data", "pack", "--on", "campus").errors
        data(campus, f'[data.animals]\nurl = "{url}"\nas = "in place"\n')
        assert campus.types("data", "pack", "--on", "campus").output.startswith("animals-")
        assert len(server.ranges) == 1

        digest = said.partition('`sha256 = "')[2].partition('"')[0]
        data(campus, f'[data.animals]\nurl = "{url}"\nsha256 = "{digest}"\n')
        assert "sha256" not in campus.types("data", "pack", "--on", "campus").errors
        data(campus, f'[data.animals]\nurl = "{url}"\nsha256 = "{"0" * 64}"\n')
        refused = campus.types("run", "--on", "campus", code=4).errors
        assert "is not what `sha256` promises" in refused


def test_where_nothing_may_be_downloaded_this_computer_sends_it(campus, login):
    profile = campus.home / "clusters" / "campus.toml"
    profile.write_text(profile.read_text().replace("[reach]", '[reach]\ndownloads = "nowhere"'))
    with file_server() as server:
        data(campus, f'[data.animals]\nurl = "{server.serves("/animals.zip", _zip())}"\n')

        packed = campus.types("data", "pack", "--on", "campus")

    assert "downloaded on this computer" in packed.errors
    assert (login.home / "rabaska" / "packs" / packed.output.strip()).is_dir()


def command_lines():
    """What every user of this computer can read of the programs that run on it."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            yield path.read_bytes()


@contextmanager
def signed_address():
    """An address that lets whoever knows it read, and what others saw while it was asked."""
    with file_server() as server:
        seen = []
        server.when_asked = lambda: seen.extend(command_lines())
        yield server.serves("/animals.zip", _zip()) + "?signature=s1gned", seen


def test_a_signed_address_is_in_no_command_line_and_no_record_of_the_job_that_packs(campus, login):
    with signed_address() as (url, seen):
        data(campus, f'[data.animals]\nurl = "{url}"\n')

        packing = campus.types("data", "pack", "--on", "campus", "--job")
        run = packing.output.strip()
        campus.types("wait", run)

    assert "packed as animals-" in campus.types("logs", run).output
    assert "secret" not in packing.errors
    assert seen
    assert not [words for words in seen if b"s1gned" in words]
    folder = login.home / "rabaska" / "runs" / run
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert folder / "run.json" in files
    assert not [path for path in files if b"s1gned" in path.read_bytes()]


def test_a_signed_address_is_in_no_command_line_of_this_computer(user):
    user.write("train.py", TRAIN)
    with signed_address() as (url, seen):
        data(user, f'[data.animals]\nurl = "{url}"\n')

        user.types("run", "--wait")

    assert seen
    assert not [words for words in seen if b"s1gned" in words]


def test_on_this_computer_the_same_keys_work(user):
    user.write("train.py", TRAIN)
    data(user, '[data.animals]\nfetch = "mkdir cats; echo -n meow > cats/1.txt"\n')

    user.types("run", "--wait")

    assert "read meow" in user.types("logs").output


# Plays the command line of Globus: both endpoints are this computer, and `--recursive` is a copy.
GLOBUS = """#!/bin/bash
case "$1 $2" in
  "endpoint local-id") echo 11111111-1111-1111-1111-111111111111 ;;
  transfer*)
    words=("$@"); from=${words[-4]#*:}; to=${words[-3]#*:}
    mkdir -p "$to"; cp -r "$from". "$to"
    echo '{"task_id": "22222222-2222-2222-2222-222222222222", "code": "Accepted"}' ;;
esac
"""


def test_globus_brings_a_pack_and_what_arrived_is_taken_up(campus, login, monkeypatch, tmp_path):
    program = tmp_path / "bin" / "globus"
    program.parent.mkdir()
    program.write_text(GLOBUS)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    data(campus, '[data.animals]\npath = "numbers"\n')
    words = ("data", "globus", "animals", "--on", "campus")
    assert "names no Globus endpoint" in campus.types(*words, code=3).errors
    profile, endpoint = campus.home / "clusters" / "campus.toml", "33333333-aaaa"
    profile.write_text(profile.read_text().replace("[reach]", f'[reach]\nglobus = "{endpoint}"'))

    printed = campus.types(*words).output.split()
    started = campus.types(*words, "--start")
    (arrived,) = (login.home / "rabaska" / "arriving").iterdir()
    (arrived / "shard-00000.tar").rename(tmp_path / "later")
    under_way = campus.types(*words).errors
    (tmp_path / "later").rename(arrived / "shard-00000.tar")
    taken = campus.types(*words)
    again = campus.types(*words, "--json")

    assert printed[:3] == ["globus", "transfer", "--recursive"]
    assert printed[-2].startswith("11111111-1111-1111-1111-111111111111:/")
    assert printed[-1] == f"{endpoint}:{arrived}/"
    assert started.output.startswith("22222222")
    assert "is on its way to campus" in under_way
    assert "has arrived on campus and is complete" in taken.errors
    assert json.loads(again.output)["state"] == "there"
    assert (login.home / "rabaska" / "packs" / arrived.name / "manifest.json").is_file()


def _zip():
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in ANIMALS:
            archive.writestr(name, name)
    return content.getvalue()
