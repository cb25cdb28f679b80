"""Random generators of Python, NumPy and PyTorch: taken down, put back, and seeded."""

import hashlib
import random
import struct
from contextlib import contextmanager
from typing import Any, Dict, Iterator

from . import lazy_imports

State = Dict[str, Any]


def seed_for(*words: Any) -> int:
    """63 bits that depend on every word, and on nothing else."""
    text = "/".join(str(word) for word in words).encode("utf-8")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1


def state() -> State:
    """Every generator as it stands."""
    torch, numpy = lazy_imports.torch(), lazy_imports.numpy()
    version, numbers, rest = random.getstate()
    # As bytes: 625 numbers one by one would take longer than all the others together.
    packed = struct.pack("<{}I".format(len(numbers)), *numbers)
    generators: State = {"python": (version, packed, rest), "torch": torch.get_rng_state()}
    if numpy is not None:
        generators["numpy"] = numpy.random.get_state()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        generators["cuda"] = torch.cuda.get_rng_state_all()
    return generators


def restore(generators: State) -> None:
    torch, numpy = lazy_imports.torch(), lazy_imports.numpy()
    version, packed, rest = generators["python"]
    random.setstate((version, struct.unpack("<{}I".format(len(packed) // 4), packed), rest))
    torch.set_rng_state(generators["torch"])
    if numpy is not None and "numpy" in generators:
        numpy.random.set_state(generators["numpy"])
    if "cuda" in generators and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(generators["cuda"][: torch.cuda.device_count()])


def seed(number: int) -> None:
    """Seed what a dataset draws from.

    Not torch.manual_seed: in a worker it would queue a call for a GPU that is never used.
    """
    numpy = lazy_imports.numpy()
    random.seed(number)
    lazy_imports.torch().default_generator.manual_seed(number)
    if numpy is not None:
        numpy.random.seed(number & 0xFFFFFFFF)


@contextmanager
def borrowed(number: int) -> Iterator[None]:
    """Generators seeded with `number`, and afterwards as they were."""
    torch, numpy = lazy_imports.torch(), lazy_imports.numpy()
    before = random.getstate(), torch.get_rng_state(), numpy and numpy.random.get_state()
    seed(number)
    try:
        yield
    finally:
        random.setstate(before[0])
        torch.set_rng_state(before[1])
        if numpy is not None:
            numpy.random.set_state(before[2])
