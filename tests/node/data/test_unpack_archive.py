"""Archives that are damaged or cut short are refused, never unpacked in part."""

import io
import os
import random
import tarfile
import zipfile

import pytest

from rabaska.errors import DatasetError
from rabaska.node.data.unpack_archive import BadArchive, unpack
from rabaska.packing.archives import NeedsUnpacking, index_in_place

SIZE = 20_000
MEMBER = 512 + SIZE // 512 * 512 + 512  # bytes of a plain tar: its header, its content, zeros


def made_tar(mode):
    content, numbers = io.BytesIO(), random.Random(1)
    with tarfile.open(fileobj=content, mode=mode) as tar:
        for number in range(30):
            entry = tarfile.TarInfo(f"{number}.bin")
            entry.size = SIZE
            tar.addfile(entry, io.BytesIO(bytes(numbers.choices(b"abcdefgh", k=SIZE))))
    return content.getvalue()


def flipped(content, place):
    changed = bytearray(content)
    changed[place] ^= 0xFF
    return bytes(changed)


def unpacked(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    (tmp_path / "out").mkdir()
    unpack(str(tmp_path / name), str(tmp_path / "out"))
    return len(os.listdir(tmp_path / "out"))


@pytest.mark.parametrize("kind", ["", "gz", "bz2", "xz"])
def test_a_whole_one_is_unpacked(tmp_path, kind):
    assert unpacked(tmp_path, f"x.tar.{kind}".rstrip("."), made_tar(f"w:{kind}")) == 30


@pytest.mark.parametrize("cut", [MEMBER, MEMBER + 100, MEMBER + 512, MEMBER + 700])
def test_a_tar_that_was_cut_short_is_refused(tmp_path, cut):
    with pytest.raises(BadArchive):
        unpacked(tmp_path, "x.tar", made_tar("w:")[:cut])


def test_a_damaged_header_is_not_taken_for_the_end(tmp_path):
    with pytest.raises(BadArchive, match="damaged"):
        unpacked(tmp_path, "x.tar", flipped(made_tar("w:"), MEMBER + 5))


def tar_with(size=b"", **pax):
    """A tar of one file, whose size is written so, and with such words before it."""
    content, entry = io.BytesIO(), tarfile.TarInfo("cats/1.txt")
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as tar:
        entry.pax_headers = {name.replace("_", "."): text for name, text in pax.items()}
        tar.addfile(entry)
    changed = bytearray(content.getvalue())
    if size:
        changed[124:136] = size
        changed[148:156] = b" " * 8
        changed[148:156] = b"%06o\0 " % sum(changed[:512])
    return bytes(changed)


LYING_TARS = {
    "back to the beginning": tar_with(b"\xff" * 10 + b"\xfe\0"),
    "back to its own header": tar_with()[:512] + tar_with(b"\xff" * 10 + b"\xfe\0") + bytes(SIZE),
    "words before their own header": tar_with(b"\xff" * 10 + b"\xfe\0", comment="meow"),
    "longer than memory": tar_with(b"\x80" + b"\x7f" * 11, comment="this header is the one"),
    "beyond every file": tar_with(b"\x80" + b"\x7f" * 11),
    "no number": tar_with(GNU_sparse_map="0,5,9,x", GNU_sparse_size="5"),
    "a list that is not there": tar_with(GNU_sparse_major="1", GNU_sparse_minor="0"),
    "a time that never comes": tar_with(mtime="1e300"),
    "no time": tar_with(mtime="nan"),
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("lie", LYING_TARS)
def test_a_tar_whose_numbers_lie_is_refused(tmp_path, lie):
    with pytest.raises(BadArchive):
        unpacked(tmp_path, "x.tar", LYING_TARS[lie])


def zip_with(name="cats/1.txt", place=None):
    """A zip of one file that is called so, and lies somewhere else."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(name or "a", "meow")
    changed = bytearray(content.getvalue())
    at = changed.index(b"PK\1\2")
    if not name:
        changed[30], changed[at + 46] = 0, 0  # a zero ends it
    if place is not None:
        changed[at + 42 : at + 46] = place.to_bytes(4, "little")
    return bytes(changed)


@pytest.mark.parametrize("content", [zip_with(name=""), zip_with(place=2**31)])
def test_a_zip_whose_numbers_lie_is_refused(tmp_path, content):
    with pytest.raises(BadArchive):
        unpacked(tmp_path, "x.zip", content)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("lie", LYING_TARS)
def test_a_tar_whose_numbers_lie_is_not_indexed_in_place(tmp_path, lie):
    archive = tmp_path / "x.tar"
    archive.write_bytes(LYING_TARS[lie])
    (tmp_path / "pack").mkdir()

    with pytest.raises((DatasetError, NeedsUnpacking)):
        index_in_place(archive, "cats", tmp_path / "pack")


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
def test_a_compressed_one_that_is_damaged_or_cut_is_refused(tmp_path, kind, part):
    content = made_tar(f"w:{kind}")
    place = int(len(content) * part)

    for number, wrong in enumerate((flipped(content, place), content[:place])):
        (tmp_path / str(number)).mkdir()
        with pytest.raises(BadArchive):
            unpacked(tmp_path / str(number), f"x.tar.{kind}", wrong)


@pytest.mark.parametrize("place", [40, 60, 100])
def test_a_damaged_zip_is_refused(tmp_path, place):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("a.txt", "cat " * 1000 + "".join(random.Random(1).choices("abcd", k=900)))

    with pytest.raises(BadArchive):
        unpacked(tmp_path, "x.zip", flipped(content.getvalue(), place))


def test_a_zip_with_a_file_inside_a_file_is_refused(tmp_path):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as zipped:
        zipped.writestr("a", "1")
        zipped.writestr("a/b", "2")

    with pytest.raises(BadArchive, match="a/b is inside something"):
        unpacked(tmp_path, "x.zip", content.getvalue())
