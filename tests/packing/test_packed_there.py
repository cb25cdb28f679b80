"""What the node side packs is what `rabaska pack` makes: the same format, mostly the same bytes."""

import os
import tempfile
from pathlib import Path

import pytest
import trees
from hypothesis import HealthCheck, given, settings

from rabaska.node.data import pack_folder as there
from rabaska.node.data.list_folder import CannotPack, Limits, TooLarge, list_folder
from rabaska.node.data.pack_files import extract
from rabaska.node.data.pack_format import load_manifest
from rabaska.node.data.verify import verify
from rabaska.packing.make_pack import PackOptions, pack
from rabaska.training import PackedDataset

few = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def packed_there(source, store, name="any", **options):
    tree = list_folder(str(source), **options)
    manifest = there.pack_folder(str(source), tree, str(store), name, lambda done, total: None)
    return Path(store, manifest.identity)


@few
@given(trees.trees.filter(trees.holds_a_file))
def test_any_tree_gives_the_pack_that_this_computer_would_make(tree):
    with tempfile.TemporaryDirectory() as place:
        trees.make(tree, os.fsencode(f"{place}/source"))

        made = packed_there(f"{place}/source", f"{place}/there")
        ours = pack(Path(place, "source"), Path(place, "here"), PackOptions("any", workers=1))

        assert made.name == ours.identity
        assert verify(str(made)) == []


def test_many_shards_keep_samples_together_and_come_back(tmp_path, monkeypatch):
    monkeypatch.setattr(there, "_SMALLEST", 2**14)
    for number in range(60):
        folder = tmp_path / "source" / f"c{number % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:03}.jpg").write_bytes(bytes([number]) * 3000)
        (folder / f"{number:03}.cls").write_text(str(number))

    made = packed_there(tmp_path / "source", tmp_path / "packs")

    assert len(load_manifest(str(made)).shards) > 3
    assert verify(str(made)) == []
    assert PackedDataset(made).classes == ["c0", "c1", "c2"]
    extract(str(made), str(tmp_path / "back"), [], lambda done, total: None)
    assert trees.described(tmp_path / "back") == trees.described(tmp_path / "source")


def test_one_file_is_a_dataset_as_well(tmp_path):
    (tmp_path / "data.mdb").write_bytes(b"x" * 100)

    made = packed_there(tmp_path / "data.mdb", tmp_path / "packs")

    assert [content for content, _ in PackedDataset(made)] == [b"x" * 100]


def test_what_is_too_much_is_not_listed_to_its_end(tmp_path):
    for number in range(20):
        (tmp_path / f"{number}").write_text("x" * 10)

    with pytest.raises(TooLarge) as seen:
        list_folder(str(tmp_path), limits=Limits(files=5))
    with pytest.raises(TooLarge):
        list_folder(str(tmp_path), limits=Limits(bytes=50))

    assert seen.value.files == 6


@pytest.mark.parametrize("follow", [False, True])
def test_links_that_lead_out_or_back_are_refused(tmp_path, follow):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "1.txt").write_text("1")
    os.symlink(".." if not follow else ".", tmp_path / "data" / "link")

    with pytest.raises(CannotPack) as refusal:
        list_folder(str(tmp_path / "data"), follow_links=follow)

    assert "follow_links" in refusal.value.hint


def test_an_empty_folder_and_a_file_that_changes_are_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(CannotPack, match="is empty"):
        list_folder(str(tmp_path / "empty"))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "1.txt").write_text("long")
    tree = list_folder(str(tmp_path / "data"))
    (tmp_path / "data" / "1.txt").write_text("longer")

    with pytest.raises(CannotPack, match="changed while it was packed"):
        there.pack_folder(str(tmp_path / "data"), tree, str(tmp_path), "x", lambda *_: None)

    assert sorted(os.listdir(tmp_path)) == ["data", "empty"]
