"""State on disk: every value comes back as it was, and nothing in a file can run code."""

import io
import json
import os
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

import numpy as np  # noqa: E402

from rabaska.node.checkpoints import commit  # noqa: E402
from rabaska.training import NotSaveable, read_checkpoint, sharded_state, state_tree, tensor_file  # noqa: E402
from rabaska.training.checkpoint_writer import BackgroundSave, write  # noqa: E402
from rabaska.training.process_group import ProcessGroup  # noqa: E402
from rabaska.training.snapshot_memory import SnapshotMemory  # noqa: E402


def there_and_back(value: Any, folder: Path, step: int = 1) -> Any:
    text, tensors = state_tree.encode(value, "value")
    write(str(folder), BackgroundSave(step, SnapshotMemory().take(tensors), text, {}, lambda: None))
    return read_checkpoint.read(str(folder / commit.folder_name(step))).state


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
    | st.binary() | st.complex_numbers(allow_nan=False),
    lambda inner: st.lists(inner) | st.tuples(inner, inner)
    | st.dictionaries(st.text() | st.integers() | st.tuples(st.integers()), inner)
    | st.frozensets(st.integers()),
    max_leaves=20,
)  # fmt: skip


@given(plain)
def test_ordinary_values_come_back_equal_and_of_the_same_type(value: Any) -> None:
    text, tensors = state_tree.encode(value, "value")

    back = state_tree.decode(json.loads(json.dumps(text)), tensors.__getitem__)

    assert back == value
    assert type(back) is type(value)


DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
    torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64,
]  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from(DTYPES), st.lists(st.integers(0, 5), max_size=4)), max_size=8
    )
)
def test_tensors_of_every_kind_and_shape_come_back_bit_for_bit(wanted: Any) -> None:
    import tempfile

    value = [(torch.rand(shape) * 100).to(dtype) for dtype, shape in wanted]

    with tempfile.TemporaryDirectory() as folder:
        back = there_and_back(value, Path(folder))

    for one, other in zip(value, back, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert torch.equal(one, other)


def test_a_tensor_in_channels_last_order_comes_back_in_that_order(tmp_path: Path) -> None:
    images = torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last)

    back = there_and_back({"images": images}, tmp_path)["images"]

    assert torch.equal(back, images)
    assert back.stride() == images.stride()


def test_views_with_holes_and_infinities_come_back_as_numbers(tmp_path: Path) -> None:
    value = {"holes": torch.arange(20.0)[::3], "odd": torch.tensor([float("nan"), float("inf")])}

    back = there_and_back(value, tmp_path)

    assert torch.equal(back["holes"], value["holes"])
    assert torch.equal(back["odd"], value["odd"]) is False  # NaN is not equal to itself
    assert str(back["odd"]) == str(value["odd"])


def test_tied_weights_are_saved_once(tmp_path: Path) -> None:
    weight = torch.rand(100, 100)

    there_and_back({"first": weight, "second": weight}, tmp_path)

    size = (tmp_path / "ckpt-000000001" / "tensors.safetensors").stat().st_size
    assert size < 2 * weight.numel() * 4


def test_numpy_values_and_orders_are_kept(tmp_path: Path) -> None:
    value = OrderedDict(b=np.arange(6).reshape(2, 3), a=np.float32(1.5), type=torch.float16)

    back = there_and_back(value, tmp_path)

    assert list(back) == ["b", "a", "type"]
    assert (back["b"] == value["b"]).all()
    assert back["a"].dtype == np.float32
    assert back["type"] is torch.float16


def test_what_cannot_be_saved_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotSaveable, match=r"optimizer\.hook.*\n.*function"):
        state_tree.encode({"hook": lambda: None}, "optimizer")


def test_an_adam_optimizer_comes_back_equal(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.rand(4, 3)).sum().backward()
    optimizer.step()

    back = there_and_back(optimizer.state_dict(), tmp_path)

    assert back["param_groups"] == optimizer.state_dict()["param_groups"]
    assert torch.equal(back["state"][0]["exp_avg"], optimizer.state_dict()["state"][0]["exp_avg"])


def test_the_file_of_tensors_is_plain_safetensors(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    there_and_back({"weight": torch.arange(6.0).reshape(2, 3)}, tmp_path)

    read = safetensors.load_file(tmp_path / "ckpt-000000001" / "tensors.safetensors")

    assert torch.equal(read["value.weight"], torch.arange(6.0).reshape(2, 3))


def test_saving_a_step_again_changes_nothing(tmp_path: Path) -> None:
    there_and_back({"a": torch.ones(3)}, tmp_path)
    back = there_and_back({"a": torch.zeros(3)}, tmp_path)

    assert back["a"].tolist() == [1, 1, 1]


def test_memory_is_used_again_and_grows(tmp_path: Path) -> None:
    memory = SnapshotMemory()
    small, large = {"a": torch.ones(10)}, {"a": torch.ones(10), "b": torch.rand(2_000_000)}

    first = memory.take(small)
    again = memory.take(small)
    grown = memory.take(large)

    assert bytes(first.content) == bytes(again.content)
    content = grown.content[: grown.size]
    slots = {slot.name: slot for slot in tensor_file.slots_of(content)}
    found = tensor_file.tensor_in(torch.frombuffer(content, dtype=torch.uint8), slots["b"])
    assert torch.equal(found, large["b"])


def test_a_tensor_of_the_first_fsdp_is_refused() -> None:
    spread = torch.ones(3)
    spread.local_shards = "two processes"  # type: ignore[attr-defined]

    with pytest.raises(NotSaveable, match=r"model\.weight.*\n.*ShardedTensor"):
        state_tree.encode({"weight": spread}, "model")


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_metadata_of_sharded_tensors_cannot_run_anything(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "sprung"),)

    (tmp_path / "sharded").mkdir()
    (tmp_path / "sharded" / ".metadata").write_bytes(pickle.dumps(Trap()))

    with pytest.raises(BaseException, match="does not belong there"):
        sharded_state.read(str(tmp_path), {"weight": torch.zeros(1)}, ProcessGroup())

    assert not (tmp_path / "sprung").exists()


def _global(module: str, name: str) -> bytes:
    """The instructions that name something, as the fourth protocol of pickle spells them."""
    words = (word.encode() for word in (module, name))
    return b"".join(b"\x8c" + bytes([len(word)]) + word for word in words) + b"\x93"


FILESYSTEM = "torch.distributed.checkpoint.filesystem"


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
@pytest.mark.parametrize(
    ("module", "name"),
    [
        (FILESYSTEM, "FileSystem.rm_file.__builtins__.get"),
        (FILESYSTEM, "_StorageInfo.__init__"),
        (FILESYSTEM, "FileSystem"),
        (FILESYSTEM, "FileSystemReader"),
        ("torch.distributed.checkpoint.metadata", "Metadata.__init__.__globals__"),
        ("torch", "float32.to_real.__call__"),
        ("pathlib", "Path.unlink"),
        ("builtins", "eval"),
    ],
)
def test_metadata_names_only_what_it_consists_of(tmp_path: Path, module: str, name: str) -> None:
    (tmp_path / "sharded").mkdir()
    (tmp_path / "sharded" / ".metadata").write_bytes(b"\x80\x04" + _global(module, name) + b".")

    with pytest.raises(BaseException, match="does not belong there"):
        sharded_state.read(str(tmp_path), {"weight": torch.zeros(1)}, ProcessGroup())


METADATA = "torch.distributed.checkpoint.metadata"


@pytest.mark.parametrize(
    ("module", "kind", "attribute"),
    [
        (METADATA, "_MEM_FORMAT_ENCODING", "TORCH_CONTIGUOUS_FORMAT"),
        (METADATA, "_MEM_FORMAT_ENCODING", "__class__"),
        ("pathlib", "Path", "unlink"),
        ("torch", "Size", "numel"),
    ],
)
def test_of_attributes_metadata_names_members_of_enumerations_alone(
    module: str, kind: str, attribute: str
) -> None:
    """As Python 3.11.0 to 3.11.3 pickle such a member."""
    word = b"\x8c" + bytes([len(attribute)]) + attribute.encode()
    text = _global("builtins", "getattr") + _global(module, kind) + word + b"\x86R."
    unpickler = sharded_state._SafeUnpickler(io.BytesIO(b"\x80\x04" + text))

    if attribute == "TORCH_CONTIGUOUS_FORMAT":
        assert unpickler.load().name == attribute
        return
    with pytest.raises(pickle.UnpicklingError, match="does not belong there"):
        unpickler.load()


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (self.folder,)


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled", "ignore:torch.load")
def test_a_tensor_that_is_said_to_be_an_object_cannot_run_anything(tmp_path: Path) -> None:
    """PyTorch unpickles objects as they are, so a checkpoint of ours may hold none."""
    from torch.distributed import checkpoint

    checkpoint.save({"weight": Trap(tmp_path / "sprung")}, checkpoint_id=tmp_path / "sharded")

    with pytest.raises(BaseException, match="does not belong there"):
        sharded_state.read(str(tmp_path), {"weight": torch.zeros(1)}, ProcessGroup())

    assert not (tmp_path / "sprung").exists()


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_sharded_tensors_are_read_as_they_were_written(tmp_path: Path, kind: torch.dtype) -> None:
    from torch.distributed import checkpoint

    saved, found = torch.ones(3, 2).to(kind), torch.zeros(3, 2).to(kind)
    checkpoint.save({"weight": saved}, checkpoint_id=tmp_path / "sharded")

    sharded_state.read(str(tmp_path), {"weight": found}, ProcessGroup())

    assert torch.equal(found, saved)
