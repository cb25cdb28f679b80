"""What is told of a checkpoint, and of a source, without running either."""

import ast
import json
import os
import pickle
import zipfile

import pytest

from rabaska.domain.rehearsal import Saved
from rabaska.node.checkpoints import commit
from rabaska.scouting import source, training_state

OPTIMIZER = {"state": {}, "param_groups": [{"lr": 0.1}]}


class Trap:
    def __reduce__(self):
        return os.mkdir, ("sprung",)


def torch_zip(path, value, numbers=b"1234"):
    """A file as torch.save lays it out."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("last/data.pkl", pickle.dumps(value, protocol=2))
        archive.writestr("last/data/0", numbers)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"layer.weight": 1}, Saved(readable=True)),
        ({"optimizer": OPTIMIZER}, Saved(readable=True, optimizer=True)),
        (
            {"model": 1, "opt": OPTIMIZER, "sched": {"_last_lr": [0.1]}, "torch_rng": b"1"},
            Saved(readable=True, optimizer=True, scheduler=True, random=True),
        ),
    ],
)
def test_the_parts_of_a_checkpoint_are_told_from_its_pickle(tmp_path, value, expected):
    torch_zip(tmp_path / "last.pt", value)

    assert training_state.saved(tmp_path / "last.pt") == expected


def test_nothing_in_a_checkpoint_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch_zip(tmp_path / "last.pt", {"trap": Trap(), "optimizer": OPTIMIZER})

    found = training_state.saved(tmp_path / "last.pt")

    assert found.optimizer
    assert not (tmp_path / "sprung").exists()


def test_files_saved_together_are_one_checkpoint(tmp_path):
    for name in ("model", "optimizer", "scheduler", "rng_state"):
        torch_zip(tmp_path / f"{name}.pt", {})

    found = training_state.saved(tmp_path / "model.pt")

    assert (found.optimizer, found.scheduler, found.random) == (True, True, True)


def test_the_folder_of_a_session_is_read_through_its_state(tmp_path):
    folder = tmp_path / "ckpt-000000001"
    folder.mkdir()
    inside = {"parts": {"optimizer": {"param_groups": []}}, "generators": []}
    (folder / "state.json").write_text(json.dumps({"is": "dict", "of": inside}))

    found = training_state.saved(folder)

    assert (found.optimizer, found.scheduler, found.random) == (True, False, True)


@pytest.mark.parametrize("content", [b"", b"\x80\x04", b"not a pickle", b"{", b"PK\x03\x04"])
def test_what_cannot_be_read_is_no_error(tmp_path, content):
    (tmp_path / "last.pt").write_bytes(content)

    assert not training_state.saved(tmp_path / "last.pt").optimizer
    assert training_state.tensors(tmp_path / "last.pt") is None


def test_tensors_are_compared_by_their_bytes_and_nothing_else(tmp_path):
    torch_zip(tmp_path / "a.pt", {"when": "monday"}, b"1234")
    torch_zip(tmp_path / "b.pt", {"when": "friday"}, b"1234")
    torch_zip(tmp_path / "c.pt", {"when": "monday"}, b"1235")

    first, same, other = (training_state.tensors(tmp_path / f"{name}.pt") for name in "abc")

    assert first == same != other


def test_tensors_of_a_session_are_compared_by_their_manifest(tmp_path):
    folder = tmp_path / "ckpt-000000001"
    folder.mkdir()
    part = commit.CheckpointPart("tensors.safetensors", 4, [7])
    commit.seal(str(folder), 1, [part], about={})

    assert training_state.tensors(folder) == {"tensors.safetensors": "[7]"}


def used(text):
    tree = ast.parse(text)
    return training_state.used((source.Source("train.py", tree, nodes=tuple(ast.walk(tree))),))


def test_what_has_state_is_found_in_the_source_with_its_place():
    found = used(
        "o = torch.optim.AdamW(p)\n"
        "s = torch.optim.lr_scheduler.CosineAnnealingLR(o, 9)\n"
        "l = DataLoader(d, shuffle=True)\n"
        "m = nn.Dropout(0.1)\n"
    )

    assert found.optimizer == "train.py, line 1: torch.optim.AdamW"
    assert "line 2" in found.scheduler
    assert "line 3" in found.order
    assert "line 4" in found.random


def test_what_needs_no_saving_is_not_named():
    found = used(
        "o = torch.optim.SGD(p, lr=0.1)\n"
        "l = DataLoader(d, shuffle=True, generator=order)\n"
        "torch.randperm(9, generator=torch.Generator().manual_seed(epoch))\n"
    )

    assert (found.optimizer, found.scheduler, found.order) == ("", "", "")
