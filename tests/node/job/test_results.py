"""What programs leave beside their code, and the code that is unpacked for them."""

import io
import os
import resource
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from agents import snapshot_tar

from rabaska.node.job import prepare_program, results, unpacked_code


class Place:
    def __init__(self, folder: Path) -> None:
        self.code, self.carried = folder / "code", folder / "carried"
        self.output = self.carried / "output"
        for path in (self.code, self.output):
            path.mkdir(parents=True)

    def keep(self, before: unpacked_code.Listing) -> results.KeptFiles:
        return results.keep_new(str(self.code), str(self.carried), before)

    def show(self, *paths: str) -> None:
        prepare_program.show(str(self.code), str(self.carried), list(paths))

    def listing(self) -> unpacked_code.Listing:
        return unpacked_code.listing(str(self.code))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_new_and_changed_files_are_kept_and_the_rest_is_not(place: Place) -> None:
    for name in ("train.py", "results.csv"):
        (place.code / name).write_text("as it was")
    before = place.listing()
    (place.code / "results.csv").write_text("changed since")
    (place.code / "plots").mkdir()
    (place.code / "plots" / "loss.png").write_bytes(b"png")

    kept = place.keep(before)

    assert kept.paths == ["plots/loss.png", "results.csv"]
    assert kept.problems == []
    assert (place.output / "results.csv").read_text() == "changed since"
    assert not (place.output / "train.py").exists()


def core_dump() -> bytes:
    return b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x04\x00" + bytes(100)


@pytest.mark.parametrize(
    "name",
    [
        "__pycache__/a.pyc", "a/b.pyc", ".git/objects/1", "a.partial", "core", "src/core.123",
        ".pytest_cache/v", ".nfs00000000024a0d4900000001",
        "run/5.orbax-checkpoint-tmp-1/d", "ckpt-000000001.0123456789ab.partial/model",
    ],
)  # fmt: skip
def test_what_nobody_wants_is_passed_over(place: Place, name: str) -> None:
    (place.code / name).parent.mkdir(parents=True, exist_ok=True)
    (place.code / name).write_bytes(core_dump())
    if ".git" in name:
        (place.code / ".git/HEAD").write_text("ref: refs/heads/main\n")

    assert place.keep({}).paths == []


@pytest.mark.parametrize(
    "name",
    [
        "core/results.csv", "src/core/model.pt", "core.5/results.csv", "core", "core.1",
        ".git/results.csv", "best.partial/results.csv", "build/results.csv", "dist/a.whl",
        "env/episode.csv", "venv/a.csv", ".nfs-benchmark.csv", "a.pyc/results.csv",
    ],
)  # fmt: skip
def test_a_result_is_kept_whatever_its_folder_is_called(place: Place, name: str) -> None:
    (place.code / name).parent.mkdir(parents=True, exist_ok=True)
    (place.code / name).write_text("0.5\n")

    assert place.keep({}).paths == [name]


def test_what_is_passed_over_is_named_but_for_byte_code(place: Place) -> None:
    for name in ("core.77", ".mypy_cache/3.12/a.json", "a.partial", "__pycache__/a.pyc", "b.pyc"):
        (place.code / name).parent.mkdir(parents=True, exist_ok=True)
        (place.code / name).write_bytes(core_dump())

    assert place.keep({}).passed_over == [".mypy_cache", "a.partial", "core.77"]


def test_a_link_inside_is_kept_and_one_that_leads_out_is_not(place: Place) -> None:
    (place.code / "epoch-3").write_text("x")
    (place.code / "last").symlink_to("epoch-3")
    (place.code / "data").symlink_to("/etc")
    (place.code / "up").symlink_to("../elsewhere")

    kept = place.keep({})

    assert kept.paths == ["epoch-3", "last"]
    assert kept.passed_over == ["data", "up"]
    assert (place.output / "last").read_text() == "x"


def test_pipes_and_odd_names_do_no_harm(place: Place) -> None:
    os.mkfifo(place.code / "pipe")
    odd = os.fsdecode(b"a \xff\n'b")
    (place.code / odd).write_text("x")

    kept = place.keep({})

    assert kept.paths == [odd]
    assert (place.output / odd).read_text() == "x"


def test_the_next_job_finds_what_was_kept_and_writes_to_it_directly(place: Place) -> None:
    (place.code / "history.csv").write_text("1\n")
    place.keep({})
    (place.code / "history.csv").unlink()

    place.show()
    with open(place.code / "history.csv", "a") as stream:
        stream.write("2\n")

    assert (place.output / "history.csv").read_text() == "1\n2\n"


def test_a_kept_folder_that_came_with_the_code_keeps_its_content(place: Place) -> None:
    (place.code / "runs").mkdir()
    (place.code / "runs" / "readme").write_text("r")

    place.show("runs")

    assert (place.code / "runs").is_symlink()
    assert (place.output / "runs" / "readme").read_text() == "r"


def test_a_kept_name_with_a_suffix_is_a_file_to_be(place: Place) -> None:
    place.show("logs/train.log")

    (place.code / "logs" / "train.log").write_text("x")

    assert (place.output / "logs" / "train.log").read_text() == "x"


def test_showing_twice_the_same_place_is_harmless(place: Place) -> None:
    place.show("runs", "runs/a", "runs")

    assert (place.code / "runs" / "..").exists()
    assert place.keep(place.listing()).paths == []


def test_a_file_that_does_not_fit_leaves_the_older_one_and_keeps_the_others(place: Place) -> None:
    (place.code / "big").write_text("older")
    place.keep({})
    (place.code / "big").write_bytes(b"x" * 100_000)
    (place.code / "small").write_text("fits")
    script = (
        "import sys; from rabaska.node.job import results;"
        "print(results.keep_new(sys.argv[1], sys.argv[2], {}).problems)"
    )

    done = subprocess.run(
        [sys.executable, "-c", script, str(place.code), str(place.carried)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )

    assert "big: File too large" in done.stdout
    assert (place.output / "big").read_text() == "older"
    assert (place.output / "small").read_text() == "fits"
    assert sorted(os.listdir(place.output)) == ["big", "small"]


def test_nothing_is_kept_once_the_run_is_lost(place: Place) -> None:
    (place.code / "new").write_text("x")

    kept = results.keep_new(str(place.code), str(place.carried), {}, may_write=lambda: False)

    assert kept.paths == []
    assert kept.missing == ["new"]
    assert os.listdir(place.output) == []


def test_a_snapshot_is_unpacked_as_it_was(tmp_path: Path) -> None:
    snapshot_tar(tmp_path / "c.tar", {"train.py": "print()", "src/a b.py": "é"})

    found = unpacked_code.unpack(str(tmp_path / "c.tar"), str(tmp_path / "code"))

    assert sorted(found) == ["src/a b.py", "train.py"]
    assert (tmp_path / "code/src/a b.py").read_text() == "é"
    assert os.access(tmp_path / "code/train.py", os.X_OK)


def hostile(path: Path, *members: tuple[str, bytes, str]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, kind, target in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            member.size = 1 if kind == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(b"x"))


@pytest.mark.parametrize(
    "members",
    [
        [("../out", tarfile.REGTYPE, "")],
        [("/tmp/rabaska-out", tarfile.REGTYPE, "")],
        [("a/../../out", tarfile.REGTYPE, "")],
        [("up", tarfile.SYMTYPE, "..")],
        [("etc", tarfile.SYMTYPE, "/etc")],
        [("d/up", tarfile.SYMTYPE, "../../out")],
        [("a", tarfile.REGTYPE, ""), ("hard", tarfile.LNKTYPE, "a")],
        [("null", tarfile.CHRTYPE, "")],
    ],
)
def test_a_snapshot_that_climbs_out_is_refused(
    tmp_path: Path, members: list[tuple[str, bytes, str]]
) -> None:
    hostile(tmp_path / "c.tar", *members)

    with pytest.raises(unpacked_code.WrongSnapshot):
        unpacked_code.unpack(str(tmp_path / "c.tar"), str(tmp_path / "code"))

    assert sorted(os.listdir(tmp_path)) == ["c.tar", "code"]


def test_a_truncated_snapshot_is_refused(tmp_path: Path) -> None:
    snapshot_tar(tmp_path / "c.tar", {"train.py": "x" * 100_000})
    os.truncate(tmp_path / "c.tar", 50_000)

    with pytest.raises(unpacked_code.WrongSnapshot):
        unpacked_code.unpack(str(tmp_path / "c.tar"), str(tmp_path / "code"))
