"""What a checkpoint costs: the training's pause, the way to the disk, and going on in mid-epoch."""

import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from measuring import medians
from rows import Row

from rabaska.training import session, session_folders

NAME = "checkpoint"
QUICK = False  # at a smaller size, starting programs takes most of the time
TIMES_SHORTER = 5  # than torch.save and fsync
SHARE_OF_RAW = 0.9  # of the speed of write and fsync
SLOW_DOWN = 0.002  # of a training that saves every two minutes
BETWEEN_SAVES = 120.0  # seconds
SECONDS_TO_RESUME = 1.0
SAMPLES = 1_000_000


class State:
    """Numbers like those of a model and its optimizer: large tensors and small ones."""

    def __init__(self, size: int) -> None:
        large = 16 << 20  # bytes
        self.tensors = {f"large.{n}": torch.rand(large // 4) for n in range(size // large)}
        self.tensors |= {f"small.{n}": torch.rand(256) for n in range(200)}
        self.bytes = sum(4 * tensor.numel() for tensor in self.tensors.values())

    def state_dict(self) -> dict[str, torch.Tensor]:
        return self.tensors

    def load_state_dict(self, saved: dict[str, torch.Tensor]) -> None:
        self.tensors = saved


def run(quick: bool) -> list[Row]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rows = []
        for size in [100 << 20] if quick else [100 << 20, 1 << 30]:
            rows += saving(size, repeats=3 if quick else 5)
        return [*rows, slow_down(100 << 20, repeats=3 if quick else 7), resuming(quick)]
    finally:
        torch.set_num_threads(threads)


def saving(size: int, repeats: int) -> list[Row]:
    state, work = State(size), f"pause of a save, {size >> 20} MB"
    with tempfile.TemporaryDirectory(dir=".") as scratch, alone(Path(scratch)):
        folder = Path(scratch)
        durable: dict[str, list[float]] = {"ours": [], "raw": []}
        with session(folder / "ours", save_every=1, parts=state) as ours:
            pause = medians(
                {
                    "rabaska": lambda: pause_of_ours(ours, durable["ours"]),
                    "torch.save": lambda: pause_of_torch(state, folder),
                    "async_save": lambda: pause_of_async_save(state, folder),
                    "raw": lambda: raw_write(state.bytes, folder, durable["raw"]),
                },
                repeats,
            )
        speed = {name: median_speed(state.bytes, times[1:]) for name, times in durable.items()}
    return [
        beside(work, "torch.save and fsync", pause, "torch.save", TIMES_SHORTER),
        beside(work, "DCP async_save", pause, "async_save", 1.0),
        Row(
            work=f"to the disk, {size >> 20} MB",
            peer="write and fsync",
            ours=speed["ours"],
            theirs=speed["raw"],
            ratio=speed["ours"] / speed["raw"],
            at_least=SHARE_OF_RAW,
            unit="MB/s",
        ),
    ]


def beside(work: str, peer: str, cost: dict[str, float], name: str, at_least: float) -> Row:
    ratio = cost[name] / cost["rabaska"]
    return Row(work, peer, cost["rabaska"], cost[name], ratio, at_least)


def median_speed(size: int, times: list[float]) -> float:
    return size / sorted(times)[len(times) // 2] / 1e6


class alone:  # noqa: N801 (reads as a word: with alone(…))
    """A process group of one, which async_save insists on."""

    def __init__(self, folder: Path) -> None:
        self.store = torch.distributed.FileStore(str(folder / "meeting"), 1)

    def __enter__(self) -> None:
        torch.distributed.init_process_group("gloo", store=self.store, rank=0, world_size=1)

    def __exit__(self, *_: object) -> None:
        torch.distributed.destroy_process_group()


def pause_of_ours(ours: object, durable: list[float]) -> float:
    began = time.perf_counter()
    ours.step()
    pause = time.perf_counter() - began
    ours.wait()
    durable.append(ours.seconds_to_write)
    return pause


def pause_of_torch(state: State, folder: Path) -> float:
    path = folder / "state.pt"
    began = time.perf_counter()
    with path.open("wb") as stream:
        torch.save(state.state_dict(), stream)
        stream.flush()
        os.fsync(stream.fileno())
    pause = time.perf_counter() - began
    path.unlink()
    return pause


def pause_of_async_save(state: State, folder: Path) -> float:
    began = time.perf_counter()
    saved = dcp.async_save(state.state_dict(), checkpoint_id=folder / "async")
    pause = time.perf_counter() - began
    saved.result()
    shutil.rmtree(folder / "async")
    return pause


def raw_write(size: int, folder: Path, durable: list[float]) -> float:
    """The same number of bytes, in large pieces, straight from memory."""
    piece, path = memoryview(bytearray(os.urandom(1 << 20)) * 8), folder / "raw"
    began = time.perf_counter()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    for left in range(size, 0, -len(piece)):
        os.write(descriptor, piece[: min(left, len(piece))])
    os.fsync(descriptor)
    os.close(descriptor)
    durable.append(time.perf_counter() - began)
    path.unlink()
    return durable[-1]


def slow_down(size: int, repeats: int) -> Row:
    """What one save costs a loop of steps, spread over the time between two saves."""
    state, work = State(size), torch.rand(256, 256)
    with (
        tempfile.TemporaryDirectory(dir=".") as scratch,
        session(Path(scratch), save_every=10**9, parts=state) as ours,
    ):
        cost = medians(
            {
                "with": lambda: loop(work, at_middle=ours.save_soon),
                "without": lambda: loop(work, at_middle=lambda: None),
            },
            repeats,
        )
    share = max(cost["with"] - cost["without"], 1e-6) / BETWEEN_SAVES
    return Row(
        work=f"slow-down by a save of {size >> 20} MB every two minutes",
        peer="what is allowed",
        ours=100 * share,
        theirs=100 * SLOW_DOWN,
        ratio=SLOW_DOWN / share,
        at_least=1.0,
        unit="%",
    )


def loop(work: torch.Tensor, at_middle: Callable[[], None]) -> float:
    began = time.perf_counter()
    for step in range(1000):
        work = (work @ work).tanh()
        if step == 300:
            at_middle()
    return time.perf_counter() - began


class Samples:
    """A million samples that cost nothing; replaying real ones costs more."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, place: int) -> int:
        return place


def resuming(quick: bool) -> Row:
    with tempfile.TemporaryDirectory(dir=".") as scratch:
        folder = Path(scratch)
        half_way(folder)
        cost = medians(
            {"resume": lambda: to_first_batch(folder), "replay": replay}, repeats=1 if quick else 3
        )
    return Row(
        work=f"going on in mid-epoch of {SAMPLES:,} samples, within {SECONDS_TO_RESUME:g} s",
        peer="replaying the loader",
        ours=cost["resume"],
        theirs=cost["replay"],
        ratio=SECONDS_TO_RESUME / cost["resume"],
        at_least=1.0,
    )


def batches_of(ours: object) -> Iterator[object]:
    return iter(ours.loader(Samples(), batch_size=32, epochs=1))


def half_way(folder: Path) -> None:
    """A checkpoint in the middle of the epoch, made without walking there."""
    with session(folder, parts={"step": 0}) as ours:
        for _ in itertools.islice(batches_of(ours), 1):
            ours.hand_out(0, SAMPLES // 32 // 2)
            ours.step()
            ours.save()


def to_first_batch(folder: Path) -> float:
    (folder / "DONE.json").unlink(missing_ok=True)
    session_folders.ENDED_HERE.clear()  # as in another process
    began = time.perf_counter()
    with session(folder, parts={}) as ours:
        next(batches_of(ours))
        return time.perf_counter() - began


def replay() -> float:
    loader = torch.utils.data.DataLoader(Samples(), batch_size=32, shuffle=True)
    began = time.perf_counter()
    next(itertools.islice(loader, SAMPLES // 32 // 2, None))
    return time.perf_counter() - began
