"""Pictures packed smaller than they are, if the user asks for it."""

import io
import os
import sys

import pytest

Image = pytest.importorskip("PIL.Image")
from PIL import ImageOps  # noqa: E402

from rabaska.errors import DatasetError  # noqa: E402
from rabaska.packing.make_pack import PackOptions  # noqa: E402
from rabaska.packing.shrink_pictures import pack_shrunk  # noqa: E402
from rabaska.training import PackedDataset  # noqa: E402


def save(path, size, mode="RGB", **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.radial_gradient("L").resize(size).convert(mode).save(path, **options)


@pytest.fixture
def source(tmp_path):
    turned = Image.Exif()
    turned[0x0112] = 6
    folder = tmp_path / "pictures"
    save(folder / "a" / "large.jpg", (640, 480))
    save(folder / "a" / "small.jpg", (40, 30))
    save(folder / "a" / "turned.JPEG", (640, 480), exif=turned)
    save(folder / "b" / "ink.jpg", (300, 640), mode="CMYK")
    save(folder / "b" / "mask.png", (640, 480), mode="L")
    (folder / "b" / "broken.jpg").write_bytes(b"no picture")
    (folder / "labels.txt").write_text("cats")
    return folder


def packed(source, tmp_path, side=128):
    return pack_shrunk([source], tmp_path / "packs", PackOptions("it"), side)


def contents(pack):
    dataset = PackedDataset(pack.folder)
    return {dataset.names[place]: dataset[place][0] for place in range(len(dataset))}


def test_large_jpeg_pictures_are_small_and_all_else_is_as_it_was(source, tmp_path):
    before = {path: path.read_bytes() for path in source.rglob("*.*")}

    pack, done = packed(source, tmp_path)

    found = contents(pack)
    pictures = ("a/large.jpg", "a/small.jpg", "a/turned.JPEG", "b/ink.jpg")
    sizes = {name: Image.open(io.BytesIO(found[name])).size for name in pictures}
    assert sizes == {
        "a/large.jpg": (128, 96), "a/small.jpg": (40, 30), "a/turned.JPEG": (128, 96),
        "b/ink.jpg": (60, 128),
    }  # fmt: skip
    for name in ("a/small.jpg", "b/mask.png", "b/broken.jpg", "labels.txt"):
        assert found[name] == before[source / name]
    assert {path: path.read_bytes() for path in source.rglob("*.*")} == before
    assert (done.pictures, done.shrunk, done.broken, done.other) == (5, 3, 1, 1)
    assert done.first_broken == str(source / "b" / "broken.jpg")
    assert done.bytes_after < done.bytes_before
    assert sorted(os.listdir(tmp_path / "packs"))[-1] == pack.identity
    turned = Image.open(io.BytesIO(found["a/turned.JPEG"]))
    assert ImageOps.exif_transpose(turned).size == (96, 128)


def test_another_size_is_another_pack_and_the_same_is_made_once(source, tmp_path):
    first, done = packed(source, tmp_path)
    again, nothing = packed(source, tmp_path)
    other, _ = packed(source, tmp_path, side=64)
    save(source / "a" / "large.jpg", (640, 400))
    changed, _ = packed(source, tmp_path)

    assert done is not None
    assert nothing is None
    assert (again.identity, again.new) == (first.identity, False)
    assert len({first.identity, other.identity, changed.identity}) == 3


def test_several_folders_lie_side_by_side(source, tmp_path):
    pack, _ = pack_shrunk([source / "a", source / "b"], tmp_path / "packs", PackOptions("it"), 128)

    assert "a/large.jpg" in contents(pack)
    assert "b/ink.jpg" in contents(pack)


def test_without_pillow_it_says_what_to_do(source, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)

    with pytest.raises(DatasetError) as refused:
        packed(source, tmp_path)

    assert "Pillow" in refused.value.why
    assert "pip install pillow" in refused.value.hint


def test_rabaska_toml_asks_for_it_and_pack_tells(source, tmp_path, laptop_project):
    told = laptop_project('images = "max 128"')

    assert "3 of 5 JPEG pictures shrunk to at most 128 pixels" in told
    assert "1 picture of other formats left" in told
    assert "1 picture cannot be read" in told


@pytest.mark.parametrize("wrong", ['images = "512"', 'images = "max 3"'])
def test_anything_else_is_refused(source, tmp_path, laptop_project, wrong):
    assert "max 512" in laptop_project(wrong, fails=True)


@pytest.fixture
def laptop_project(source, tmp_path):
    """Types `rabaska pack` in a project whose dataset has these lines."""
    import subprocess
    from pathlib import Path

    def typed(lines, *, fails=False):
        text = f'name = "it"\ncommand = "true"\n[data.pictures]\npath = "pictures"\n{lines}\n'
        (tmp_path / "rabaska.toml").write_text(text)
        ended = subprocess.run(
            [Path(sys.executable).with_name("rabaska"), "pack"], cwd=tmp_path, check=False,
            capture_output=True, text=True,
            env={**os.environ, "RABASKA_HOME": str(tmp_path / "home"), "COLUMNS": "300"},
        )  # fmt: skip
        assert (ended.returncode != 0) == fails, ended.stderr
        return ended.stdout + ended.stderr

    return typed
