"""Whether a checkpoint file is whole, told from its own format without loading it.

A program that is killed while saving leaves a file with the right name and half the bytes.
How much can be told depends on the format:

    .pt .pth .ckpt .npz .keras   a zip: cut short → always; bits changed → with `deep`
    .safetensors .npy .h5        cut short → always; bits changed → no (they hold no checksum)
    pickles                      cut short → nearly always (see `pickles`); bits changed → no
    PyTorch's old format         cut short → not in the raw numbers that follow the pickles
    .json                        cut short → nearly always; bits changed → no
    gzip, bzip2, xz              cut short or bits changed → with `deep`
    a folder with COMMIT.json    cut short or missing → always; bits changed → with `deep`
    ckpt-5.index (TensorFlow)    the index cut short, or data missing → always
    checkpoint-500 (see folders) as each of its files; those that hold no weights may be empty
    anything else                only that it is neither empty nor all zeros

The first bytes tell the format: `torch.save` writes the same zip whatever the name. Only what is
proved is called damaged; what nobody knows counts as valid.

Nothing is unpickled: a checkpoint is data, and reading it must not run code.
"""

import ast
import errno
import json
import os
import re
import struct
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO, Callable, Dict, List, Optional, Tuple

from . import commit, file_checks, folder_formats, tensorflow

if TYPE_CHECKING:
    from zipfile import ZipFile

ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
NPY_MAGIC = b"\x93NUMPY"

CHUNK = 1 << 20
# The safetensors reader refuses longer headers, so a longer one is noise.
LONGEST_SAFETENSORS_HEADER = 100 * 1000 * 1000
LONGEST_NPY_HEADER = 1 << 20

TRUNCATED = "it is cut short: {} bytes of at least {}"


def check(path: str, deep: bool = False) -> Optional[str]:
    """None when the checkpoint is whole as far as can be told, else why it is not.

    `deep` reads all of it where that tells more. OSError passes: a file that cannot be read
    now (stale handle, no permission) is not a damaged one.
    """
    if folder_formats.is_one(path):
        return folder_formats.check(path, lambda file: check(file, deep))
    if os.path.isdir(path):
        return commit.check(path, deep)
    if tensorflow.is_one(path):
        return tensorflow.check(path)
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size == 0:
            return "it is empty"
        head = stream.read(16)
        stream.seek(0)
        return _checker(path, head)(stream, size, deep)


_Checker = Callable[[BinaryIO, int, bool], Optional[str]]


def _checker(path: str, head: bytes) -> _Checker:
    """By the first bytes; where these are of no known format, by a name that stands for one."""
    extension = os.path.splitext(path)[1].lower()
    if extension == ".safetensors" and _begins_like_safetensors(head):
        return _check_safetensors  # it begins with a number, which may look like anything
    if head.startswith(ZIP_MAGIC):
        return _check_zip
    if head.startswith(HDF5_MAGIC):
        return _check_hdf5
    if head.startswith(NPY_MAGIC):
        return _check_npy
    if file_checks.is_pickle(head):
        return file_checks.check_pickle
    if file_checks.is_compressed(head):
        return file_checks.check_compressed
    return _BY_NAME.get(extension, _check_zeros)


def _begins_like_safetensors(head: bytes) -> bool:
    return len(head) >= 8 and struct.unpack("<Q", head[:8])[0] <= LONGEST_SAFETENSORS_HEADER


def _check_zeros(stream: BinaryIO, size: int, deep: bool) -> Optional[str]:
    """All that can be said of an unknown format: a crash of the machine leaves zeros."""
    if size < 512:
        return None
    content = stream.read(4096)
    while content:
        if content.strip(b"\0"):
            return None
        content = stream.read(CHUNK)
    return "it contains only zeros"


def _check_json(stream: BinaryIO, size: int, deep: bool) -> Optional[str]:
    """By how it ends: it may be one value, or one on each line."""
    begins = stream.read(64).lstrip()[:1]
    stream.seek(max(0, size - 64))
    ends = stream.read().rstrip()[-1:]
    if begins in (b"{", b"[") and ends not in (b"}", b"]"):
        return "it is cut short"
    stream.seek(0)
    return _check_zeros(stream, size, deep)


def _check_zip(stream: BinaryIO, size: int, deep: bool) -> Optional[str]:
    import zipfile  # as costly as all other imports together, and few checkpoints are zips

    try:
        with zipfile.ZipFile(stream) as archive:
            return _check_members(archive, deep)
    except (zipfile.BadZipFile, zlib.error, EOFError, struct.error) as problem:
        return "it is not a complete zip: {}".format(problem)
    except (ValueError, IndexError, OverflowError, MemoryError) as problem:
        return "its table of contents is damaged: {}".format(problem)
    except (NotImplementedError, RuntimeError):
        return None  # encrypted, or a newer compression: whole as far as can be told
    except OSError as problem:
        if problem.errno == errno.EINVAL:  # a damaged offset led before the file's beginning
            return "its table of contents is damaged: {}".format(problem)
        raise


def _check_members(archive: "ZipFile", deep: bool) -> Optional[str]:
    for member in archive.infolist():
        # torch.serialization.set_crc32_options(False) writes 0 where the checksum belongs.
        if not deep or (member.CRC == 0 and member.file_size):
            continue
        with archive.open(member) as content:
            # Past the last byte zipfile compares the checksum and raises BadZipFile.
            while content.read(CHUNK):
                pass
    return None


def _check_safetensors(stream: BinaryIO, size: int, deep: bool) -> Optional[str]:
    if size < 10:
        return TRUNCATED.format(size, 10)
    length = struct.unpack("<Q", stream.read(8))[0]
    if length > LONGEST_SAFETENSORS_HEADER:
        return "its header cannot be {} bytes long".format(length)
    if 8 + length > size:
        return TRUNCATED.format(size, 8 + length)
    try:
        header = json.loads(stream.read(length).decode("utf-8"))
        places = sorted(_places(header))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return "its header is damaged"
    end = 0
    for first, last in places:
        if first != end or last < first:
            return "its header is damaged: the tensors do not follow one another"
        end = last
    if 8 + length + end > size:
        return TRUNCATED.format(size, 8 + length + end)
    return None if 8 + length + end == size else "it is longer than its header says"


def _places(header: Dict[str, Any]) -> List[Tuple[int, int]]:
    found = []
    for name, tensor in header.items():
        if name != "__metadata__":
            first, last = tensor["data_offsets"]
            found.append((int(first), int(last)))
    return found


def _check_npy(stream: BinaryIO, size: int, deep: bool) -> Optional[str]:
    prefix = stream.read(8)
    if not prefix.startswith(NPY_MAGIC) or len(prefix) < 8:
        return "it does not begin like a NumPy file"
    width = "<H" if prefix[6] == 1 else "<I"
    field = stream.read(struct.calcsize(width))
    if len(field) < struct.calcsize(width):
        return TRUNCATED.format(size, 10)
    length = struct.unpack(width, field)[0]
    begin = stream.tell() + length
    if length > LONGEST_NPY_HEADER:
        return "its header cannot be {} bytes long".format(length)
    if begin > size:
        return TRUNCATED.format(size, begin)
    try:
        header = ast.literal_eval(stream.read(length).decode("latin-1").strip())
        item, count = _item_size(header["descr"]), _product(header["shape"])
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError):
        return "its header is damaged"
    if item is None:  # Python objects: a pickle follows
        return file_checks.check_pickle(stream, size, deep, begin)
    return TRUNCATED.format(size, begin + item * count) if begin + item * count > size else None


def _product(shape: Tuple[int, ...]) -> int:
    product = 1
    for length in shape:
        product *= int(length)
    return product


def _item_size(kind: Any) -> Optional[int]:
    """Bytes of one item of a NumPy type as .npy spells it; None for Python objects."""
    if isinstance(kind, str):
        found = re.match(r"[<>|=]?([a-zA-Z?])(\d*)", kind)
        if found is None:
            raise ValueError(kind)
        if found.group(1) == "O":
            return None
        return int(found.group(2) or 1) * (4 if found.group(1) == "U" else 1)
    if isinstance(kind, tuple):  # (type, shape)
        item = _item_size(kind[0])
        return None if item is None else item * _product(kind[1])
    total = 0
    for field in kind:  # [(name, type), (name, type, shape)]
        item = _item_size(field[1])
        if item is None:
            return None
        total += item * _product(field[2] if len(field) > 2 else ())
    return total


def _check_hdf5(stream: BinaryIO, size: int, deep: bool) -> Optional[str]:
    """Compare the end the superblock names with the size (HDF5 format specification, II.A)."""
    begin = _superblock(stream, size)
    if begin is None:
        return "it does not begin like an HDF5 file"
    stream.seek(begin)
    block = stream.read(96).ljust(96, b"\0")
    version = block[8]
    if version > 3:
        return None  # a newer format than is known here
    width = block[13] if version < 2 else block[9]
    if width not in (2, 4, 8):
        return "its superblock is damaged"
    # Base address, one other address, then the end of the file.
    place = {0: 24, 1: 28, 2: 12, 3: 12}[version] + 2 * width
    end = int.from_bytes(block[place : place + width], "little")
    if end > size:
        return TRUNCATED.format(size, end)
    if end == 0 or (version == 3 and block[11] & 1):
        return "it was still open for writing when its program ended"
    return None


def _superblock(stream: BinaryIO, size: int) -> Optional[int]:
    """Where the superblock is: at 0, or after a user block of 512, 1024, 2048 … bytes."""
    begin = 0
    while begin < size:
        stream.seek(begin)
        if stream.read(8) == HDF5_MAGIC:
            return begin
        begin = begin * 2 or 512
    return None


_BY_NAME = {
    ".json": _check_json,
    ".npz": _check_zip,
    ".keras": _check_zip,
    ".safetensors": _check_safetensors,
    ".npy": _check_npy,
    ".h5": _check_hdf5,
    ".hdf5": _check_hdf5,
}  # type: Dict[str, _Checker]
