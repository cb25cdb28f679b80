"""On a slow shared file system: the same results, and many things under way at once."""

import os
import time
from pathlib import Path

import pytest
from benchmarks.slow_disk.mount import slow_disk, unavailable

from rabaska.node.data import background_copy
from rabaska.node.data.pack_format import BadPack
from rabaska.node.data.stage import stage
from rabaska.node.data.verify import verify
from rabaska.packing.make_pack import PackOptions, pack
from rabaska.training import PackedDataset

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount the slow disk"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    why = unavailable()
    if why:
        pytest.skip(why)
    source = tmp_path_factory.mktemp("slow") / "source"
    for number in range(1200):
        path = source / f"class {number % 40}" / f"{number:04d}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d" % number * 200)
    return source


def test_files_are_packed_many_at_a_time_into_the_same_pack(folder, tmp_path):
    calls = 1200 * 3  # look up, open, read
    near = pack(folder, tmp_path / "near", PackOptions("toy", shard_size=200_000))

    with slow_disk(folder, tmp_path / "disk", latency_us=5000) as mount:
        begun = time.monotonic()
        far = pack(mount, tmp_path / "far", PackOptions("toy", shard_size=200_000))
        spent = time.monotonic() - begun

    assert far.identity == near.identity
    assert spent < calls * 0.005  # what one call after the other would take at the very least


@pytest.mark.parametrize("mode", ["files", "shards"])
def test_a_pack_is_staged_from_it_whole(folder, tmp_path, mode):
    made = pack(folder, tmp_path / "packs", PackOptions("toy", shard_size=500_000))

    with slow_disk(tmp_path / "packs", tmp_path / "disk", latency_us=200, stream=20) as mount:
        staged = Path(stage(str(mount / made.folder.name), str(tmp_path / "node"), mode))

    if mode == "shards":
        assert verify(str(staged)) == []
    found = [content for content, _ in PackedDataset(staged)]
    assert found == [content for content, _ in PackedDataset(made.folder)]


@pytest.mark.parametrize("mode", ["files", "shards"])
def test_a_shard_that_came_damaged_is_fetched_again_and_reported_the_second_time(
    folder, tmp_path, mode
):
    made = pack(folder, tmp_path / "packs", PackOptions("toy", shard_size=500_000))

    with slow_disk(tmp_path / "packs", tmp_path / "once", flaws=1) as mount:
        staged = Path(stage(str(mount / made.folder.name), str(tmp_path / "node"), mode))
    with (
        slow_disk(tmp_path / "packs", tmp_path / "often", flaws=10**6) as mount,
        pytest.raises(BadPack, match=r"shard-\d+\.tar"),
    ):
        stage(str(mount / made.folder.name), str(tmp_path / "again"), mode)

    found = [content for content, _ in PackedDataset(staged)]
    assert found == [content for content, _ in PackedDataset(made.folder)]
    assert os.listdir(tmp_path / "again") == []


def test_the_first_batch_does_not_wait_for_the_shards(folder, tmp_path):
    made = pack(folder, tmp_path / "packs", PackOptions("toy", shard_size=500_000))

    with slow_disk(tmp_path / "packs", tmp_path / "disk", target=1, targets=1) as mount:
        there = background_copy.begin(str(mount / made.folder.name), str(tmp_path / "node"))
        dataset = PackedDataset(there)
        first = dataset.__getitems__(list(range(8)))
        arrived = len(list(Path(there).glob("shard-*.tar")))
        background_copy.end()

    assert first == PackedDataset(made.folder).__getitems__(list(range(8)))
    assert arrived < made.shards
