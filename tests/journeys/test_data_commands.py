"""`rabaska data`: packs are looked into, checked and emptied by the front door."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.disks import small_disk

from rabaska.cli import main
from rabaska.journeys.storage import storage
from rabaska.node.data.pack_files import extract
from rabaska.packing.make_pack import PackOptions, pack
from rabaska.records.home import Home


@pytest.fixture
def made(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("RABASKA_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for name in ("cats/1.jpg", "cats/2.jpg", "dogs/1.jpg"):
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / name).write_text(name * 100)
    os.symlink("1.jpg", tmp_path / "source" / "cats" / "link")
    return pack(
        tmp_path / "source", tmp_path / "home" / "store" / "packs", PackOptions("animals")
    ).folder


def rabaska(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["data", *words])
    return int(ended.value.code or 0)


def project_of_animals(folder: Path) -> Path:
    project = folder / "project"
    project.mkdir()
    settings = 'command = "true"\n[data.animals]\npath = "../source"\n'
    (project / "rabaska.toml").write_text(settings)
    return project


def test_a_pack_is_listed_by_the_name_of_its_dataset(made, capfd):
    assert rabaska("ls", "animals", "cats") == 0

    lines = capfd.readouterr().out.splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines] == [
        "cats/1.jpg", "cats/2.jpg", "cats/link -> 1.jpg", "cats/",
    ]  # fmt: skip


def test_a_listing_can_be_read_by_a_script(made, capfd):
    rabaska("ls", str(made), "dogs/1.jpg", "--json")

    assert json.loads(capfd.readouterr().out) == [{"name": "dogs/1.jpg", "size": 1000}]


def test_without_a_name_the_packs_of_the_project_are_listed(made, tmp_path, monkeypatch, capfd):
    pack(tmp_path / "source/cats", made.parent, PackOptions("cats"))
    assert rabaska("ls") == 0
    everywhere = capfd.readouterr().out.splitlines()
    monkeypatch.chdir(project_of_animals(tmp_path))

    assert rabaska("ls") == 0
    lines = capfd.readouterr().out.splitlines()
    assert rabaska("ls", "--json") == 0
    listed = json.loads(capfd.readouterr().out)

    assert [line.split()[0] for line in everywhere] == ["name", "animals", "cats"]
    assert [line.split()[0] for line in lines] == ["name", "animals"]
    assert str(made) in lines[1]
    assert listed[0].pop("digest").startswith(made.name[-12:])
    assert listed == [{"name": "animals", "files": 3, "bytes": 3000, "folder": str(made)}]


def test_without_any_pack_it_is_said_how_one_is_made(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("RABASKA_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    assert rabaska("ls") == 0

    assert "rabaska pack" in capfd.readouterr().err


def test_one_file_is_printed_as_it_was(made, capfd):
    assert rabaska("cat", "animals", "dogs/1.jpg") == 0

    assert capfd.readouterr().out == "dogs/1.jpg" * 100


@pytest.mark.parametrize("word", ["ls", "cat", "extract"])
def test_a_file_that_is_not_there_is_named(made, capfd, word):
    assert rabaska(word, "animals", "dogs/7.jpg") == 4

    assert "dogs/7.jpg" in capfd.readouterr().err


def test_nothing_is_taken_out_when_one_of_the_names_is_wrong(made, tmp_path, capfd):
    wanted = ("cats", "dogs/7.jpg", "--into", str(tmp_path / "out"))

    assert rabaska("extract", "animals", *wanted) == 4

    assert "dogs/7.jpg" in capfd.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_unknown_pack_says_which_there_are(made, capfd):
    assert rabaska("ls", "plants") == 2

    assert made.name in capfd.readouterr().err


def test_a_folder_is_taken_out_with_its_links(made, tmp_path):
    assert rabaska("extract", "animals", "cats", "--into", str(tmp_path / "out")) == 0

    source = tmp_path / "source" / "cats" / "2.jpg"
    found = tmp_path / "out" / "cats" / "2.jpg"
    assert found.read_bytes() == source.read_bytes()
    assert os.readlink(tmp_path / "out" / "cats" / "link") == "1.jpg"
    assert not (tmp_path / "out" / "dogs").exists()


def test_taking_out_again_brings_what_is_missing_and_leaves_the_rest(made, tmp_path, capfd):
    out = tmp_path / "out"
    assert rabaska("extract", "animals", "--into", str(out)) == 0
    kept = (out / "cats/1.jpg").stat()
    (out / "cats/2.jpg").unlink()

    assert rabaska("extract", "animals", "--into", str(out)) == 0

    assert (out / "cats/1.jpg").stat() == kept
    assert (out / "cats/2.jpg").read_text() == "cats/2.jpg" * 100
    assert sorted(os.listdir(out)) == ["cats", "dogs"]


@pytest.mark.slow
def test_taking_out_killed_at_any_moment_leaves_only_whole_files(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for number in range(2000):
        (source / f"{number:04d}").write_bytes(os.urandom(2000))
    made = pack(source, tmp_path / "packs", PackOptions("it")).folder
    program = (
        "import sys; from rabaska.node.data.pack_files import extract\n"
        "print('ready', flush=True); extract(*sys.argv[1:])"
    )

    for attempt in range(20):
        command = [sys.executable, "-c", program, made, tmp_path / "out"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as taking:
            assert taking.stdout is not None
            taking.stdout.readline()
            time.sleep(0.01 * attempt)
            taking.kill()
        for path in (tmp_path / "out").glob("[0-9]*"):
            assert path.read_bytes() == (source / path.name).read_bytes()

    extract(str(made), str(tmp_path / "out"))
    found = {path.name: path.read_bytes() for path in (tmp_path / "out").glob("[0-9]*")}
    assert found == {path.name: path.read_bytes() for path in source.iterdir()}


def test_nothing_is_overwritten(made, tmp_path, capfd):
    (tmp_path / "out" / "dogs").mkdir(parents=True)
    (tmp_path / "out" / "dogs" / "1.jpg").write_text("mine")

    assert rabaska("extract", "animals", "--into", str(tmp_path / "out")) == 4

    assert (tmp_path / "out" / "dogs" / "1.jpg").read_text() == "mine"
    assert os.listdir(tmp_path / "out") == ["dogs"]
    assert "already exists" in capfd.readouterr().err


def test_a_place_that_can_be_no_folder_is_told(made, tmp_path, capfd):
    (tmp_path / "file").write_text("mine")

    assert rabaska("extract", "animals", "--into", str(tmp_path / "file" / "out")) == 15

    told = capfd.readouterr().err
    assert "cannot be written to" in told
    assert f"Not a directory: {tmp_path / 'file'}\n" in told


def test_on_a_full_disk_what_is_complete_stays_and_the_rest_comes_later(tmp_path, capfd):
    for name in ("1", "2", "3"):
        (tmp_path / "source" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "source" / name).write_bytes(os.urandom(500_000))
    made = pack(tmp_path / "source", tmp_path / "packs", PackOptions("it")).folder

    with small_disk(tmp_path / "disk", "1m") as disk:
        assert rabaska("extract", str(made), "--into", str(disk)) == 6
        left = {path.name: path.read_bytes() for path in disk.iterdir()}
        subprocess.run(["mount", "-o", "remount,size=9m", disk], check=True)
        assert rabaska("extract", str(made), "--into", str(disk)) == 0
        at_last = {path.name: path.read_bytes() for path in disk.iterdir()}

    whole = {path.name: path.read_bytes() for path in (tmp_path / "source").iterdir()}
    assert left.items() < whole.items()
    assert at_last == whole
    assert "no space left" in capfd.readouterr().err


def test_damage_is_found_by_verify_cat_and_extract(made, tmp_path, capfd):
    shard = made / "shard-00000.tar"
    content = bytearray(shard.read_bytes())
    content[600] ^= 1
    shard.write_bytes(content)

    assert rabaska("verify", "animals") == 5
    assert rabaska("cat", "animals", "cats/1.jpg") == 5
    assert rabaska("extract", "animals", "--into", str(tmp_path / "out")) == 5

    assert "shard-00000.tar" in capfd.readouterr().err
    assert not (tmp_path / "out" / "cats" / "1.jpg").exists()


def test_a_whole_pack_is_said_to_be_whole(made, capfd):
    assert rabaska("verify", "animals") == 0

    assert "is complete" in capfd.readouterr().err


def test_without_a_name_all_packs_are_verified_also_one_that_lost_a_shard(made, tmp_path, capfd):
    other = pack(tmp_path / "source/cats", made.parent, PackOptions("cats")).folder
    (other / "shard-00000.tar").unlink()

    assert rabaska("verify", "--json") == 5

    told = capfd.readouterr()
    verdicts = {one["pack"]: one["problems"] for one in json.loads(told.out)}
    assert verdicts[made.name] == []
    assert "shard-00000.tar is missing" in verdicts[other.name][0]
    assert f"rabaska data verify {other.name} --repair" in " ".join(told.err.split())


@pytest.mark.parametrize("on", [(), ("--on", "here")])
def test_a_damaged_pack_is_made_again_from_its_dataset(made, tmp_path, monkeypatch, capfd, on):
    monkeypatch.chdir(project_of_animals(tmp_path))
    shard = made / "shard-00000.tar"
    shard.write_bytes(bytes(shard.stat().st_size))
    assert rabaska("verify") == 5

    assert rabaska("verify", *on, "--repair") == 0

    assert f"repaired{' on here' if on else ''}: {made.name}" in capfd.readouterr().err
    assert rabaska("verify") == 0
    assert [path.name for path in made.parent.glob("*.partial")] == []


def test_packing_says_that_the_pack_was_damaged_and_leaves_nothing(
    made, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(project_of_animals(tmp_path))
    shard = made / "shard-00000.tar"
    shard.write_bytes(bytes(shard.stat().st_size))

    with pytest.raises(SystemExit):
        main(["pack"])

    said = " ".join(capfd.readouterr().err.split())
    assert f"pack {made.name} was damaged; packed again" in said
    assert [path.name for path in made.parent.glob("*.partial")] == []
    assert rabaska("verify") == 0


def test_what_is_being_made_or_was_set_aside_is_no_pack(made, monkeypatch, tmp_path, capfd):
    aside = made.with_name(f"{made.name}.0123456789ab.partial")
    shutil.copytree(made, aside)
    (aside / "shard-00000.tar").unlink()

    assert rabaska("verify", "--json") == 0
    assert [one["pack"] for one in json.loads(capfd.readouterr().out)] == [made.name]
    assert rabaska("ls", "animals") == 0
    told = storage("here", Home(tmp_path / "home"))
    assert [each.name for each in told.kept if each.kind == "packs"] == [made.name]


def test_a_pack_of_another_project_is_not_made_again_and_stays(made, tmp_path, monkeypatch, capfd):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "rabaska.toml").write_text('command = "python train.py"')
    (tmp_path / "elsewhere" / "train.py").touch()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (made / "shard-00000.tar").write_bytes(b"")

    assert rabaska("verify", "animals", "--repair") == 5

    assert "in the folder of its project" in capfd.readouterr().err
    assert made.exists()


def test_a_shard_that_cannot_be_read_is_a_problem_of_its_own(made, monkeypatch, capfd):
    (made / "shard-00000.tar").unlink()
    (made / "shard-00000.tar").mkdir()
    monkeypatch.setattr("rabaska.node.data.pack_proof.refuse_wrong_sizes", lambda *_: None)

    assert rabaska("verify", "animals") == 5

    assert "Is a directory" in capfd.readouterr().err


def test_a_cluster_without_a_copy_says_so(made, capfd, tmp_path):
    made.rename(tmp_path / made.name)

    assert rabaska("verify", str(tmp_path / made.name), "--on", "here") == 2

    assert "here has no copy of" in capfd.readouterr().err


def test_many_small_files_should_be_packed(made, tmp_path, capfd):
    assert rabaska("advise", str(tmp_path / "source"), "--json") == 0

    advice = json.loads(capfd.readouterr().out)
    assert advice["files"] == 3
    assert advice["pack"] is True
    assert advice["shrinks_to"] < 0.5


def test_a_few_large_files_need_no_packing(tmp_path, capfd):
    (tmp_path / "large").mkdir()
    for number in range(2):
        with (tmp_path / "large" / str(number)).open("wb") as stream:
            stream.write(os.urandom(2**20))
            stream.truncate(20 * 10**6)

    assert rabaska("advise", str(tmp_path / "large")) == 0

    assert "do not pack" in capfd.readouterr().out


def test_the_storage_of_a_cluster_is_measured_and_nothing_is_left_there(made, tmp_path, capfd):
    assert rabaska("advise", str(tmp_path / "source"), "--on", "here") == 0

    said = capfd.readouterr().out
    (row,) = (line for line in said.splitlines() if line.startswith("store"))
    assert str(tmp_path / "home" / "store") in row
    assert row.count(" s") >= 4
    assert "exists only inside a job" in said
    assert "it would be read from" in said
    assert list((tmp_path / "home" / "store").glob("measuring*")) == []


def test_a_computer_on_which_the_compiled_part_does_not_load_is_told(
    made, tmp_path, capfd, monkeypatch
):
    rabaska("advise", str(tmp_path / "source"), "--on", "here")
    loaded = capfd.readouterr().out
    monkeypatch.setenv("RABASKA_NATIVE", "0")
    rabaska("advise", str(tmp_path / "source"), "--on", "here")

    told = "the compiled part of rabaska does not load on here: it is switched off"
    assert told in capfd.readouterr().out
    assert "compiled part" not in loaded


def test_advice_for_a_cluster_can_be_read_by_a_script(made, tmp_path, capfd):
    rabaska("advise", str(tmp_path / "source"), "--on", "here", "--json")

    store = json.loads(capfd.readouterr().out)["tiers"][0]
    assert store["tier"] == "store"
    assert min(store["write"], store["read"], store["seconds_to_make"]) > 0


def test_the_copy_of_a_pack_on_a_cluster_is_verified_there(made, capfd):
    assert rabaska("verify", "animals", "--on", "here") == 0
    (made / "shard-00000.tar").write_bytes(b"")
    assert rabaska("verify", "animals", "--on", "here") == 5

    assert "shard-00000.tar has 0 bytes" in " ".join(capfd.readouterr().err.split())


@pytest.mark.parametrize("name", ["/", "/animals", "..", "../packs", "[", "**x", "", "x" * 5000])
@pytest.mark.parametrize("word", ["ls", "verify"])
def test_a_name_that_can_be_no_packs_is_said_to_be_none(made, capsys, word, name):
    code = rabaska(word, name)

    assert code == 2 or not name
    assert "Traceback" not in capsys.readouterr().err
