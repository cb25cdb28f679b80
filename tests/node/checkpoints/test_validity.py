"""What can be told of a checkpoint file without loading it."""

import bz2
import gzip
import json
import lzma
import os
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rabaska.node.checkpoints import validity

ARRAYS = {"weights": np.arange(5000, dtype="f4"), "step": np.array(12)}


def write_npz(path: Path) -> None:
    np.savez(path, **ARRAYS)


def write_npy(path: Path) -> None:
    np.save(path, ARRAYS["weights"])


def write_torch_like(path: Path) -> None:
    """The layout of torch.save since 1.6: a zip of stored members under one folder."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("model/data.pkl", pickle.dumps({"step": 12}, protocol=2))
        archive.writestr("model/data/0", os.urandom(20000))
        archive.writestr("model/version", "3\n")


def write_safetensors(path: Path) -> None:
    data = os.urandom(2400)
    header = json.dumps(
        {
            "__metadata__": {"format": "pt"},
            "a": {"dtype": "F32", "shape": [100], "data_offsets": [0, 400]},
            "b": {"dtype": "F32", "shape": [20, 25], "data_offsets": [400, 2400]},
        }
    ).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


def hdf5_bytes(version: int, size: int = 4096, *, user_block: int = 0, end: int = 0) -> bytes:
    """A superblock as HDF5 writes it, followed by room for what it describes."""
    addresses = struct.pack("<QQQ", user_block, 2**64 - 1, end or size)
    if version < 2:
        block = bytes([version, 0, 0, 0, 0, 8, 8, 0]) + struct.pack("<HHI", 4, 16, 0)
        block += struct.pack("<HH", 32, 0) if version == 1 else b""
    else:
        block = bytes([version, 8, 8, 0])
    content = b"u" * user_block + validity.HDF5_MAGIC + block + addresses
    return content.ljust(size, b"\1")


def write_hdf5(path: Path) -> None:
    path.write_bytes(hdf5_bytes(0))


def write_pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps({"weights": list(range(1000))}))


WRITERS = {
    "model.pt": write_torch_like,
    "model.pth": write_torch_like,
    "last.ckpt": write_torch_like,
    "checkpoint.pth.tar": write_torch_like,
    "pytorch_model.bin": write_torch_like,
    "model.keras": write_torch_like,
    "state.npz": write_npz,
    "state.npy": write_npy,
    "model.safetensors": write_safetensors,
    "model.h5": write_hdf5,
    "model.hdf5": write_hdf5,
    "forest.pkl": write_pickle,
}


@pytest.fixture(params=sorted(WRITERS))
def whole(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / request.param
    WRITERS[request.param](path)
    return path


@pytest.mark.parametrize("deep", [False, True])
def test_a_whole_file_is_valid(whole: Path, deep: bool) -> None:
    assert validity.check(str(whole), deep=deep) is None


def test_a_file_cut_short_anywhere_is_damaged(whole: Path) -> None:
    content = whole.read_bytes()
    cuts = {1, 5, 9, 20, 100, len(content) // 3, len(content) // 2, len(content) - 1}

    for cut in sorted(cuts):
        whole.write_bytes(content[:cut])
        if whole.suffix in (".tar", ".bin", ".pt", ".pth", ".ckpt") and cut < 4:
            continue  # too short to tell what it was meant to be

        assert validity.check(str(whole)) is not None, cut


def test_an_empty_file_of_any_kind_is_damaged(whole: Path) -> None:
    whole.write_bytes(b"")

    assert validity.check(str(whole)) == "it is empty"


def test_a_file_of_zeros_is_damaged_whatever_its_name(whole: Path) -> None:
    whole.write_bytes(bytes(8192))

    assert validity.check(str(whole)) is not None


@pytest.mark.parametrize("zeros", [600, 4096, (1 << 20) + 5])
def test_a_file_that_begins_with_zeros_is_valid(tmp_path: Path, zeros: int) -> None:
    """Raw numbers, of which the first are zeros, as those of the embedding of padding are."""
    path = tmp_path / "weights.bin"
    path.write_bytes(bytes(zeros) + b"x" + bytes(100))

    assert validity.check(str(path), deep=True) is None
    path.write_bytes(bytes(zeros + 101))
    assert validity.check(str(path)) == "it contains only zeros"


@pytest.mark.parametrize("name", ["model.pt", "state.npz", "model.keras", "checkpoint.pth.tar"])
def test_a_changed_bit_inside_a_zip_is_found_by_the_deep_check_only(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))

    assert validity.check(str(path)) is None
    assert validity.check(str(path), deep=True) is not None


def test_a_zip_without_checksums_is_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/data/0", b"weights" * 100)
        written = archive.infolist()[0].CRC
    path.write_bytes(path.read_bytes().replace(struct.pack("<I", written), bytes(4)))

    assert validity.check(str(path), deep=True) is None


def test_the_numbers_of_pytorchs_old_format_are_accepted_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "old.pth"
    magic = pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2)
    path.write_bytes(magic + b"\x80\x02M\xe9\x03." * 4 + os.urandom(1000) + b"\0")

    assert validity.check(str(path), deep=True) is None


def test_a_plain_pickle_called_pt_must_end_with_its_stop_mark(tmp_path: Path) -> None:
    path = tmp_path / "plain.pt"
    path.write_bytes(pickle.dumps([0.5] * 100, protocol=2))
    cut = tmp_path / "cut.pt"
    cut.write_bytes(path.read_bytes()[:-5])

    assert validity.check(str(path)) is None
    assert "STOP" in (validity.check(str(cut)) or "")


def test_a_compressed_pickle_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "forest.pkl"
    path.write_bytes(b"\x1f\x8b\x08" + bytes(50))

    assert validity.check(str(path)) is None


def test_a_safetensors_file_with_more_than_its_header_says_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_safetensors(path)
    with path.open("ab") as stream:
        stream.write(b"x")

    assert "longer" in (validity.check(str(path)) or "")


def test_a_safetensors_header_with_a_hole_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    header = json.dumps({"a": {"dtype": "U8", "shape": [4], "data_offsets": [4, 8]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))

    assert "follow" in (validity.check(str(path)) or "")


@pytest.mark.parametrize("version", [0, 1, 2, 3])
@pytest.mark.parametrize("user_block", [0, 512, 2048])
def test_every_version_of_the_hdf5_superblock_is_read(
    tmp_path: Path, version: int, user_block: int
) -> None:
    path = tmp_path / "model.h5"
    content = hdf5_bytes(version, user_block=user_block)
    path.write_bytes(content)
    cut = tmp_path / "cut.h5"
    cut.write_bytes(content[:-1])

    assert validity.check(str(path)) is None
    assert validity.check(str(cut)) == "it is cut short: 4095 bytes of at least 4096"


def test_an_hdf5_file_that_was_never_closed_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    content = bytearray(hdf5_bytes(3))
    content[11] |= 1
    path.write_bytes(bytes(content))

    assert "open for writing" in (validity.check(str(path)) or "")


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 3)),
        np.array(3.5),
        np.zeros((7, 5), dtype="c16"),
        np.array(["épée", "x"]),
        np.zeros(4, dtype=[("a", "<f4"), ("b", "<i2", (3,))]),
        np.array([1, "two", None], dtype=object),
        np.array(["2026-01-01"], dtype="M8[ns]"),
        np.array([True, False]),
    ],
    ids=str,
)
def test_numpy_files_of_every_type_are_measured_exactly(tmp_path: Path, array: np.ndarray) -> None:
    path = tmp_path / "array.npy"
    np.save(path, array, allow_pickle=True)
    cut = tmp_path / "cut.npy"
    cut.write_bytes(path.read_bytes()[:-1])

    assert validity.check(str(path)) is None
    assert array.size == 0 or validity.check(str(cut)) is not None


def test_a_file_that_cannot_be_read_is_not_called_damaged(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        validity.check(str(tmp_path / "gone.pt"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(
    name=st.sampled_from(sorted(WRITERS)),
    magic=st.sampled_from(
        [b"", b"PK\x03\x04", b"PK\x05\x06", validity.HDF5_MAGIC, validity.NPY_MAGIC, b"\x80\x04"]
    ),
    content=st.binary(max_size=300),
)
def test_no_bytes_make_the_check_raise(
    tmp_path: Path, name: str, magic: bytes, content: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(magic + content)

    assert isinstance(validity.check(str(path), deep=True), (str, type(None)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(
    name=st.sampled_from(sorted(WRITERS)),
    places=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=8),
)
def test_no_damage_to_a_whole_file_makes_the_check_raise(
    tmp_path: Path, name: str, places: list[tuple[float, int]]
) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    content = bytearray(path.read_bytes())
    for where, value in places:
        content[int(where * (len(content) - 1))] = value
    path.write_bytes(bytes(content))

    assert isinstance(validity.check(str(path), deep=True), (str, type(None)))


TORCH_NAMES = ["m.pt", "m.pth", "m.pkl", "m.pickle", "m.bin", "m.ckpt", "m.tar", "m.pth.tar"]


@pytest.mark.torch
@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("name", TORCH_NAMES)
def test_what_torch_saves_is_valid_under_every_name_and_damaged_where_it_is_cut(
    tmp_path: Path, name: str, protocol: int, zipped: bool
) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / name
    model = torch.nn.Linear(80, 8)  # 640 weights: b"\x80\x02", which opens a pickle, too
    torch.save(
        {"model": model.state_dict(), "step": 3},
        path,
        pickle_protocol=protocol,
        _use_new_zipfile_serialization=zipped,
    )
    content = path.read_bytes()
    # Of the old format only the pickles before the weights can be followed.
    end = len(content) if zipped else len(content) - 4 * 648 - 16

    assert validity.check(str(path)) is None
    assert validity.check(str(path), deep=True) is None
    for cut in sorted({6, 40, end // 3, end // 2, end - 100, end - 1}):
        path.write_bytes(content[:cut])
        assert validity.check(str(path)) is not None, cut


PICKLES = {
    "several in one file": pickle.dumps([1] * 50) + pickle.dumps({"step": 2}),
    "followed by raw numbers": pickle.dumps({"shape": 500}) + np.arange(500.0).tobytes(),
    "followed by a number like an opcode": pickle.dumps(1) + struct.pack("<q", 640) + b"x" * 5120,
    "large bytes": pickle.dumps([b"." * 70000, "é" * 300, bytearray(70000), {1.5, 2**80}]),
    "a class": pickle.dumps([Path("x"), np.arange(100.0), np.float32(3)]),
}


@pytest.mark.parametrize("name", ["state.pkl", "state.pickle", "state.pt", "state.joblib", "state"])
@pytest.mark.parametrize("content", PICKLES.values(), ids=PICKLES)
def test_a_pickle_is_not_damaged_by_what_follows_its_stop_mark(
    tmp_path: Path, name: str, content: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(content)

    assert validity.check(str(path), deep=True) is None


@pytest.mark.parametrize("protocol", range(2, 6))
def test_a_pickle_cut_anywhere_is_damaged_even_after_a_byte_like_stop(
    tmp_path: Path, protocol: int
) -> None:
    path = tmp_path / "state.pkl"
    state = {"a.b": [0.5, 46, "x." * 200, b"." * 300], "p": Path("x"), "n": 2**70, "f": (1, None)}
    content = pickle.dumps(state, protocol=protocol)

    for cut in range(1, len(content)):
        path.write_bytes(content[:cut])
        assert validity.check(str(path)) is not None, cut


@pytest.mark.parametrize("protocol", [0, 1])
def test_a_pickle_that_begins_like_any_text_is_not_called_damaged(
    tmp_path: Path, protocol: int
) -> None:
    path = tmp_path / "state.pkl"
    path.write_bytes(pickle.dumps({"step": 3}, protocol=protocol) + b"\n")

    assert validity.check(str(path), deep=True) is None


_FRAME = b"\x95" + struct.pack("<Q", 80)
OF_JOBLIB = {
    "protocol 3": b"\x80\x03}q\0cjoblib.numpy_pickle\nNumpyArrayWrapper\nq\1",
    "protocol 4": b"\x80\x04" + _FRAME + b"}\x8c\x13joblib.numpy_pickle\x94"
    b"\x8c\x11NumpyArrayWrapper\x94\x93\x94",
    "named before": b"\x80\x04" + _FRAME + b"(\x94\x8c\x13joblib.numpy_pickle\x94K\x05h\x01"
    b"\x8c\x11NumpyArrayWrapper\x94\x93\x94",
    "of scikit-learn": b"\x80\x03csklearn.externals.joblib.numpy_pickle\nNumpyArrayWrapper\nq\0",
}


@pytest.mark.parametrize("opening", OF_JOBLIB.values(), ids=OF_JOBLIB)
def test_an_array_of_joblib_between_the_opcodes_is_no_damage(
    tmp_path: Path, opening: bytes
) -> None:
    """As `joblib.dump` lays it out: the wrapper's opcodes, the numbers, the rest of the pickle."""
    path = tmp_path / "forest.pkl"
    content = opening + b")\x81}b" + b"X\xff\xff\xff\x7f" * 100 + b"u."
    path.write_bytes(content)
    cut = tmp_path / "cut.pkl"
    cut.write_bytes(content[:-40])

    assert validity.check(str(path), deep=True) is None
    assert validity.check(str(cut), deep=True) is not None


def pickled_like_old_torch(state: object) -> bytes:
    pickled = (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}, state, ["0"])
    return b"".join(pickle.dumps(one, protocol=2) for one in pickled)


MENTIONS = ["joblib", "backend=joblib", "joblib.numpy_pickle", ["joblib.numpy_pickle", Path("x")]]


@pytest.mark.parametrize("state", MENTIONS, ids=str)
def test_a_text_about_joblib_does_not_make_a_file_one_of_joblib(
    tmp_path: Path, state: object
) -> None:
    path = tmp_path / "state.pt"
    old = pickled_like_old_torch({"args": state})

    for pickled in (old, *(pickle.dumps({"args": state}, each) for each in range(2, 6))):
        path.write_bytes(pickled + bytes(99) + b"\1")
        assert validity.check(str(path), deep=True) is None
        path.write_bytes(pickled[:-9])
        assert "cut short" in (validity.check(str(path), deep=True) or "")


def test_an_old_file_of_torch_may_hold_a_class_of_joblib(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    pickled = pickled_like_old_torch(Path("x")).replace(b"cpathlib", b"cjoblib.numpy_pickle", 1)
    path.write_bytes(pickled + bytes(99) + b"\1")

    assert b"joblib" in pickled
    assert validity.check(str(path), deep=True) is None


COMPRESSORS = {
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zlib": zlib.compress,
}


@pytest.mark.parametrize("name", ["forest.pkl", "forest.joblib", "model.pt", "state.pkl.gz"])
@pytest.mark.parametrize("compress", COMPRESSORS.values(), ids=COMPRESSORS)
def test_what_is_compressed_is_valid_and_damaged_where_it_is_cut(
    tmp_path: Path, name: str, compress: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / name
    content = compress(pickle.dumps([os.urandom(3000), bytes(3 << 20)]))
    path.write_bytes(content)
    cut = tmp_path / f"cut-{name}"

    assert validity.check(str(path)) is None
    assert validity.check(str(path), deep=True) is None
    for length in (50, len(content) // 2, len(content) - 3):
        cut.write_bytes(content[:length])
        assert "cut short" in (validity.check(str(cut), deep=True) or ""), length


@pytest.mark.parametrize("padding", [0, 8, 3 << 16])
@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_every_member_of_what_is_compressed_is_checked(
    tmp_path: Path, compress: Callable[[bytes], bytes], padding: int
) -> None:
    """As of a file that was appended to, or compressed in parallel."""
    path = tmp_path / "forest.pkl.gz"
    first = compress(os.urandom(70000)) + compress(b"") + bytes(padding)
    last = compress(os.urandom(200_000))

    for end in (b"", bytes(padding), b"words of my own"):
        path.write_bytes(first + last + end)
        assert validity.check(str(path), deep=True) is None
    for length in (20, 5000, len(last) - 3):
        path.write_bytes(first + last[:length])
        assert "cut short" in (validity.check(str(path), deep=True) or ""), length
    path.write_bytes(first + last[:9000] + bytes([last[9000] ^ 1]) + last[9001:])
    assert "damaged" in (validity.check(str(path), deep=True) or "")


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_changed_bit_in_what_is_compressed_is_found(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "forest.pkl"
    content = bytearray(compress(os.urandom(3000)))
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))

    assert "damaged" in (validity.check(str(path), deep=True) or "")


@pytest.mark.parametrize("name", ["model.h5", "model.npz", "model.safetensors", "model.npy"])
def test_the_first_bytes_count_more_than_the_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_torch_like(path)

    assert validity.check(str(path), deep=True) is None


@pytest.mark.parametrize("name", ["a.pkl", "a.pickle", "a.pt", "a.pth", "a.ckpt", "a.bin", "a"])
def test_what_nobody_knows_counts_as_valid(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"hello, this is a format of my own" + bytes(range(256)))

    assert validity.check(str(path), deep=True) is None
