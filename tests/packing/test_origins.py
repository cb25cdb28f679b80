"""Datasets that are not one folder: archives, single files, several folders."""

import io
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
import trees

from rabaska.errors import DatasetError
from rabaska.node.data.stage import stage
from rabaska.node.data.verify import verify
from rabaska.packing.origins import pack_origin
from rabaska.packing.pack import Pack, Wish
from rabaska.training import PackedDataset


@pytest.fixture
def source(tmp_path) -> Path:
    folder = tmp_path / "source"
    for number, name in enumerate(("cats/1.jpg", "cats/2.jpg", "dogs/1.jpg", "readme")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name * 100)
        os.utime(folder / name, (number, 10**9 + number))
    os.symlink("1.jpg", folder / "cats" / "link")
    for name in ("cats", "dogs"):
        os.utime(folder / name, (1, 1))
    return folder


def packed(tmp_path: Path, *sources: Path) -> Pack:
    return pack_origin(sources, tmp_path / "packs", Wish("toy"))


def tar(folder: Path, path: Path, *options: str) -> Path:
    subprocess.run(["tar", "cf", path, *options, "-C", folder, "."], check=True)
    return path


def forged(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(bytes(member.size)))
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, **more) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type = kind
    for field, value in more.items():
        setattr(made, field, value)
    return made


@pytest.mark.parametrize("options", [(), ("--sort=name",), ("--format=gnu",), ("--format=posix",)])
def test_a_plain_tar_is_indexed_in_place_and_not_rewritten(source, tmp_path, options):
    archive = tar(source, tmp_path / "x.tar", *options)

    made = packed(tmp_path, archive)

    assert os.stat(made.folder / "shard-00000.tar").st_ino == os.stat(archive).st_ino
    assert verify(str(made.folder)) == []
    staged = stage(str(made.folder), str(tmp_path / "node"))
    assert trees.described(staged, times=False) == trees.described(source, times=False)
    assert [content for content, _ in PackedDataset(made.folder)] == [
        name.encode() * 100 for name in ("cats/1.jpg", "cats/2.jpg", "dogs/1.jpg", "readme")
    ]


def test_an_archive_nobody_touched_is_not_read_again(source, tmp_path):
    archive = tar(source, tmp_path / "x.tar")
    first = packed(tmp_path, archive)

    second = packed(tmp_path, archive)

    assert (first.reused, second.reused) == (False, True)
    assert first.identity == second.identity


def test_compressed_archives_give_the_pack_of_their_folder(source, tmp_path):
    archive = tar(source, tmp_path / "x.tar.gz", "-z")

    made = packed(tmp_path, archive)

    staged = stage(str(made.folder), str(tmp_path / "node"))
    assert trees.described(staged, times=False) == trees.described(source, times=False)
    assert packed(tmp_path, archive).reused
    assert [path.name for path in (tmp_path / "packs").glob("*.partial")] == []


def test_a_zip_is_packed(source, tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.write(source / "cats" / "1.jpg", "cats/1.jpg")

    made = packed(tmp_path, tmp_path / "x.zip")

    assert list(PackedDataset(made.folder)) == [(b"cats/1.jpg" * 100, 0)]


def test_a_tar_with_hard_links_or_twins_is_unpacked_instead(source, tmp_path):
    os.link(source / "readme", source / "again")
    archive = tar(source, tmp_path / "x.tar")

    made = packed(tmp_path, archive)

    staged = stage(str(made.folder), str(tmp_path / "node"))
    assert trees.described(staged, times=False) == trees.described(source, times=False)


def test_one_large_file_is_a_dataset(tmp_path):
    (tmp_path / "all.lmdb").write_bytes(b"x" * 5_000_000)

    made = packed(tmp_path, tmp_path / "all.lmdb")

    staged = Path(stage(str(made.folder), str(tmp_path / "node")))
    assert os.listdir(staged) == ["all.lmdb"]
    assert (staged / "all.lmdb").read_bytes() == b"x" * 5_000_000


def test_several_folders_lie_side_by_side(source, tmp_path):
    made = packed(tmp_path, source / "cats", source / "dogs")

    assert PackedDataset(made.folder).classes == ["cats", "dogs"]
    assert made.files == 4


def test_folders_of_one_name_are_refused(source, tmp_path):
    (tmp_path / "cats").mkdir()

    with pytest.raises(DatasetError, match="cats"):
        packed(tmp_path, source / "cats", tmp_path / "cats")


@pytest.mark.parametrize(
    "bad",
    [
        member("/etc/cat", size=1), member("../cat", size=1), member("a/../../cat", size=1),
        member("l", tarfile.SYMTYPE, linkname="/etc"), member("l", tarfile.SYMTYPE, linkname=".."),
        member("d", tarfile.CHRTYPE), member("p", tarfile.FIFOTYPE),
    ],
    ids=lambda bad: f"{bad.name} {bad.linkname}",
)  # fmt: skip
@pytest.mark.parametrize("suffix", [".tar", ".tar.gz"])
def test_hostile_archives_are_refused_and_leave_nothing(tmp_path, bad, suffix):
    forged(tmp_path / "x.tar", member("fine", size=3), bad)
    if suffix == ".tar.gz":
        subprocess.run(["gzip", tmp_path / "x.tar"], check=True)

    with pytest.raises(DatasetError):
        packed(tmp_path, tmp_path / f"x{suffix}")

    assert [path.name for path in (tmp_path / "packs").iterdir()] == []


def test_an_archive_that_was_cut_short_is_refused(source, tmp_path):
    archive = tar(source, tmp_path / "x.tar")
    os.truncate(archive, 2000)

    with pytest.raises(DatasetError):
        packed(tmp_path, archive)


def test_a_size_that_lies_is_refused(tmp_path):
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        archive.addfile(member("liar", size=5), io.BytesIO(b"12345"))
    content = bytearray((tmp_path / "x.tar").read_bytes())
    liar = member("liar", size=10**12).tobuf()
    (tmp_path / "x.tar").write_bytes(liar + content[512:])

    with pytest.raises(DatasetError):
        packed(tmp_path, tmp_path / "x.tar")
