"""Reads a dataset once, in one of several ways, and prints what it took; run by `data.py`.

    readers.py make FOLDER                    the datasets of the peers, from FOLDER/files
    readers.py random|loader|jpeg KIND FOLDER samples per second
    readers.py first KIND FOLDER              seconds to the first batch
    readers.py resume KIND FOLDER             seconds to the first batch at 90 % of an epoch
    readers.py index PATH                     seconds to open, and MB of private memory of a worker

KIND is rabaska, webdataset, litdata, files, or nothing: samples that are there already, so that
what is left is the DataLoader's own work. `compared` is rabaska with every sample compared with its
checksum, `proven` after all of them were.
"""

import glob
import json
import multiprocessing
import os
import random
import sys
import time
from itertools import islice

BATCH = 64
WORKERS = 2
SEED = 7


def main(words):
    if words[0] == "make":
        return make(words[1])
    if words[0] == "index":
        return index(words[1])
    act, kind, folder = words
    cost = {"random": read_random, "loader": read_loader, "jpeg": read_jpeg,
            "first": first, "resume": resume}[act](kind, folder)  # fmt: skip
    print(json.dumps(cost))
    return 0


def make(folder):
    """litdata's chunks; WebDataset reads the shards of the pack."""
    import litdata

    litdata.optimize(
        fn=contents, inputs=file_names(folder), output_dir=os.path.join(folder, "litdata"),
        chunk_bytes="64MB", num_workers=1,
    )  # fmt: skip
    return 0


def contents(path):
    with open(path, "rb") as stream:
        return stream.read()


def file_names(folder):
    return sorted(glob.glob(os.path.join(folder, "files", "*", "*")))


def pack_of(folder):
    return glob.glob(os.path.join(folder, "packs", "*", "manifest.json"))[0].rpartition("/")[0]


class Files:
    def __init__(self, folder, decode=None):
        self._names = file_names(folder)
        self._decode = decode

    def __len__(self):
        return len(self._names)

    def __getitem__(self, place):
        content = contents(self._names[place])
        return self._decode(content) if self._decode else content


class Nothing:
    """As many samples as there are files, of their middle size, and no reading at all."""

    def __init__(self, folder):
        self._length = len(file_names(folder))
        self._samples = [(os.urandom(2000), 0) for _ in range(BATCH)]

    def __len__(self):
        return self._length

    def __getitems__(self, places):
        return self._samples[: len(places)]


def dataset(kind, folder, decode=None):
    if kind == "files":
        return Files(folder, decode)
    if kind == "nothing":
        return Nothing(folder)
    if kind in ("compared", "proven"):
        return packed(pack_of(folder), proven=kind == "proven")
    if kind == "rabaska":
        from rabaska.training import PackedDataset

        return PackedDataset(pack_of(folder), transform=decode)
    if kind == "litdata":
        import litdata

        return litdata.StreamingDataset(os.path.join(folder, "litdata"), shuffle=True)
    import webdataset

    shards = sorted(glob.glob(os.path.join(pack_of(folder), "shard-*.tar")))
    found = webdataset.WebDataset(shards, shardshuffle=False, empty_check=False)
    return found.map(lambda sample: decode(sample["jpg"])) if decode else found


def packed(path, *, proven):
    from rabaska.training import PackedDataset

    data = PackedDataset(path, ahead=proven)
    for place in range(0, len(data) if proven else 0, BATCH):
        data.__getitems__(range(place, min(place + BATCH, len(data))))
    return data


def read_random(kind, folder):
    """Samples per second, raw bytes, one process, each peer in the way that is best for it.

    WebDataset can only stream. litdata shuffles chunks and what is in them by itself; asked for
    one sample after another from everywhere, it would open a chunk for each.
    """
    data = dataset(kind, folder)
    begun = time.perf_counter()
    if kind in ("webdataset", "litdata"):
        count = sum(1 for _ in data)
        return count / (time.perf_counter() - begun)
    order = list(range(len(data)))
    random.Random(SEED).shuffle(order)
    begun = time.perf_counter()
    if kind in ("rabaska", "compared", "proven"):
        for place in range(0, len(order), BATCH):
            data.__getitems__(order[place : place + BATCH])
    else:
        for place in order:
            data[place]
    return len(order) / (time.perf_counter() - begun)


def loader(kind, folder, decode=None, sampler=None):
    from torch.utils.data import DataLoader

    data = dataset(kind, folder, decode)
    how = {"batch_size": BATCH, "num_workers": WORKERS, "collate_fn": as_it_is}
    if kind == "litdata":
        import litdata

        how["collate_fn"] = as_bytes
        return litdata.StreamingDataLoader(data, shuffle=True, **how)
    if kind == "webdataset":
        return DataLoader(data, **how)
    if kind == "rabaska":
        from rabaska.training import Order

        return DataLoader(data, sampler=sampler or Order(data, SEED), **how)
    return DataLoader(data, shuffle=sampler is None, sampler=sampler, **how)


def as_it_is(batch):
    return batch


def as_bytes(batch):
    """litdata gives views into its chunk, which cannot be sent to another process."""
    return [bytes(view) for view in batch]


def read_loader(kind, folder, decode=None):
    batches = loader(kind, folder, decode)
    begun = time.perf_counter()
    count = sum(len(batch) for batch in batches)
    return count / (time.perf_counter() - begun)


def pixels(content):
    import io

    from PIL import Image

    return Image.open(io.BytesIO(content)).convert("RGB").tobytes()


def read_jpeg(kind, folder):
    return read_loader(kind, folder, pixels)


def first(_kind, folder):
    """Seconds until the first batch, as a job has it: shards begin to arrive, then it reads."""
    begun = time.perf_counter()
    from rabaska.node.data import background_copy
    from rabaska.training import Order, PackedDataset

    data = PackedDataset(background_copy.begin(pack_of(folder), os.path.join(folder, "node")))
    data.__getitems__(list(islice(Order(data, SEED), BATCH)))
    spent = time.perf_counter() - begun
    background_copy.end()
    return spent


def resume(kind, folder):
    """Seconds until the first batch: `fresh` at the beginning, `rabaska` at 90 % of an epoch."""
    import torch.utils.data  # noqa: F401 (it takes a second, which is neither's)

    from rabaska.training import Order

    data = dataset("rabaska", folder)
    begun = time.perf_counter()
    order = Order(data, SEED)
    if kind == "rabaska":
        order.resume(0, len(data) * 9 // 10)
    next(iter(loader("rabaska", folder, sampler=order)))
    return time.perf_counter() - begun


def index(path):
    """How long a pack takes to open, and what a worker that reads it has for itself.

    The index is mapped, and belongs to nobody alone as soon as there are two workers.
    """
    from rabaska.training import PackedDataset

    begun = time.perf_counter()
    data = PackedDataset(path, ahead=False)
    opened = time.perf_counter() - begun
    workers = [multiprocessing.Pipe() for _ in range(WORKERS)]
    for seed, (_, end) in enumerate(workers):
        multiprocessing.get_context("fork").Process(target=worker, args=(data, seed, end)).start()
    for ours, _ in workers:
        ours.recv()  # it has read
    for ours, _ in workers:
        ours.send("how much?")
    grown = max(ours.recv() for ours, _ in workers)
    for ours, _ in workers:
        ours.send("thanks")
    print(json.dumps({"seconds": opened, "megabytes": grown / 1e6, "samples": len(data)}))
    return 0


def worker(data, seed, asked):
    before = private_memory()
    order = random.Random(seed)
    for _ in range(2000):
        data.__getitems__([order.randrange(len(data)) for _ in range(BATCH)])
    asked.send("read")
    asked.recv()
    asked.send(private_memory() - before)
    asked.recv()


def private_memory():
    """Bytes that this process shares with no other, by the system's own account."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as stream:
        lines = [line.split() for line in stream if line.startswith("Private")]
    return sum(int(line[1]) for line in lines) * 1024


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
