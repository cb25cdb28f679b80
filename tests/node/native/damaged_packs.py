"""`python damaged_packs.py COUNT [SEED]`: gives damaged indexes and shards to the compiled part.

It must read and write nothing that is not its own, whatever they say. Meant to run where the
library was compiled with sanitizers, which end the process at the first such access.
"""

import os
import random
import struct
import sys
import tempfile
from array import array
from pathlib import Path

from rabaska.node.data.pack_format import INDEX, Index
from rabaska.node.native import compiled
from rabaska.packing.make_pack import PackOptions, pack

FILES = 12
HEADER, RECORD = 64, 64  # bytes
ODD = [0, 1, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1]


def main(count: int, seed: int) -> None:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        made = sound_pack(Path(folder), chance)
        index = (made / INDEX).read_bytes()
        shard = next(made.glob("shard-*.tar")).read_bytes()
        layout = Index(str(made / INDEX)).layout
        for _ in range(count):
            broken = damaged(index, chance)
            read(broken, made, chance)
            write(broken, damaged(shard, chance), layout, Path(folder), chance)
    print(f"{count} damaged packs, seed {seed}")


def sound_pack(folder: Path, chance: random.Random) -> Path:
    for number in range(FILES):
        path = folder / "source" / f"class{number % 3}" / f"{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(chance.randbytes(chance.choice((0, 1, 700, 3000))))
    return pack(folder / "source", folder / "packs", PackOptions("it")).folder


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Some bits, some words or the end of it are not what they were; now and then nothing is."""
    broken = bytearray(content)
    for _ in range(chance.choice((0, 1, 1, 2, 5))):
        at = chance.randrange(len(broken))
        match chance.randrange(3):
            case 0:
                broken[at] ^= 1 << chance.randrange(8)
            case 1:
                at -= at % 8
                broken[at : at + 8] = struct.pack("<Q", chance.choice(ODD))[: len(broken) - at]
            case _:
                at -= at % 4
                broken[at : at + 4] = struct.pack("<I", chance.choice(ODD) % 2**32)
    end = chance.choice((len(broken), len(broken), chance.randrange(len(broken))))
    return bytes(broken[:end])


def read(index: bytes, made: Path, chance: random.Random) -> None:
    shards = array("i", [os.open(path, os.O_RDONLY) for path in made.glob("shard-*.tar")])
    positions = [chance.choice((*range(FILES), -1, FILES, 2**31, 2**62)) for _ in range(5)]
    try:
        compiled.samples(index, FILES, positions, shards, 10**6, b"", bytearray(FILES))
    except ValueError:
        pass  # the index does not hold so many files
    finally:
        for descriptor in shards:
            os.close(descriptor)


def write(index: bytes, shard: bytes, layout, folder: Path, chance: random.Random) -> None:
    begin = chance.choice((0, 1, FILES, -1, 2**40))
    with tempfile.TemporaryDirectory(dir=folder) as place:
        for number in range(3):
            os.mkdir(os.path.join(place, f"class{number}"))
        top = os.open(place, os.O_RDONLY)
        try:
            names_at = chance.choice((layout.names_at, layout.names_at, *ODD[:9]))
            offset = chance.choice((0, 0, 512, 2**62))
            compiled.unpack(index, FILES, names_at, begin, FILES, 0, shard, offset, top)
        finally:
            os.close(top)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
