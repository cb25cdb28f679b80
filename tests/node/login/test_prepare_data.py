"""`prepare-data` as the login node runs it: data there, downloads, archives, what goes wrong."""

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.http_server import file_server

from rabaska.node.data.downloaded_folder import Source, bring
from rabaska.node.data.verify import verify


@pytest.fixture
def server():
    with file_server() as served:
        yield served


@pytest.fixture
def prepare(tmp_path):
    def prepare(**request):
        request = {"store": str(tmp_path / "store"), "name": "cats", **request}
        done = subprocess.run(
            [sys.executable, "-m", "rabaska.node", "prepare-data"],
            input=json.dumps(request).encode(),
            stdout=subprocess.PIPE,
            check=True,
        )
        return json.loads(done.stdout.splitlines()[-1])

    return prepare


@pytest.fixture
def folder(tmp_path):
    source = tmp_path / "shared" / "cats"
    source.mkdir(parents=True)
    for number in range(4):
        (source / f"{number}.txt").write_text(str(number))
    return source


def tar_gz(*members):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, text in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
    return content.getvalue()


def damage(pack):
    """As a disk does: other bytes, and nothing else is different."""
    shard = pack / "shard-00000.tar"
    times = (shard.stat().st_atime_ns, shard.stat().st_mtime_ns)
    content = bytearray(shard.read_bytes())
    content[513] ^= 255
    shard.write_bytes(content)
    os.utime(shard, ns=times)


def test_a_damaged_pack_is_made_again_of_its_folder_when_asked(prepare, folder, tmp_path):
    name = prepare(path=str(folder), pack=True)["ready"]["pack"]
    pack = tmp_path / "store" / "packs" / name
    damage(pack)

    ready = prepare(path=str(folder), pack=True, again=True)["ready"]

    assert (ready["pack"], ready["new"]) == (name, True)
    assert verify(str(pack)) == []
    assert [path.name for path in pack.parent.iterdir() if path.name != ".made-there"] == [name]


def test_a_damaged_pack_is_downloaded_again_when_asked_and_only_then(prepare, server, tmp_path):
    url = server.serves("/cats.tgz", tar_gz(("1.txt", b"one"), ("2.txt", b"two")))
    name = prepare(url=url, pack=True)["ready"]["pack"]
    pack = tmp_path / "store" / "packs" / name
    assert prepare(url=url, pack=True, again=True)["ready"]["new"] is False
    damage(pack)

    ready = prepare(url=url, pack=True, again=True)["ready"]

    assert (ready["pack"], ready["new"]) == (name, True)
    assert verify(str(pack)) == []
    assert len(server.ranges) == 2


def test_a_pack_that_lost_a_part_is_made_anew(prepare, folder, server, tmp_path):
    """As a site does that deletes old files one by one."""
    url = server.serves("/cats.tgz", tar_gz(("1.txt", b"one"), ("2.txt", b"two")))
    for wanted in ({"path": str(folder)}, {"url": url}):
        name = prepare(**wanted, pack=True)["ready"]["pack"]
        pack = tmp_path / "store" / "packs" / name
        (pack / "shard-00000.tar").unlink()

        ready = prepare(**wanted, pack=True)["ready"]

        assert (ready["pack"], ready["new"]) == (name, True)
        assert verify(str(pack)) == []


def test_a_folder_is_packed_once_and_again_when_it_changes(prepare, folder):
    first = prepare(path=str(folder), pack=True)["ready"]
    again = prepare(path=str(folder), pack=True)["ready"]
    (folder / "new.txt").write_text("new")
    changed = prepare(path=str(folder), pack=True)["ready"]

    assert (first["files"], first["new"], again["new"]) == (4, True, False)
    assert first["pack"] == again["pack"] != changed["pack"]


def test_a_change_further_down_is_found_when_asked_for(prepare, folder):
    (folder / "deep" / "deeper").mkdir(parents=True)
    (folder / "deep" / "deeper" / "x").write_text("x")
    first = prepare(path=str(folder), pack=True)["ready"]
    (folder / "deep" / "deeper" / "x").write_text("y")

    assert prepare(path=str(folder), pack=True)["ready"]["pack"] == first["pack"]
    assert prepare(path=str(folder), pack=True, again=True)["ready"]["pack"] != first["pack"]


def test_what_is_too_large_for_a_login_node_is_counted_and_not_packed(prepare, folder, tmp_path):
    told = prepare(path=str(folder), pack=True, most_files=2)["ready"]
    assert not (tmp_path / "store" / "packs").exists()
    one = prepare(path=str(folder / "0.txt"), pack=True, most_bytes=10)["ready"]
    (folder / "0.txt").write_text("0" * 11)
    large = prepare(path=str(folder / "0.txt"), pack=True, most_bytes=10)["ready"]

    assert (told["too_large"], told["files"], told["pack"]) == (True, 3, "")
    assert (one["too_large"], large["too_large"], large["bytes"]) == (False, True, 11)


@pytest.mark.parametrize("name", ["cats.tar.gz", "cats.zip"])
def test_an_archive_is_downloaded_unpacked_and_packed_once(prepare, server, tmp_path, name):
    content = tar_gz(("a/1.txt", b"1"), ("a/2.txt", b"22"))
    if name.endswith("zip"):
        zipped = io.BytesIO()
        with zipfile.ZipFile(zipped, "w") as archive:
            archive.writestr("a/1.txt", "1")
            archive.writestr("a/2.txt", "22")
        content = zipped.getvalue()
    url = server.serves(f"/{name}", content)

    first = prepare(url=url, pack=True)["ready"]
    again = prepare(url=url, pack=True)["ready"]

    assert (first["files"], first["bytes"], first["new"]) == (2, 3, True)
    assert first["sha256"] == hashlib.sha256(content).hexdigest()
    assert (again["pack"], again["new"]) == (first["pack"], False)
    assert len(server.ranges) == 1
    assert os.listdir(tmp_path / "store" / "downloads") == []  # the pack has all of it


def test_a_folder_that_programs_read_in_place_outlives_its_pack(prepare, server):
    url = server.serves("/cats.tar.gz", tar_gz(("a/1.txt", b"1")))
    used = prepare(url=url, pack=False)["ready"]["path"]

    packed = prepare(url=url, pack=True)["ready"]

    assert packed["files"] == 1
    assert os.listdir(os.path.join(used, "a")) == ["1.txt"]
    assert len(server.ranges) == 1


def test_what_is_left_of_a_removed_download_is_not_used(prepare, server, tmp_path):
    url = server.serves("/cats.tar.gz", tar_gz(("a/1.txt", b"1"), ("a/2.txt", b"2")))
    packed = prepare(url=url, pack=True)["ready"]["pack"]
    shutil.rmtree(tmp_path / "store" / "packs" / packed)
    work = tmp_path / "store" / "downloads" / f"cats-{Source(url=url).key}.partial"
    (work / "content" / "a").mkdir(parents=True)  # killed while it was removed
    (work / "content" / "a" / "1.txt").write_text("1")

    assert prepare(url=url, pack=True)["ready"]["files"] == 2


def test_what_arrived_before_a_kill_is_packed_without_a_download(prepare, server, tmp_path):
    url = server.serves("/cats.bin", b"x" * 1000)
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "packs").touch()  # packing fails
    assert "problem" in prepare(url=url, pack=True)
    (tmp_path / "store" / "packs").unlink()

    ready = prepare(url=url, pack=True)["ready"]

    assert (ready["bytes"], len(server.ranges)) == (1000, 1)
    assert ready["sha256"] == hashlib.sha256(b"x" * 1000).hexdigest()


def test_two_at_once_make_one_pack(prepare, tmp_path):
    command = f"sleep 0.5; echo cat > 1.txt; echo once >> {tmp_path}/times"

    with ThreadPoolExecutor(3) as both:
        made = list(both.map(lambda _: prepare(fetch=command, pack=True)["ready"], range(3)))

    assert len({ready["pack"] for ready in made}) == 1
    assert sorted(ready["new"] for ready in made) == [False, False, True]
    assert (tmp_path / "times").read_text() == "once\n"


def test_a_file_may_have_any_name(prepare, server):
    url = server.serves("/api/files/cats.zip/content", b"x")

    ready = prepare(url=url, pack=False)["ready"]

    assert os.listdir(ready["path"]) == ["content"]


def test_it_ends_when_nobody_listens(server, tmp_path):
    url = server.serves("/cats.bin", os.urandom(30_000_000))
    request = {"store": str(tmp_path / "store"), "name": "cats", "url": url}
    code = "from rabaska.node.login import prepare_data as p; p.Teller.every = 0; p.main([])"

    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdin.write(json.dumps(request).encode())
        process.stdin.close()
        process.stdout.readline()
        process.stdout.close()

        assert process.wait(20) == 1
    assert len(server.ranges) == 1


def test_an_archive_that_arrived_is_not_downloaded_again_to_be_unpacked(prepare, server, tmp_path):
    content = tar_gz(("a/1.txt", b"1"))
    url = server.serves("/cats.tar.gz", content)
    work = tmp_path / "store" / "downloads" / f"cats-{Source(url=url).key}.partial"
    (work / "arriving").mkdir(parents=True)
    (work / "arriving" / "cats.tar.gz").write_bytes(content)
    (work / "content" / "half").mkdir(parents=True)  # killed while it was unpacked

    ready = prepare(url=url)["ready"]

    assert (os.listdir(ready["path"]), server.ranges) == (["a"], [])
    assert ready["sha256"] == hashlib.sha256(content).hexdigest()


def test_a_damaged_archive_is_downloaded_again(prepare, server):
    content = tar_gz(("a/1.txt", b"1"))
    url = server.serves("/cats.tar.gz", content[:30])
    problem = prepare(url=url)["problem"]
    server.serves("/cats.tar.gz", content)

    assert "cannot be unpacked" in problem["what"]
    assert os.listdir(prepare(url=url)["ready"]["path"]) == ["a"]


def test_an_archive_may_stay_one(prepare, server):
    url = server.serves("/cats.tar.gz", tar_gz(("1.txt", b"1")))

    ready = prepare(url=url, pack=False, unpack=False)["ready"]

    assert os.listdir(ready["path"]) == ["cats.tar.gz"]


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil"])
def test_an_archive_that_leads_out_is_refused(prepare, server, tmp_path, name):
    url = server.serves("/cats.tar.gz", tar_gz((name, b"1")))

    problem = prepare(url=url, pack=True)["problem"]

    assert "points outside" in problem["why"]
    assert not list(tmp_path.rglob("evil"))


def test_a_wrong_digest_is_refused(prepare, server):
    url = server.serves("/cats.bin", b"x")

    problem = prepare(url=url, sha256="0" * 64, pack=True)["problem"]

    assert "sha256" in problem["what"]


def test_a_command_downloads_into_its_own_folder_once(prepare, tmp_path):
    command = f"echo cat > 1.txt; echo once >> {tmp_path}/times"

    first = prepare(fetch=command, pack=False)["ready"]
    again = prepare(fetch=command, pack=False)["ready"]

    assert os.listdir(first["path"]) == ["1.txt"]
    assert (first["new"], again["new"], again["path"]) == (True, False, first["path"])
    assert (tmp_path / "times").read_text() == "once\n"


def test_a_command_that_failed_goes_on_with_what_it_left(prepare):
    command = "[ -e half ] && mv half whole || { echo x > half; echo no network; exit 3; }"

    problem = prepare(fetch=command)["problem"]
    ready = prepare(fetch=command)["ready"]

    assert "no network" in problem["why"]
    assert os.listdir(ready["path"]) == ["whole"]


def test_a_command_that_leaves_nothing_is_told(prepare):
    assert "left no files" in prepare(fetch="true")["problem"]["what"]


def test_in_a_job_the_request_is_a_variable_and_people_read_the_log(folder, tmp_path):
    request = {"store": str(tmp_path / "store"), "name": "cats", "path": str(folder), "pack": True}
    words = [sys.executable, "-m", "rabaska.node", "prepare-data", "--in-job"]

    def prepared():
        variables = {**os.environ, "RABASKA_REQUEST": json.dumps(request)}
        return subprocess.run(words, env=variables, stdout=subprocess.PIPE, text=True, check=False)

    done = prepared()
    request["path"] = str(folder / "nothing")
    failed = prepared()

    assert done.stdout.startswith("packed as cats-")
    assert failed.returncode == 1


def test_the_command_of_fetch_is_on_no_command_line(tmp_path):
    fetch = "cat /proc/$$/cmdline > words; env > variables; : t0ken"
    target = tmp_path / "cats"

    bring(Source(fetch=fetch), str(target), lambda *_: None)

    assert (target / "words").read_bytes().startswith(b"bash")
    assert b"t0ken" not in (target / "words").read_bytes()
    assert "t0ken" not in (target / "variables").read_text()
