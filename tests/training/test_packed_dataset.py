"""PackedDataset: the same samples from shards and from a folder, in any process."""

import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from tests.needs.pythons import interpreters

from rabaska.node.data.stage import stage
from rabaska.packing.make_pack import PackOptions, pack
from rabaska.packing.node_bundle import bundle
from rabaska.training import PackedDataset

PYTHONS = interpreters(since=(3, 8))

BOTH = pytest.mark.parametrize("mode", ["files", "shards"])


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    """One dataset, staged in both modes."""
    place = tmp_path_factory.mktemp("data")
    for number in range(60):
        path = place / "source" / ("dog", "cat", "cat-big")[number % 3] / f"{number:02d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d" % number * number)
    (place / "source/cat/deeper").mkdir()
    (place / "source/cat/deeper/é.jpg").write_text("deep")
    (place / "source/readme").write_text("top")
    os.symlink("readme", place / "source/link")
    made = pack(place / "source", place / "packs", PackOptions("toy", shard_size=9000))
    assert made.shards > 2
    return {mode: stage(str(made.folder), str(place / mode), mode) for mode in ("files", "shards")}


def first_byte(content: bytes) -> int:
    return content[0] if content else -1


@BOTH
def test_classes_are_the_first_folders_as_image_folders_have_them(staged, mode):
    dataset = PackedDataset(staged[mode])

    assert dataset.classes == ["cat", "cat-big", "dog"]
    assert dataset.class_to_idx == {"cat": 0, "cat-big": 1, "dog": 2}


@BOTH
def test_each_sample_has_its_content_its_class_and_its_name(staged, mode):
    dataset = PackedDataset(staged[mode])

    assert len(dataset) == len(dataset.names) == 62
    for (content, label), name in zip(dataset, dataset.names, strict=True):
        assert content == (Path(staged["files"]) / name).read_bytes()
        assert label == dataset.class_to_idx.get(name.split("/")[0], -1)


def test_shards_and_files_give_the_same_sequence(staged):
    shards, files = PackedDataset(staged["shards"]), PackedDataset(staged["files"])

    assert list(shards) == list(files)
    assert list(shards.names) == list(files.names)
    assert shards.names[-3:] == files.names[-3:]


@BOTH
def test_nothing_lies_in_no_shard_and_everything_in_one_after_the_other(staged, mode):
    dataset = PackedDataset(staged[mode])

    shards = dataset.shards_of(range(len(dataset)))

    assert dataset.shards_of([]) == []
    assert shards == sorted(shards)
    assert len(set(shards)) == len(list(Path(staged[mode]).glob("shard-*.tar")) or [0])


def test_a_program_with_numpy_is_given_the_same_samples(staged):
    program = (
        "import sys; sys.modules['numpy'] = {}\n"
        "from rabaska.training import PackedDataset\n"
        "dataset = PackedDataset(sys.argv[1])\n"
        "print(dataset.__getitems__(list(range(len(dataset)))[::-1]))"
    )
    words = [sys.executable, "-c"]

    told = {
        subprocess.run(
            [*words, program.format(numpy), staged["shards"]], check=True, capture_output=True
        ).stdout
        for numpy in ("None", "__import__('numpy')")
    }

    assert len(told) == 1
    assert told != {b"[]\n"}


@BOTH
def test_a_batch_is_what_its_samples_are(staged, mode):
    dataset = PackedDataset(staged[mode], transform=len)

    assert dataset.__getitems__([5, 0, 61, 5, -1]) == [dataset[i] for i in (5, 0, 61, 5, -1)]


@BOTH
@pytest.mark.parametrize("position", [62, -63])
def test_a_sample_that_is_not_there_is_an_index_error(staged, mode, position):
    dataset = PackedDataset(staged[mode])

    with pytest.raises(IndexError):
        dataset[position]
    with pytest.raises(IndexError):
        dataset.__getitems__([position])


def test_the_data_of_the_job_is_the_default(staged, monkeypatch):
    monkeypatch.setenv("RABASKA_DATA", staged["shards"])

    assert len(PackedDataset()) == 62


def test_without_a_job_and_a_path_it_says_what_to_do(monkeypatch):
    monkeypatch.delenv("RABASKA_DATA", raising=False)

    with pytest.raises(ValueError, match="RABASKA_DATA"):
        PackedDataset()


def test_a_pickled_dataset_carries_a_path_and_not_the_index(staged):
    dataset = PackedDataset(staged["shards"], transform=first_byte)

    sent = pickle.dumps(dataset)

    assert len(sent) < 500
    assert list(pickle.loads(sent)) == list(dataset)


@pytest.mark.parametrize("method", ["fork", "spawn"])
@BOTH
def test_several_processes_read_one_dataset_at_once(staged, mode, method):
    dataset = PackedDataset(staged[mode])
    expected = list(dataset)  # its files are open before the fork

    with multiprocessing.get_context(method).Pool(2) as pool:
        read = pool.map(dataset.__getitem__, list(range(len(dataset))) * 5, chunksize=3)
        pool.close()
        pool.join()

    assert read == expected * 5


def test_a_shard_cut_short_is_an_error_and_not_a_short_sample(staged, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in Path(staged["shards"]).iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    os.truncate(copy / "shard-00001.tar", 600)

    with pytest.raises(OSError, match=r"shard-00001\.tar was cut short"):
        list(PackedDataset(copy))


@pytest.mark.pythons
@pytest.mark.parametrize("python", PYTHONS.values(), ids=map("{0[0]}.{0[1]}".format, PYTHONS))
def test_every_python_from_3_8_reads_a_pack_without_any_other_package(staged, tmp_path, python):
    program = (
        "import sys; from rabaska.training import PackedDataset; d = PackedDataset(sys.argv[1])\n"
        "assert not {'torch', 'numpy', 'pydantic'} & set(sys.modules)\n"
        "print(len(d), sum(len(content) for content, _ in d))"
    )

    ended = subprocess.run(
        [python, "-W", "error", "-c", program, staged["shards"]],
        check=True, capture_output=True, text=True, env={"PYTHONPATH": str(bundle(tmp_path))},
    )  # fmt: skip

    total = sum(len(content) for content, _ in PackedDataset(staged["files"]))
    assert ended.stdout.split() == ["62", str(total)]


def test_a_batch_of_large_samples_is_what_its_samples_are(tmp_path):
    (tmp_path / "source" / "a").mkdir(parents=True)
    for number in range(6):
        (tmp_path / "source" / "a" / str(number)).write_bytes(bytes([number]) * 2_000_000)
    made = pack(tmp_path / "source", tmp_path / "packs", PackOptions("large", shard_size=3_000_000))
    dataset = PackedDataset(made.folder)

    batch = dataset.__getitems__([5, 0, 3, 1, 4, 2])

    assert [(content[0], len(content), label) for content, label in batch] == [
        (number, 2_000_000, 0) for number in (5, 0, 3, 1, 4, 2)
    ]
