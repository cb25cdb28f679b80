"""Batches that workers hand to the training through shared memory: the same lists, in any case."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from itertools import islice
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from rabaska.packing.make_pack import PackOptions, pack  # noqa: E402
from rabaska.training import Order, PackedDataset  # noqa: E402
from rabaska.training.shared_batches import Batch  # noqa: E402

pytestmark = pytest.mark.torch

SIZES = [0, 1, 3000, 70_000, 300_000]  # of samples: less and more than a pipe holds


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    place = tmp_path_factory.mktemp("data")
    for number in range(120):
        path = place / "source" / f"class_{number % 3}" / f"{number:03d}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes([number]) * SIZES[number % 5])
    made = pack(place / "source", place / "packs", PackOptions("toy", shard_size=2_000_000))
    return PackedDataset(made.folder)


def as_it_is(batch):
    return batch


def with_more(batch):
    """What a program may do with a list: here one sample is another, and one is added."""
    assert isinstance(batch, list)
    batch[0] = (torch.ones(3), *batch[0])
    batch.append("more")
    return batch


def kept(batch):
    """Pickled for a file, not for another process."""
    return [pickle.dumps(batch)]


def forget_shared_memory(_worker):
    """As it is with Python 3.7, and on other systems."""
    del os.memfd_create


def loader(dataset, batch_size=7, collate_fn=as_it_is, **more):
    return torch.utils.data.DataLoader(
        dataset, batch_size, sampler=Order(dataset, 3), num_workers=2, collate_fn=collate_fn, **more
    )


def expected(dataset, size=7):
    positions = list(Order(dataset, 3))
    return [[dataset[i] for i in positions[at : at + size]] for at in range(0, 120, size)]


def shelves() -> int:
    """How many this process has open."""
    return Path("/proc/self/maps").read_text().count("memfd:rabaska-batches")


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"prefetch_factor": 12},  # more than there are places on a shelf
        {"persistent_workers": True},
        pytest.param({"multiprocessing_context": "spawn"}, marks=pytest.mark.slow),
    ],
    ids=["plain", "far ahead", "persistent", "spawned"],
)
def test_batches_of_workers_are_what_the_training_would_have_read(dataset, more):
    batches = loader(dataset, **more)

    epochs = [list(batches), list(batches)]

    assert epochs == [expected(dataset)] * 2
    assert {type(batch) for batch in epochs[0]} == {list}
    assert shelves() == 2  # of the last epoch's workers only


def test_several_loaders_left_in_the_middle_do_not_mix_up_their_batches(dataset):
    batches = loader(dataset, persistent_workers=True)
    first, second = iter(batches), iter(loader(dataset))
    mixed = [next(one) for _ in range(5) for one in (first, second)]

    again = list(batches)  # the same workers, which had read ahead

    assert mixed == [batch for batch in expected(dataset)[:5] for _ in range(2)]
    assert again == expected(dataset)


@pytest.mark.parametrize(
    "more",
    [{"batch_size": 120}, {"worker_init_fn": forget_shared_memory}],
    ids=["too large", "no shared memory"],
)
def test_what_finds_no_place_takes_the_pipe(dataset, more):
    found = list(loader(dataset, **more))

    assert found == expected(dataset, more.get("batch_size", 7))


def test_what_a_program_makes_of_its_batch_is_what_arrives(dataset):
    found = list(loader(dataset, collate_fn=with_more))

    for batch, whole in zip(found, expected(dataset), strict=True):
        assert torch.equal(batch[0][0], torch.ones(3))
        assert batch[0][1:] == whole[0]
        assert batch[1:] == [*whole[1:], "more"]


def test_a_batch_kept_in_a_file_is_a_list_and_needs_no_worker(dataset):
    kept_batches = [pickle.loads(batch) for [batch] in loader(dataset, collate_fn=kept)]

    assert kept_batches == expected(dataset)
    assert {type(batch) for batch in kept_batches} == {list}


def test_transforms_to_tensors_collate_as_they_always_did(dataset):
    lengths = PackedDataset(dataset.path, transform=lambda content: torch.tensor(len(content)))
    batches = torch.utils.data.DataLoader(lengths, batch_size=7, num_workers=2)

    found = [torch.stack(column, 1).tolist() for column in batches]

    assert [pair for batch in found for pair in batch] == [
        [len(content), label] for content, label in dataset
    ]


def test_a_killed_worker_is_an_error_and_leaves_no_memory_behind(dataset):
    batches = iter(loader(dataset))
    list(islice(batches, 4))

    for worker in multiprocessing.active_children():
        os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="worker"):
        list(batches)

    assert list(loader(dataset)) == expected(dataset)
    assert shelves() == 2


def send_two(sending, batch):
    for _ in range(2):
        sending.send_bytes(ForkingPickler.dumps(batch))
        sending.recv()


def test_what_lay_on_a_shelf_outlives_the_process_that_put_it_there():
    samples = [(b"content", 3), (b"", -1)]
    here, there = multiprocessing.Pipe()
    batch = Batch(*map(list, zip(*samples, strict=True)))
    process = multiprocessing.get_context("fork").Process(target=send_two, args=(there, batch))
    process.start()

    first = pickle.loads(here.recv_bytes())
    here.send("go on")
    second = here.recv_bytes()
    process.kill()
    process.join()
    elsewhere = subprocess.run(
        [sys.executable, "-c", "import pickle, sys; pickle.load(sys.stdin.buffer)"],
        input=second, capture_output=True, check=False,
    )  # fmt: skip

    assert first == pickle.loads(second) == samples
    assert b"content" not in second
    assert f"process {process.pid}, which read it, is gone".encode() in elsewhere.stderr
