"""Where the datasets of a run are put on its node."""

import os
import tempfile
from pathlib import Path

import pytest
from made_runs import PLAN
from tests.disks import small_disk

from rabaska.node.data.tier_choice import LEFT, MEMORY, NoTierFits, kind_of
from rabaska.node.job import stage_datasets
from rabaska.node.record.plan import Nearby, StagedData, from_json, to_json
from rabaska.node.record.run_folder import RunFolder
from rabaska.packing.make_pack import PackOptions, pack
from rabaska.training import PackedDataset


@pytest.fixture
def made(tmp_path):
    for number in range(30):
        path = tmp_path / "source" / f"class {number % 3}" / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes([number]) * 1000)
    return pack(
        tmp_path / "source", tmp_path / "store" / "packs", PackOptions("toy", shard_size=9000)
    )


@pytest.fixture
def memory():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield folder


@pytest.fixture
def place(made, tmp_path):
    """Puts the dataset somewhere, as a job of one node does, and lets go of it at the end."""
    (tmp_path / "local").mkdir()

    def placed(
        mode: str,
        nearby: Nearby = Nearby(),  # noqa: B008
        local: str = "",
    ) -> stage_datasets.PlacedDataset:
        plan = PLAN._replace(datasets=[StagedData("toy", made.identity, mode)], nearby=nearby)
        run = RunFolder(str(tmp_path / "store" / "runs" / "toy-1234"))
        return stage_datasets.place(run, plan, local or str(tmp_path / "local"), freely=True)[0]

    yield placed
    stage_datasets.leave()


def contents(folder: str) -> list:
    return [sample[0] for sample in PackedDataset(folder)]


def test_shards_on_the_disk_of_the_node_are_left_where_they_are(place, made):
    found = place("shards")

    assert found.where == LEFT
    assert contents(found.path) == contents(str(made.folder))
    assert {path.name for path in Path(found.path).glob("shard-*")} == {
        path.name for path in made.folder.glob("shard-*")
    }


@pytest.mark.parametrize("mode", ["files", "shards"])
def test_what_fits_goes_into_memory_and_is_gone_afterwards(place, made, memory, mode):
    found = place(mode, Nearby(memory=memory))

    assert found.where == MEMORY
    assert found.path.startswith(memory)
    assert contents(found.path) == contents(str(made.folder))
    stage_datasets.leave()
    assert [name for _, _, names in os.walk(memory) for name in names] == []


def test_files_stay_in_the_space_of_the_job_where_there_is_no_memory_to_spare(place, tmp_path):
    found = place("files")

    assert found.where == kind_of(str(tmp_path))  # the folder of the tests may lie in memory
    assert found.path.startswith(str(tmp_path / "local"))


def test_two_runs_have_files_of_their_own_and_may_write_to_them(place, memory):
    first, second = (place("files", Nearby(memory=memory)).path for _ in range(2))

    (Path(first) / "class 0" / "cache").write_text("mine")

    assert not (Path(second) / "class 0" / "cache").exists()


def test_a_shared_disk_keeps_the_shards_for_the_next_run(place, made, memory):
    first = place("shards", Nearby(shared=memory)).path
    stage_datasets.leave()
    kept = place("shards", Nearby(shared=memory)).path

    assert kept == first


def test_a_folder_that_the_node_does_not_have_is_none(monkeypatch, tmp_path):
    monkeypatch.setenv("RAMDISK", str(tmp_path))

    assert stage_datasets.folders_here(Nearby("$RAMDISK", "$NO_SUCH_VARIABLE")) == Nearby(
        str(tmp_path), ""
    )
    assert stage_datasets.folders_here(Nearby("$RAMDISK/x")) == Nearby()


@pytest.mark.parametrize("mode", ["files", "shards"])
def test_what_fits_nowhere_is_refused_as_files_and_read_in_place_as_shards(place, tmp_path, mode):
    with small_disk(tmp_path / "small", "16k") as small:
        if mode == "files":
            with pytest.raises(NoTierFits, match="30 files"):
                place(mode, local=str(small))
        else:
            assert place(mode, local=str(small)).where == LEFT


def test_a_plan_without_nearby_folders_can_be_read():
    before = to_json(PLAN)
    del before["nearby"]

    assert from_json(before).nearby == Nearby()


@pytest.mark.parametrize(
    ("placed", "sentence"),
    [
        (("cats", "", 10**9, MEMORY, 3.21, False), "cats 1000.0 MB in memory, staged in 3.2 s"),
        (("cats", "", 10**9, LEFT, 0.0, False), "cats 1000.0 MB read in place"),
    ],
)
def test_it_is_said_in_one_line(placed, sentence):
    assert stage_datasets.placement_line(stage_datasets.PlacedDataset(*placed)) == sentence
