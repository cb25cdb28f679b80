"""The compiled part reads what Python reads, and leaves to it whatever is not ordinary."""

import os
import random
import time
from array import array

import pytest

from rabaska.node.data import proof
from rabaska.node.data.packs import INDEX, Index, load_manifest, shard_name
from rabaska.packing.pack import Wish, pack
from rabaska.training import DamagedData, PackedDataset, sources, swiftly

COUNT = 300


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A pack of several shards, with empty files and files in no folder."""
    top = tmp_path_factory.mktemp("made")
    chance = random.Random(3)
    for number in range(COUNT):
        folder = top / "source" / ("" if number % 50 == 0 else f"class{number % 7}")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:03d}").write_bytes(chance.randbytes(chance.choice((0, 10, 3000))))
    return pack(top / "source", top / "packs", Wish("it", shard_size=100_000)).folder


@pytest.fixture
def plain(made, monkeypatch):
    monkeypatch.setattr(swiftly, "samples", None)
    return PackedDataset(made)


@pytest.fixture
def asked(made, compiled):
    """Asks the compiled part for samples, of shards that are open unless told otherwise."""
    index = Index(str(made / INDEX))
    shards = sorted(made.glob("shard-*.tar"))
    opened = array("i", [os.open(path, os.O_RDONLY) for path in shards])

    def asked(positions, files=COUNT, most=10**9, opened=opened, proven=b""):
        return compiled.samples(index.map, files, positions, opened, most, proven)

    yield asked
    for descriptor in opened:
        os.close(descriptor)
    index.close()


def test_every_sample_is_read_as_python_reads_it(asked, plain):
    positions = random.Random(1).choices(range(COUNT), k=1000)

    contents, labels = asked(positions)

    assert list(zip(contents, labels, strict=True)) == plain.__getitems__(positions)
    assert len(set(labels)) == 8
    assert -1 in labels


def test_a_batch_may_be_empty_or_of_any_kind_of_number(asked, plain):
    numpy = pytest.importorskip("numpy")

    assert asked([]) == ([], [])
    assert asked(numpy.array([7, 3])) == asked((7, 3)) == asked([7, 3])


@pytest.mark.parametrize("odd", [
    {"positions": [0, -1]}, {"positions": [0, COUNT]}, {"positions": [2**70]}, {"files": 5},
    {"most": 5}, {"opened": array("i")}, {"opened": array("i", [-1] * 99)},
], ids=repr)  # fmt: skip
def test_what_is_odd_is_left_to_python(asked, odd):
    positions = range(COUNT - 1, 0, -1)

    assert asked(**{"positions": positions, **odd}) is None


@pytest.mark.parametrize("odd", [
    {"positions": ["7"]}, {"positions": None}, {"files": COUNT * 99}, {"files": -1},
], ids=repr)  # fmt: skip
def test_what_makes_no_sense_is_an_error(asked, odd):
    with pytest.raises((TypeError, ValueError)):
        asked(**{"positions": [1], **odd})


def test_a_shard_that_was_cut_short_is_named_as_without_it(made, tmp_path, compiled, monkeypatch):
    monkeypatch.setattr(swiftly, "samples", compiled.samples)
    for path in made.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    data = PackedDataset(tmp_path)
    data.__getitems__(range(COUNT))

    os.truncate(tmp_path / shard_name(0), 1000)

    with pytest.raises(OSError, match=r"shard-00000\.tar was cut short"):
        data.__getitems__(range(COUNT))


def test_a_changed_byte_is_left_to_python_unless_the_shard_was_proven(made, tmp_path, compiled):
    place = damaged_copy(made, tmp_path)
    index = Index(str(tmp_path / INDEX))
    shards = sorted(tmp_path.glob("shard-*.tar"))
    opened = array("i", [os.open(path, os.O_RDONLY) for path in shards])

    def asked(proven):
        return compiled.samples(index.map, COUNT, [place], opened, 10**9, proven)

    assert asked(b"") is asked(bytes(len(shards))) is None
    assert asked(b"\1" * len(shards)) is not None
    for descriptor in opened:
        os.close(descriptor)
    index.close()


def damaged_copy(made, folder) -> int:
    """A copy of the pack in which one byte was changed; the position of the sample with it."""
    for path in made.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    index = Index(str(folder / INDEX))
    place, entry = next((n, entry) for n, entry in enumerate(index.files()) if entry.size == 3000)
    index.close()
    with (folder / shard_name(entry.shard)).open("r+b") as stream:
        stream.seek(entry.offset + 1000)
        byte = stream.read(1)[0]
        stream.seek(entry.offset + 1000)
        stream.write(bytes([byte ^ 1]))
    return place


@pytest.mark.parametrize("way", ["C", "Python"])
def test_a_changed_byte_is_named_and_noted_where_it_was_staged(
    made, tmp_path, compiled, monkeypatch, way
):
    monkeypatch.setattr(swiftly, "samples", compiled.samples if way == "C" else None)
    place = damaged_copy(made, tmp_path)
    data = PackedDataset(tmp_path)

    with pytest.raises(DamagedData, match=r"shard-\d+\.tar is damaged: .* not what was packed"):
        data[place]
    assert proof.damage(str(tmp_path)) is None  # nobody staged it, so the pack stays as it is

    proof.begin(str(tmp_path), load_manifest(str(tmp_path)))
    with pytest.raises(DamagedData):
        PackedDataset(tmp_path).__getitems__(range(COUNT))
    assert "shard-" in proof.damage(str(tmp_path))


@pytest.mark.parametrize("way", ["C", "Python"])
def test_a_shard_that_was_changed_after_it_was_proven_is_compared_again(
    made, tmp_path, compiled, monkeypatch, way
):
    monkeypatch.setattr(swiftly, "samples", compiled.samples if way == "C" else None)
    proof.begin(str(tmp_path), load_manifest(str(made)), proven=True)
    time.sleep(0.02)
    place = damaged_copy(made, tmp_path)

    with pytest.raises(DamagedData):
        PackedDataset(tmp_path).__getitems__([place])


@pytest.mark.parametrize("way", ["C", "Python"])
def test_what_was_wrong_only_in_memory_is_read_again(made, tmp_path, compiled, monkeypatch, way):
    monkeypatch.setattr(swiftly, "samples", compiled.samples if way == "C" else None)
    place = damaged_copy(made, tmp_path)
    expected = PackedDataset(made)[place]
    data = PackedDataset(tmp_path)
    real = sources.forget

    def forget(descriptor, offset, size):  # as if the disk had the right bytes
        real(descriptor, offset, size)
        for path in made.iterdir():
            (tmp_path / path.name).write_bytes(path.read_bytes())

    monkeypatch.setattr(sources, "forget", forget)

    assert data.__getitems__([place]) == [expected]


def test_a_dataset_gives_the_same_with_it(made, plain, compiled, monkeypatch):
    positions = random.Random(2).sample(range(COUNT), COUNT)
    expected = plain.__getitems__(positions)
    calls = []

    def noted(*words):
        calls.append(compiled.samples(*words))
        return calls[-1]

    monkeypatch.setattr(swiftly, "samples", noted)
    data = PackedDataset(made)
    first, second = data.__getitems__(positions), data.__getitems__(positions)

    assert first == second == expected
    assert [found is None for found in calls] == [True, False]  # shards are opened by Python
