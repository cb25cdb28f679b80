"""Files as what their names say they are."""

import io
import json

import pytest

from rabaska.training import PackedDataset, folder
from rabaska.training.packed_dataset import decoded


def test_text_numbers_and_json_need_no_package():
    assert decoded("a.txt", "é".encode()) == "é"
    assert decoded("a.CLS", b"7\n") == 7
    assert decoded("a.json", json.dumps({"x": [1]}).encode()) == {"x": [1]}
    assert decoded("a.bin", b"\0\1") == b"\0\1"


def test_arrays_are_read_without_trusting_them():
    numpy = pytest.importorskip("numpy")
    content = io.BytesIO()
    numpy.save(content, numpy.arange(3))
    harmful = io.BytesIO()
    numpy.save(harmful, numpy.array([{}], dtype=object), allow_pickle=True)

    assert decoded("a.npy", content.getvalue()).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="allow_pickle"):
        decoded("a.npy", harmful.getvalue())


def test_a_folder_gives_what_image_folders_give(tmp_path):
    for name in ("cats/1.txt", "dogs/2.txt"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(name)

    dataset = folder(tmp_path, transform=str.upper)

    assert [dataset[0], dataset[1]] == [("CATS/1.TXT", 0), ("DOGS/2.TXT", 1)]
    assert dataset.__getitems__([1, -2]) == [("DOGS/2.TXT", 1), ("CATS/1.TXT", 0)]
    assert dataset.class_to_idx == {"cats": 0, "dogs": 1}
    assert PackedDataset(tmp_path)[0] == (b"cats/1.txt", 0)
