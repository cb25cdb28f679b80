"""Datasets that are not one folder: archives, single files, several folders."""

import io
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import trees

import rabaska
from rabaska.errors import DatasetError
from rabaska.node.data.stage import stage
from rabaska.node.data.verify import verify
from rabaska.packing.dataset_sources import pack_origin
from rabaska.packing.make_pack import Pack, PackOptions
from rabaska.training import PackedDataset

SOURCES = Path(rabaska.__file__).parents[1]


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
    return pack_origin(sources, tmp_path / "packs", PackOptions("toy"))


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
    assert trees.described(staged) == trees.described(source)
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
    assert trees.described(staged) == trees.described(source)
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
    assert trees.described(staged) == trees.described(source)


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


def test_a_damaged_header_is_not_taken_for_the_end(tmp_path):
    archive = forged(tmp_path / "x.tar", member("a", size=3), member("b", size=3))
    content = bytearray(archive.read_bytes())
    content[1024 + 5] ^= 0xFF
    archive.write_bytes(content)

    with pytest.raises(DatasetError, match=r"x\.tar") as refusal:
        packed(tmp_path, archive)

    assert "damaged or cut short" in refusal.value.why


def test_a_size_that_lies_is_refused(tmp_path):
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        archive.addfile(member("liar", size=5), io.BytesIO(b"12345"))
    content = bytearray((tmp_path / "x.tar").read_bytes())
    liar = member("liar", size=10**12).tobuf()
    (tmp_path / "x.tar").write_bytes(liar + content[512:])

    with pytest.raises(DatasetError):
        packed(tmp_path, tmp_path / "x.tar")


# Whatever `requires-python` promises, patch releases without newer additions among them.
PYTHONS = {
    str(python.resolve()): python
    for python in [Path(sys.executable), Path("/usr/bin/python3"),
                   *Path.home().glob(".pyenv/versions/3.1[1-9].*/bin/python3")]
    if python.exists()
}  # fmt: skip
UNPACK = """
import sys, tarfile
from pathlib import Path
if sys.version_info < (3, 11):
    sys.exit(75)
# As in Python 3.11.0 to 3.11.3.
for late in ("data_filter", "tar_filter", "fully_trusted_filter"):
    if hasattr(tarfile, late):
        delattr(tarfile, late)
tarfile.TarFile.extractall = tarfile.TarFile.extract = None
import rabaska
from rabaska.errors import DatasetError
from rabaska.packing.archives import unpack
try:
    unpack(Path(sys.argv[1]), Path(sys.argv[2]))
except DatasetError as refusal:
    sys.exit(str(refusal))
"""


def unpacked(python: Path, archive: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    folder.mkdir()
    done = subprocess.run(
        [python, "-c", UNPACK, archive, folder],
        env={"PYTHONPATH": str(SOURCES), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 75:
        pytest.skip("an older Python than we promise")
    return done


@pytest.mark.parametrize("python", PYTHONS.values(), ids=str)
def test_every_promised_python_unpacks_a_compressed_archive(source, tmp_path, python):
    os.link(source / "readme", source / "zz again")
    with (source / "holes").open("wb") as sparse:
        sparse.truncate(10_000_000)
    archive = tar(source, tmp_path / "x.tar.gz", "-z", "--sparse")

    done = unpacked(python, archive, tmp_path / "node")

    assert (done.returncode, done.stderr) == (0, "")
    assert trees.described(tmp_path / "node") == trees.described(source)


@pytest.mark.parametrize("python", PYTHONS.values(), ids=str)
@pytest.mark.parametrize(
    "bad",
    [
        [member("../cat", size=1)],
        [member("l", tarfile.SYMTYPE, linkname="..")],
        [member("l", tarfile.SYMTYPE, linkname="a"), member("l/cat", size=1)],
        [member("l", tarfile.LNKTYPE, linkname="../target")],
        [member("l", tarfile.LNKTYPE, linkname="/etc/passwd")],
        [member("s", tarfile.SYMTYPE, linkname="a"), member("l", tarfile.LNKTYPE, linkname="s")],
        [member("a/b", size=1), member("a", size=1)],
        [member("a", size=1), member("a/b", size=1)],
        [member("a", size=1, mtime=1e300)],
        [member("d", tarfile.BLKTYPE)],
    ],
    ids=lambda bad: " ".join(f"{each.name}>{each.linkname}" for each in bad),
)  # fmt: skip
def test_every_promised_python_refuses_a_hostile_archive(tmp_path, python, bad):
    (tmp_path / "target").write_text("outside")
    archive = forged(tmp_path / "x.tar", member("fine", size=3), *bad)

    done = unpacked(python, archive, tmp_path / "node")

    assert done.returncode == 1
    assert "cannot be packed" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["node", "target", "x.tar"]


def test_a_later_member_of_the_same_name_takes_the_place_of_a_link(tmp_path):
    forged(
        tmp_path / "x.tar",
        member("a", size=2), member("l", tarfile.SYMTYPE, linkname="a"), member("l", size=5),
    )  # fmt: skip
    subprocess.run(["gzip", tmp_path / "x.tar"], check=True)

    made = packed(tmp_path, tmp_path / "x.tar.gz")

    assert sorted(len(content) for content, _ in PackedDataset(made.folder)) == [2, 5]


@pytest.mark.parametrize(
    "path", [".ssh", ".aws/sso", ".config/gcloud", ".netrc", "", "..", "link", "data"]
)
def test_keys_and_passwords_are_no_data(tmp_path, monkeypatch, path):
    """As somebody else's rabaska.toml may name them; `data` holds a link, which is followed."""
    home = tmp_path / "home"
    for name in (".ssh/id_rsa", ".aws/sso/token", ".config/gcloud/key", ".netrc", "data/1.txt"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("secret")
    (home / "link").symlink_to(".ssh")
    (home / "data" / "more").symlink_to("../.ssh")
    monkeypatch.setenv("HOME", str(home))

    with pytest.raises(DatasetError, match="keys and passwords are kept there"):
        pack_origin([home / path], tmp_path / "store", PackOptions("data", follow_links=True))

    assert not list(tmp_path.glob("store/data-*"))


def test_data_in_a_cache_of_the_home_is_data(tmp_path, monkeypatch):
    folder = tmp_path / "home" / ".cache" / "huggingface"
    folder.mkdir(parents=True)
    (folder / "1.txt").write_text("one")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    assert pack_origin([folder], tmp_path / "store", PackOptions("data")).files == 1
