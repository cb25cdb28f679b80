"""JPEG pictures, a random crop of each resized to 224 pixels, in a DataLoader of two workers.

Beside `ImageFolder` and WebDataset with Pillow, which do what torchvision's RandomResizedCrop does:
open, decode all of it, crop, resize, mirror. All give batches of bytes. torchvision itself has no
build for a PyTorch without CUDA, so that its two classes are written out below.

The pictures have the spectrum of photographs (amplitude 1/f) and quality 90: 0.5 bytes per pixel,
as ImageNet has. Smoother ones would flatter us: to read the bits of a JPEG takes the same time for
everybody.
"""

import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

NAME = "pictures"
HERE = Path(__file__).resolve().parent
SIZES = {(500, 375): (96, 10), (2000, 1500): (16, 6)}  # pictures, and how often each is read
ASKED = {
    (500, 375): {"files": 1.6, "webdataset": 2.5},
    (2000, 1500): {"files": 4.0, "webdataset": None},
}
BATCH, WORKERS, SIDE = 32, 2, 224


def run(quick: bool) -> list[object]:
    from data import PEERS, install_peers

    install_peers()
    repeats = 1 if quick else 5
    rows: list[object] = []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        for size in SIZES:
            place = Path(folder) / f"{size[0]}"
            _make(PEERS / "bin" / "python", place, size)
            rows += _rows(PEERS / "bin" / "python", place, size, repeats)
    return rows


def _make(python: Path, folder: Path, size: tuple[int, int]) -> None:
    count = SIZES[size][0]
    subprocess.run([python, __file__, "make", folder, *map(str, (*size, count))], check=True)
    from data import PACK, wall

    wall([sys.executable, "-c", PACK, folder / "files", folder / "packs"])
    side = "from rabaska.packing.shrink_pictures import pack_shrunk; from pathlib import Path; from rabaska.packing.make_pack import PackOptions; import sys; pack_shrunk([Path(sys.argv[1])], Path(sys.argv[2]), PackOptions('data'), 512)"  # noqa: E501
    wall([sys.executable, "-c", side, folder / "files", folder / "shrunk"])


def _rows(python: Path, folder: Path, size: tuple[int, int], repeats: int) -> Iterator[object]:
    from rows import Row

    kinds = ["batch", "image", "files", "webdataset"]
    kinds += ["shrunk"] if max(size) > 512 else []
    costs: dict[str, list[float]] = {kind: [] for kind in kinds}
    for repeat in range(repeats + 1):
        for kind in random.sample(kinds, len(kinds)):
            words = [python, __file__, "read", kind, folder, str(SIZES[size][1])]
            seconds = json.loads(_printed(words))
            if repeat:  # the first one warms the caches
                costs[kind].append(seconds)
    cost = {kind: statistics.median(found) for kind, found in costs.items()}
    work = f"JPEG {size[0]} x {size[1]}, random crop to {SIDE}"
    ways = {
        "batch": "RandomResizedCrop of ours",
        "image": "a Pillow image of ours",
        "shrunk": 'packed with images = "max 512"',
    }
    for way in [one for one in ways if one in cost]:
        for peer, at_least in ASKED[size].items():
            ratio, rates = cost[peer] / cost[way], (1 / cost[way], 1 / cost[peer])
            least = at_least if way == "batch" else None
            yield Row(f"{work}, {ways[way]}", f"{peer} + Pillow", *rates, ratio, least, "/s")


def _printed(words: list[object]) -> str:
    import os

    environment = {**os.environ, "PYTHONPATH": str(HERE.parent / "src")}
    ended = subprocess.run(
        list(map(str, words)), check=True, capture_output=True, text=True, env=environment
    )
    return ended.stdout.strip().splitlines()[-1]


# From here on by the Python that has the peers.


def make(folder: str, width: int, height: int, count: int) -> None:
    import numpy
    from PIL import Image

    down = numpy.fft.fftfreq(height)[:, None]
    across = numpy.fft.rfftfreq(width)[None, :]
    frequency = numpy.sqrt(across * across + down * down)
    frequency[0, 0] = 1 / max(width, height)

    def plane(chance: object) -> object:
        shape = frequency.shape
        waves = chance.standard_normal(shape) + 1j * chance.standard_normal(shape)  # type: ignore[attr-defined]
        made = numpy.fft.irfft2(waves / frequency**1.2, s=(height, width))
        return (made - made.mean()) / made.std()

    for number in range(count):
        chance = numpy.random.default_rng(number)
        light, red, blue = plane(chance), plane(chance), plane(chance)
        colours = [128 + 55 * light + 18 * red, 128 + 55 * light, 128 + 55 * light + 18 * blue]
        pixels = numpy.clip(numpy.stack(colours, -1), 0, 255).astype(numpy.uint8)
        path = Path(folder) / "files" / f"class_{number % 4}" / f"{number:05d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path, quality=90)


def crop(picture: object) -> object:
    """What RandomResizedCrop, RandomHorizontalFlip and PILToTensor do."""
    import torch

    from rabaska.training import RandomResizedCrop

    left, top, wide, high = RandomResizedCrop(SIDE).box(*picture.size)  # type: ignore[attr-defined]
    cut = picture.crop((left, top, left + wide, top + high)).resize((SIDE, SIDE), 2)  # type: ignore[attr-defined]
    cut = cut.transpose(0) if random.random() < 0.5 else cut
    pixels = torch.frombuffer(bytearray(cut.tobytes()), dtype=torch.uint8)
    return pixels.view(SIDE, SIDE, 3).permute(2, 0, 1).contiguous()


def decoded(content: bytes) -> object:
    import io

    from PIL import Image

    return crop(Image.open(io.BytesIO(content)).convert("RGB"))


class ImageFolder:
    """As torchvision's: opens a file, decodes it, transforms it."""

    def __init__(self, folder: str) -> None:
        self._paths = sorted(Path(folder, "files").glob("*/*.jpg"))

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, place: int) -> tuple[object, int]:
        from PIL import Image

        with open(self._paths[place], "rb") as stream:
            return crop(Image.open(stream).convert("RGB")), place % 4


def read(kind: str, folder: str, times: int) -> float:
    """Processor seconds of the workers for a picture, whatever else the machine does."""
    import resource

    import torch
    from torch.utils.data import DataLoader

    from rabaska.training import PackedDataset, RandomResizedCrop, collate
    from rabaska.training import folder as image_folder

    torch.set_num_threads(1)
    how = {"batch_size": BATCH, "num_workers": WORKERS}
    packs = Path(folder) / ("shrunk" if kind == "shrunk" else "packs")
    pack = next(packs.glob("data-*"))
    if kind == "webdataset":
        import webdataset

        shards = sorted(map(str, pack.glob("shard-*.tar"))) * times
        found = webdataset.WebDataset(shards, shardshuffle=False, empty_check=False)
        found = found.map(lambda sample: (decoded(sample["jpg"]), 0))
        # As its documents advise: batches in the dataset, of which a loader takes one at a time.
        found = found.batched(BATCH, collation_fn=torch.utils.data.default_collate)
        loader = DataLoader(found, batch_size=None, num_workers=min(WORKERS, len(shards)))
    else:
        if kind == "files":
            data = ImageFolder(folder)
        elif kind == "image":
            data = image_folder(pack, crop)
        else:
            data = PackedDataset(pack, transform=RandomResizedCrop(SIDE))
            how["collate_fn"] = collate
        order = [
            place for _ in range(times) for place in random.sample(range(len(data)), len(data))
        ]
        loader = DataLoader(data, sampler=order, **how)
    count = sum(len(pictures) for pictures, _ in loader)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) / count


if __name__ == "__main__":
    act, *words = sys.argv[1:]
    if act == "make":
        make(words[0], *map(int, words[1:]))
    elif act == "read":
        print(json.dumps(read(words[0], words[1], int(words[2]))))
    else:
        for row in run(quick=act == "quick"):
            print(row)
