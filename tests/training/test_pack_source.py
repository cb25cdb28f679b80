"""The compiled part reads what Python reads, and leaves to it whatever is not ordinary."""

import os
import random
import time
from array import array

import pytest

from rabaska.node.data import pack_proof
from rabaska.node.data.background_copy import SOURCE
from rabaska.node.data.pack_format import INDEX, Index, load_manifest, shard_name
from rabaska.packing.make_pack import PackOptions, pack
from rabaska.training import DamagedData, PackedDataset, pack_source, prefetch

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
    return pack(top / "source", top / "packs", PackOptions("it", shard_size=100_000)).folder


@pytest.fixture
def plain(made, monkeypatch):
    monkeypatch.setattr(pack_source, "compiled_samples", None)
    return PackedDataset(made)


@pytest.fixture
def asked(made, compiled):
    """Asks the compiled part for samples, of shards that are open unless told otherwise."""
    index = Index(str(made / INDEX))
    shards = sorted(made.glob("shard-*.tar"))
    opened = array("i", [os.open(path, os.O_RDONLY) for path in shards])

    def asked(positions, files=COUNT, most=10**9, opened=opened, proven=b"", compared=()):
        return compiled.samples(
            index.map, files, positions, opened, most, proven, bytearray(compared)
        )

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


@pytest.mark.parametrize("positions", [
    range(COUNT), range(40, 90), [*range(20), *range(10, 30)], range(COUNT - 1, -1, -1),
    [7, 7, 7], [5, 6, 8, 9, 11], range(0, COUNT, 2), [COUNT - 1, 0], [3, 250, 4],
], ids=repr)  # fmt: skip
def test_neighbours_are_read_at_once_and_are_what_each_of_them_is(made, asked, plain, positions):
    expected = [plain[position] for position in positions]

    assert plain.__getitems__(positions) == expected
    assert list(zip(*asked(positions), strict=True)) == expected


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
    monkeypatch.setattr(pack_source, "compiled_samples", compiled.samples)
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

    def asked(proven, compared=b"", positions=(place,)):
        noted = bytearray(compared)
        words = (index.map, COUNT, positions, opened, 10**9, proven, noted)
        return compiled.samples(*words), bytes(noted)

    nothing = bytes(COUNT)
    assert asked(b"")[0] is asked(bytes(len(shards)))[0] is None
    assert asked(b"\1" * len(shards))[0] is not None
    assert asked(b"", nothing) == (None, nothing)
    assert asked(b"", b"\1" * COUNT)[0] is not None
    before, after = bytes([1] * place), bytes([0] * (COUNT - place))
    # Neighbours come in one call: only those are noted that were what was packed.
    assert asked(b"", nothing, range(COUNT)) == (None, before + after)
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
    monkeypatch.setattr(pack_source, "compiled_samples", compiled.samples if way == "C" else None)
    place = damaged_copy(made, tmp_path)
    data = PackedDataset(tmp_path)

    with pytest.raises(
        DamagedData, match=r"shard-\d+\.tar is damaged: .* does not match what was packed"
    ):
        data[place]
    assert pack_proof.damage(str(tmp_path)) is None  # nobody staged it, so the pack stays as it is

    pack_proof.begin(str(tmp_path), load_manifest(str(tmp_path)))
    with pytest.raises(DamagedData):
        PackedDataset(tmp_path).__getitems__(range(COUNT))
    assert "shard-" in pack_proof.damage(str(tmp_path))


@pytest.mark.parametrize("way", ["C", "Python"])
def test_a_shard_that_was_changed_after_it_was_proven_is_compared_again(
    made, tmp_path, compiled, monkeypatch, way
):
    monkeypatch.setattr(pack_source, "compiled_samples", compiled.samples if way == "C" else None)
    pack_proof.begin(str(tmp_path), load_manifest(str(made)), proven=True)
    time.sleep(0.02)
    place = damaged_copy(made, tmp_path)

    with pytest.raises(DamagedData):
        PackedDataset(tmp_path).__getitems__([place])


@pytest.mark.parametrize("way", ["C", "Python"])
def test_what_was_wrong_only_in_memory_is_read_again(made, tmp_path, compiled, monkeypatch, way):
    monkeypatch.setattr(pack_source, "compiled_samples", compiled.samples if way == "C" else None)
    place = damaged_copy(made, tmp_path)
    expected = PackedDataset(made)[place]
    data = PackedDataset(tmp_path)
    real = pack_source.forget

    def forget(descriptor, offset, size):  # as if the disk had the right bytes
        real(descriptor, offset, size)
        for path in made.iterdir():
            (tmp_path / path.name).write_bytes(path.read_bytes())

    monkeypatch.setattr(pack_source, "forget", forget)

    assert data.__getitems__([place]) == [expected]


def test_a_dataset_gives_the_same_with_it(made, plain, compiled, monkeypatch):
    positions = random.Random(2).sample(range(COUNT), COUNT)
    expected = plain.__getitems__(positions)
    calls = []

    def noted(*words):
        calls.append(compiled.samples(*words))
        return calls[-1]

    monkeypatch.setattr(pack_source, "compiled_samples", noted)
    data = PackedDataset(made)
    first, second = data.__getitems__(positions), data.__getitems__(positions)

    assert first == second == expected
    assert [found is None for found in calls] == [True, False]  # shards are opened by Python


def change(folder, place) -> None:
    """Change one byte of a sample."""
    index = Index(str(folder / INDEX))
    entry = index.entry(place)
    index.close()
    with (folder / shard_name(entry.shard)).open("r+b") as stream:
        stream.seek(entry.offset + 1000)
        stream.write(b"changed")


def copy(made, folder) -> int:
    """A copy of the pack, and the position of a sample in it that is long enough to be changed."""
    place = damaged_copy(made, folder)
    for path in made.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return place


@pytest.mark.parametrize("way", ["C", "Python"])
@pytest.mark.parametrize("how", ["alone", "in order", "anyhow"])
def test_what_does_not_stay_in_memory_is_compared_in_every_epoch(
    made, tmp_path, compiled, monkeypatch, way, how
):
    monkeypatch.setattr(pack_source, "compiled_samples", compiled.samples if way == "C" else None)
    place = copy(made, tmp_path)
    positions = {"alone": [place], "in order": range(COUNT), "anyhow": [3, place, 9]}[how]
    data = PackedDataset(tmp_path, ahead=False)
    monkeypatch.setattr(prefetch, "free_memory", lambda: 1000)
    large = PackedDataset(tmp_path)
    for each in (data, large):
        each.__getitems__(positions)

    change(tmp_path, place)

    for each in (data, large):
        with pytest.raises(DamagedData):
            each.__getitems__(positions)
        with pytest.raises(DamagedData):
            each[place]


@pytest.mark.torch
@pytest.mark.parametrize("way", ["C", "Python"])
def test_what_stays_in_memory_is_compared_once_by_whichever_worker(
    made, tmp_path, compiled, monkeypatch, way
):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(pack_source, "compiled_samples", compiled.samples if way == "C" else None)
    place = copy(made, tmp_path)
    data = PackedDataset(tmp_path)
    loader = torch.utils.data.DataLoader(data, 16, num_workers=2, collate_fn=len)

    assert sum(loader) == COUNT
    monkeypatch.setattr(pack_source, "crc32", None)  # who would compare again fails
    again = data.__getitems__(range(COUNT))

    assert data[place] == again[place]
    monkeypatch.undo()
    assert again == PackedDataset(made).__getitems__(range(COUNT))


@pytest.mark.parametrize("way", ["C", "Python"])
def test_a_shard_that_is_opened_anew_is_compared_anew(made, tmp_path, compiled, monkeypatch, way):
    monkeypatch.setattr(pack_source, "compiled_samples", compiled.samples if way == "C" else None)
    place = copy(made, tmp_path)
    data = PackedDataset(tmp_path)
    data.__getitems__(range(COUNT))
    shard = data.shards_of([place])[0]

    damaged_copy(made, tmp_path)
    data._source._open(shard)

    with pytest.raises(DamagedData):
        data.__getitems__(range(COUNT))


@pytest.mark.parametrize("way", ["C", "Python"])
def test_a_shard_whose_copy_is_gone_is_compared_where_it_comes_from(
    made, tmp_path, compiled, monkeypatch, way
):
    monkeypatch.setattr(pack_source, "compiled_samples", compiled.samples if way == "C" else None)
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir(), there.mkdir()
    place = copy(made, here)
    damaged_copy(made, there)
    (here / SOURCE).write_bytes(os.fsencode(there))
    data = PackedDataset(here)
    data._source._compared[:] = b"\1" * COUNT  # by workers that had the copy open

    for path in here.glob("shard-*.tar"):
        path.unlink()

    with pytest.raises(DamagedData):
        data.__getitems__([place])
