"""Parts of pictures, decoded no further than needed: the pixels that Pillow would have given."""

import io
import os
import random
import subprocess
import sys

import pytest

Image = pytest.importorskip("PIL.Image")
from PIL import ImageChops, ImageOps, ImageStat  # noqa: E402

from rabaska.training import jpeg_parts  # noqa: E402
from rabaska.training.jpeg_parts import Box  # noqa: E402
from rabaska.training.lazy_picture import LazyPicture, opened, resized  # noqa: E402

KINDS = {
    "colour at half size": {"subsampling": 2},
    "colour at half width": {"subsampling": 1},
    "all colours": {"subsampling": 0},
    "progressive": {"progressive": True},
    "with restarts": {"restart_marker_blocks": 7},
}


def picture(width, height, seed=1, mode="RGB"):
    """Something between a photograph and noise: every frequency, the low ones stronger."""
    chance = random.Random(seed)
    made = Image.new("RGB", (width, height), "gray")
    for side in (3, 9, 30, 90, 200):
        noise = Image.frombytes("RGB", (side, side), chance.randbytes(3 * side * side))
        made = Image.blend(made, noise.resize((width, height), Image.BICUBIC), 0.3)
    return made.convert(mode)


def jpeg(width, height, seed=1, mode="RGB", **options):
    content = io.BytesIO()
    picture(width, height, seed, mode).save(content, "JPEG", quality=90, **options)
    return content.getvalue()


def plain(content):
    return Image.open(io.BytesIO(content)).convert("RGB")


def corners(box):
    return box.left, box.top, box.left + box.width, box.top + box.height


def distance(one, other):
    """The mean and the largest difference of two pictures, in steps of 255."""
    difference = ImageStat.Stat(ImageChops.difference(one, other))
    return max(difference.mean), max(high for _, high in difference.extrema)


def boxes(width, height, count, seed=3):
    chance = random.Random(seed)
    for _ in range(count):
        wide, high = chance.randint(1, width), chance.randint(1, height)
        yield Box(chance.randint(0, width - wide), chance.randint(0, height - high), wide, high)


@pytest.fixture(autouse=True)
def compiled_here():
    if jpeg_parts._library() is None:
        pytest.skip("no library of C, or a Pillow with another libjpeg")


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_a_part_is_what_pillow_decodes_there(options):
    content = jpeg(203, 155, **options)

    for box in boxes(203, 155, 40):
        part = opened(content).crop(corners(box)).resize((box.width, box.height), Image.BILINEAR)
        assert distance(part, plain(content).crop(corners(box))) == (0, 0), box


@pytest.mark.parametrize("how", [Image.BILINEAR, Image.BICUBIC])
def test_resized_by_less_than_half_it_differs_by_rounding(how):
    content = jpeg(300, 200)

    for box in boxes(300, 200, 40):
        size = (max(1, box.width * 2 // 3), max(1, box.height * 3 // 4))
        ours = opened(content).crop(corners(box)).resize(size, how)
        theirs = plain(content).crop(corners(box)).resize(size, how)
        mean, most = distance(ours, theirs)
        assert mean < 0.5, box
        assert most <= (1 if how == Image.BILINEAR else 4), box


@pytest.mark.parametrize("by", [2, 4, 8])
def test_at_a_reduced_size_it_is_as_close_as_pillows_draft(by):
    """Both are compared with the whole picture, decoded and then resized."""
    ours, drafts = [], []

    for seed in range(6):
        content = jpeg(900, 700, seed)
        for box in boxes(900, 700, 4, seed):
            size = (max(1, box.width // by), max(1, box.height // by))
            exact = plain(content).crop(corners(box)).resize(size, Image.BILINEAR)
            part = opened(content).crop(corners(box)).resize(size, Image.BILINEAR)
            ours.append(distance(part, exact)[0])
            drafts.append(distance(resized(content, box, size), exact)[0])

    assert sum(ours) <= sum(drafts) * 1.02
    assert sum(ours) / len(ours) < 4


def test_to_a_program_it_is_an_ordinary_image():
    content = jpeg(90, 70)
    image, other = opened(content), plain(content)

    assert isinstance(image, LazyPicture)
    assert (image.size, image.mode, image.getbands()) == (other.size, "RGB", ("R", "G", "B"))
    assert image.tobytes() == other.tobytes()
    assert opened(content).convert("RGB").getpixel((3, 4)) == other.getpixel((3, 4))
    assert opened(content).convert("L").tobytes() == other.convert("L").tobytes()
    assert (
        opened(content).crop((-5, -5, 10, 10)).tobytes() == other.crop((-5, -5, 10, 10)).tobytes()
    )
    assert opened(content).rotate(90).tobytes() == other.rotate(90).tobytes()
    assert opened(content).resize((9, 7), Image.NEAREST) == other.resize((9, 7), Image.NEAREST)
    twice = opened(content).crop((10, 10, 60, 60)).crop((5, 5, 20, 20))
    assert twice.tobytes() == other.crop((15, 15, 30, 30)).tobytes()
    assert opened(content).copy().transpose(Image.FLIP_TOP_BOTTOM).size == (90, 70)


def test_orientation_is_still_told():
    turned = Image.Exif()
    turned[0x0112] = 6
    content = jpeg(90, 70, exif=turned)

    assert ImageOps.exif_transpose(opened(content)).size == (70, 90)


@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_other_colours_are_three_channels_too(mode):
    content = jpeg(60, 50, mode=mode)

    image = opened(content).crop((5, 5, 45, 45)).resize((32, 32), Image.BILINEAR)

    other = plain(content).crop((5, 5, 45, 45)).resize((32, 32), Image.BILINEAR)
    assert distance(image, other)[1] <= 1


def test_what_is_broken_is_refused_as_pillow_refuses_it():
    content = jpeg(200, 200)

    with pytest.raises(OSError, match="truncated"):
        opened(content[: len(content) // 2]).resize((50, 50), Image.BILINEAR)
    with pytest.raises(OSError, match="identify"):
        opened(b"\xff\xd8 no picture")
    with pytest.raises(OSError, match="identify"):
        opened(content[:20])


def test_damage_anywhere_ends_nothing():
    content = jpeg(120, 90)
    chance = random.Random(1)

    for _ in range(300):
        broken = bytearray(content)
        for _ in range(chance.randint(1, 4)):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        size = jpeg_parts.size(bytes(broken))
        if size is not None and size[0] * size[1] < 10**6:
            jpeg_parts.part(bytes(broken), Box(0, 0, *size), 32, 32, jpeg_parts.BILINEAR)


@pytest.fixture
def dataset(tmp_path):
    """Pictures of several kinds, those that are left to Pillow among them."""
    for number in range(12):
        path = tmp_path / f"class_{number % 2}" / f"{number:02d}.{'png' if number == 5 else 'jpg'}"
        path.parent.mkdir(exist_ok=True)
        mode = "CMYK" if number == 6 else "RGB"
        picture(80 + 9 * number, 90, number, mode).save(path)
    return tmp_path


@pytest.mark.torch
def test_a_batch_is_one_tensor_that_workers_share(dataset):
    torch = pytest.importorskip("torch")
    from rabaska.training import PackedDataset, RandomResizedCrop, collate

    whole = RandomResizedCrop(40, scale=(1, 1), ratio=(0.1, 10), flip=0)
    data = PackedDataset(dataset, transform=whole)

    here = collate(data.__getitems__(list(range(12))))
    loader = torch.utils.data.DataLoader(data, 4, num_workers=1, collate_fn=collate)
    there = list(loader)

    assert here[0].shape == (12, 3, 40, 40)
    assert here[1].tolist() == [label for _, label in data]
    assert all(pictures.is_shared() for pictures, _ in there)
    assert data[3][0].shape == (3, 40, 40)
    single = torch.utils.data.default_collate(data.__getitems__([0, 1]))
    assert single[0].shape == (2, 3, 40, 40)


@pytest.mark.torch
def test_mirrored_is_mirrored_and_the_seed_decides(dataset):
    torch = pytest.importorskip("torch")
    from rabaska.training import PackedDataset, RandomResizedCrop

    def batch(flip):
        random.seed(5)
        data = PackedDataset(dataset, transform=RandomResizedCrop((24, 32), flip=flip))
        return torch.stack([pixels for pixels, _ in data.__getitems__(list(range(12)))])

    assert torch.equal(batch(0), batch(0))
    assert torch.equal(batch(1), batch(0).flip(3))
    assert batch(0).shape == (12, 3, 24, 32)


def test_without_c_pillow_does_the_work(tmp_path):
    content = jpeg(200, 150)
    (tmp_path / "it.jpg").write_bytes(content)
    code = (
        "import sys; from pathlib import Path; from rabaska.training.lazy_picture import opened\n"
        "image = opened(Path(sys.argv[1]).read_bytes()); assert type(image).__name__ == 'Image'\n"
        "sys.stdout.buffer.write(image.crop((9, 9, 99, 99)).resize((64, 64), 2).tobytes())\n"
    )
    words = [sys.executable, "-c", code, tmp_path / "it.jpg"]

    ended = subprocess.run(
        words, check=True, capture_output=True, env={**os.environ, "RABASKA_NATIVE": "0"}
    )

    theirs = Image.frombytes("RGB", (64, 64), ended.stdout)
    ours = opened(content).crop((9, 9, 99, 99)).resize((64, 64), Image.BILINEAR)
    assert distance(ours, theirs)[1] <= 1
