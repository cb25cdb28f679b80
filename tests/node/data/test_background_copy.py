"""Training while the shards still arrive: every sample is there at any moment."""

import os
import shutil
import time
from pathlib import Path

import pytest

from rabaska.node.data import background_copy, pack_proof
from rabaska.node.data.pack_format import load_manifest
from rabaska.packing.make_pack import PackOptions, pack
from rabaska.training import DamagedData, PackedDataset


@pytest.fixture
def made(tmp_path) -> Path:
    for number in range(200):
        path = tmp_path / "source" / f"class {number % 3}" / f"{number:03d}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d" % number * 300)
    return pack(
        tmp_path / "source", tmp_path / "packs", PackOptions("toy", shard_size=20_000)
    ).folder


@pytest.fixture(autouse=True)
def nobody_is_left():
    yield
    background_copy.end()


def wait_for(true) -> None:
    for _ in range(500):
        if true():
            return
        time.sleep(0.02)
    raise AssertionError("it never came")


def test_all_samples_can_be_read_at_once_and_all_shards_come(made, tmp_path):
    expected = list(PackedDataset(made))

    there = background_copy.begin(str(made), str(tmp_path / "node"))
    dataset = PackedDataset(there)

    assert list(dataset) == expected
    shards = [shard.name for shard in load_manifest(str(made)).shards]
    wait_for(lambda: set(shards) <= set(os.listdir(there)))
    assert list(dataset) == expected
    for name in shards:
        assert (Path(there) / name).read_bytes() == (made / name).read_bytes()


def test_once_it_has_arrived_the_source_is_not_needed(made, tmp_path):
    expected = list(PackedDataset(made))
    there = background_copy.begin(str(made), str(tmp_path / "node"))
    wait_for(lambda: len(list(Path(there).glob("shard-*"))) == len(list(made.glob("shard-*"))))

    shutil.rmtree(made)

    assert list(PackedDataset(there)) == expected


def test_a_damaged_shard_is_never_put_in_place_and_it_is_said_why(made, tmp_path):
    shard = made / "shard-00001.tar"
    content = bytearray(shard.read_bytes())
    content[700] ^= 1
    shard.write_bytes(content)

    there = Path(background_copy.begin(str(made), str(tmp_path / "node")))

    wait_for((there / pack_proof.DAMAGED).exists)
    assert "shard-00001.tar" in (pack_proof.damage(str(there)) or "")
    assert not (there / "shard-00001.tar").exists()
    with pytest.raises(DamagedData, match=r"shard-00001\.tar"):
        list(PackedDataset(there))


def test_shards_that_arrived_are_proven_and_those_of_another_day_anew(made, tmp_path):
    manifest = load_manifest(str(made))
    there = Path(background_copy.begin(str(made), str(tmp_path / "node")))
    proven = b"\1" * len(manifest.shards)
    wait_for(lambda: (there / pack_proof.PROVEN).read_bytes() == proven)
    shard = there / "shard-00002.tar"
    content = bytearray(shard.read_bytes())
    content[700] ^= 1
    shard.write_bytes(content)
    background_copy.end()

    background_copy.begin(str(made), str(tmp_path / "node"))

    wait_for(lambda: (there / pack_proof.PROVEN).read_bytes() == proven)
    assert shard.read_bytes() == (made / shard.name).read_bytes()  # it came once more
    assert pack_proof.damage(str(there)) is None


def test_ending_leaves_a_folder_that_can_be_removed(made, tmp_path):
    there = background_copy.begin(str(made), str(tmp_path / "node"))

    background_copy.end()
    shutil.rmtree(there)

    assert os.listdir(tmp_path / "node") == []
