"""Whether a compressed file is complete: only reading all of it tells."""

import zlib
from typing import Any, BinaryIO, Optional, Tuple, Type

_CHUNK = 1 << 20
_PIECE = 1 << 16  # read at once: what follows a member is copied, and members may be small
_GZIP, _BZIP2, _XZ = b"\x1f\x8b\x08", b"BZh", b"\xfd7zXZ\0"
_ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_OTHERS = (b"\x04\x22\x4d\x18", b"\x28\xb5\x2f\xfd")  # lz4 and zstd, which Python cannot read
_ZLIB_OR_GZIP = 32 + 15  # window bits, as zlib's manual spells "either, by the header"


def is_one(head: bytes) -> bool:
    return head.startswith((_GZIP, _BZIP2, _XZ) + _ZLIB + _OTHERS)


def check(stream: BinaryIO, size: int, deep: bool) -> Optional[str]:
    """None when it is complete as far as can be told; that is nothing unless `deep`."""
    head = stream.read(6)
    stream.seek(0)
    reader, error = _reader(head) if deep else (None, zlib.error)
    if reader is None:
        return None
    try:
        complete = _every_member_ends(reader, head, stream)
    except error as problem:
        if isinstance(problem, OSError) and problem.errno is not None:
            raise  # of the disk: bz2 raises one without a number for wrong bytes
        # Two bytes are too few to be sure that zlib wrote them.
        sure = not head.startswith(_ZLIB)
        return "its compressed content is damaged: {}".format(problem) if sure else None
    return None if complete else "it is cut short: its compressed content has no end"


def _reader(head: bytes) -> Tuple[Any, Type[Exception]]:
    """An object that decompresses what begins so, or None; and how it complains."""
    try:
        if head.startswith(_BZIP2):
            import bz2

            return bz2.BZ2Decompressor(), OSError
        if head.startswith(_XZ):
            import lzma

            return lzma.LZMADecompressor(), lzma.LZMAError
    except ImportError:
        pass  # a Python that was built without it
    return (_Zlib() if head.startswith((_GZIP,) + _ZLIB) else None), zlib.error


class _Zlib:
    """zlib's own object, with the ways of the others."""

    def __init__(self) -> None:
        self._object = zlib.decompressobj(_ZLIB_OR_GZIP)
        self._rest = b""

    def decompress(self, content: bytes, most: int) -> bytes:
        made = self._object.decompress(self._rest + content, most)
        self._rest = self._object.unconsumed_tail
        return made

    @property
    def needs_input(self) -> bool:
        return not self._rest

    @property
    def eof(self) -> bool:
        return self._object.eof

    @property
    def unused_data(self) -> bytes:
        return self._object.unused_data


def _every_member_ends(reader: Any, head: bytes, stream: BinaryIO) -> bool:
    """Whether the first member is complete, and all that follow it, perhaps after zeros.

    Bytes after them that begin like none prove nothing: a program may add its own.
    """
    same = tuple(each for each in (_GZIP, _BZIP2, _XZ) if head.startswith(each))
    content = b""
    while reader is not None:
        if not _runs_to_its_end(reader, content, stream):
            return False
        content = _after_zeros(reader.unused_data, stream)
        reader = _reader(content)[0] if content.startswith(same) else None
    return True


def _runs_to_its_end(reader: Any, content: bytes, stream: BinaryIO) -> bool:
    while not reader.eof:
        if not content and reader.needs_input:
            content = stream.read(_PIECE)
            if not content:
                return False
        reader.decompress(content, _CHUNK)
        content = b""
    return True


def _after_zeros(content: bytes, stream: BinaryIO) -> bytes:
    """What follows, from its first byte that is no zero on."""
    content = content.lstrip(b"\0")
    while len(content) < len(_XZ):
        more = stream.read(_PIECE)
        if not more:
            break
        content = (content + more).lstrip(b"\0")
    return content
