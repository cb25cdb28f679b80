"""Whether a pickle or a compressed file was cut short; nothing is unpickled."""

import zlib
from typing import Any, BinaryIO, NamedTuple, Optional, Set, Tuple, Type

CUT_SHORT = "it is cut short: a pickle ends with a STOP mark, and this one does not"

_STOP = b"."
_MOST = 10**6  # opcodes, which take a second or less
_MOST_DEEP = 2 * 10**7
# The pickled number 0x1950a86a20f9469cfc6c opens each file that torch.save wrote before 1.6, at
# every protocol; four more pickles follow, then the numbers of the tensors.
_OLD_TORCH = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_PICKLES_OF_OLD_TORCH = 5

# What follows each opcode: so many bytes, a length of so many bytes and then that many bytes, or so
# many lines (`pickletools`, which does not know all of them under an older Python).
_NOTHING = b"N]ael)td}su02(1RboQ\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94\x97\x98"
_BYTES = {bytes([code]): 0 for code in _NOTHING}
_BYTES.update({b"K": 1, b"h": 1, b"q": 1, b"\x80": 1, b"\x82": 1})
_BYTES.update({b"M": 2, b"\x83": 2, b"J": 4, b"j": 4, b"r": 4, b"\x84": 4, b"G": 8, b"\x95": 8})
_LENGTH = {
    b"\x8a": 1,
    b"U": 1,
    b"C": 1,
    b"\x8c": 1,
    b"\x8b": 4,
    b"T": 4,
    b"B": 4,
    b"X": 4,
    b"\x8d": 8,
    b"\x8e": 8,
    b"\x96": 8,
}
_LINES = {b"I": 1, b"L": 1, b"S": 1, b"V": 1, b"F": 1, b"g": 1, b"p": 1, b"P": 1, b"c": 2, b"i": 2}
_SHORT = 256  # bytes: the name of a class is no longer
_LONGEST_LINE = 1 << 20

_NAMES = (b"\x8c", b"X", b"\x8d", b"U", b"T")
_GLOBAL, _STACK_GLOBAL, _MEMOIZE, _FRAME = (b"c", b"i"), b"\x93", b"\x94", b"\x95"
_FROM_MEMO = (b"h", b"j")


class _Walked(NamedTuple):
    end: Optional[int]  # after the STOP mark; None when the file ended before it
    clear: bool = True  # whether that proves anything
    opcodes: int = 0


_UNCLEAR = _Walked(None, clear=False)


def is_pickle(head: bytes) -> bool:
    """Whether a file that begins so is a pickle of protocol 2 or later.

    Older ones begin like any text, and then nothing can be proved.
    """
    return head[:1] == b"\x80" and (len(head) < 2 or 2 <= head[1] <= 5)


def check_pickle(stream: BinaryIO, size: int, deep: bool, begin: int = 0) -> Optional[str]:
    """None unless the pickles that begin at `begin` are cut short, else why they are."""
    left = _MOST_DEEP if deep else _MOST
    stream.seek(begin)
    of_torch = _OLD_TORCH in stream.read(32)
    count = 0
    while begin < size and not (of_torch and count == _PICKLES_OF_OLD_TORCH):
        stream.seek(begin)
        if not is_pickle(stream.read(2)):
            return None
        walked = _walk(stream, begin, size, left, None if of_torch else _Classes())
        if not walked.clear:
            return None
        if walked.end is None:
            return CUT_SHORT
        begin, left, count = walked.end, left - walked.opcodes, count + 1
    return CUT_SHORT if of_torch and count < _PICKLES_OF_OLD_TORCH else None


class _Classes:
    """Finds the class of joblib that has numbers between the opcodes, by the names of modules.

    STACK_GLOBAL takes the module and the name that were pushed last, the former perhaps out of
    the memo. A text that only mentions joblib is none of this.
    """

    def __init__(self) -> None:
        self._pushed = (False, False)  # whether the last two values are such a module
        self._memo: Set[int] = set()
        self._memoized = 0

    def is_of_joblib(self, code: bytes, argument: bytes) -> bool:
        if code in _GLOBAL:
            return _is_module_of_joblib(argument)
        if code == _STACK_GLOBAL:
            return self._pushed[0]
        if code == _MEMOIZE:
            if self._pushed[1]:
                self._memo.add(self._memoized)
            self._memoized += 1
        elif code != _FRAME:
            named = code in _NAMES and _is_module_of_joblib(argument)
            again = code in _FROM_MEMO and int.from_bytes(argument, "little") in self._memo
            self._pushed = (self._pushed[1], named or again)
        return False


def _is_module_of_joblib(name: bytes) -> bool:
    """`joblib.numpy_pickle`, or the copy of it that scikit-learn had."""
    return name.strip().split(b".")[-2:] == [b"joblib", b"numpy_pickle"]


def _walk(
    stream: BinaryIO, begin: int, size: int, most: int, classes: Optional[_Classes]
) -> _Walked:
    """Where the pickle at `begin` ends; without `classes` it is known to be none of joblib."""
    stream.seek(begin)
    place = begin
    for count in range(1, most):
        code = stream.read(1)
        if not code:
            return _Walked(None)
        if code == _STOP:
            return _Walked(place + 1, opcodes=count)
        place += 1
        argument = b""
        if code in _BYTES:
            place += _BYTES[code]
            argument = stream.read(_BYTES[code])
        elif code in _LENGTH:
            width = _LENGTH[code]
            length = int.from_bytes(stream.read(width), "little")
            place += width + length
            if place <= size and length >= _SHORT:
                stream.seek(place)
            elif place <= size:
                argument = stream.read(length)
        elif code in _LINES:
            lines = [stream.readline(_LONGEST_LINE) for _ in range(_LINES[code])]
            place += sum(map(len, lines))
            argument = lines[0]
            if not lines[-1].endswith(b"\n"):
                return _Walked(None) if place == size else _UNCLEAR
        else:
            return _UNCLEAR
        if place > size:
            return _Walked(None)
        if classes is not None and classes.is_of_joblib(code, argument):
            return _of_joblib(stream, size)
    return _UNCLEAR


def _of_joblib(stream: BinaryIO, size: int) -> _Walked:
    """joblib puts the numbers of an array between the opcodes; its file ends with a STOP mark."""
    stream.seek(size - 1)
    return _Walked(size) if stream.read(1) == _STOP else _Walked(None)


_CHUNK = 1 << 20
_PIECE = 1 << 16  # read at once: what follows a member is copied, and members may be small
_GZIP, _BZIP2, _XZ = b"\x1f\x8b\x08", b"BZh", b"\xfd7zXZ\0"
_ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_OTHERS = (b"\x04\x22\x4d\x18", b"\x28\xb5\x2f\xfd")  # lz4 and zstd, which Python cannot read
_ZLIB_OR_GZIP = 32 + 15  # window bits, as zlib's manual spells "either, by the header"


def is_compressed(head: bytes) -> bool:
    return head.startswith((_GZIP, _BZIP2, _XZ) + _ZLIB + _OTHERS)


def check_compressed(stream: BinaryIO, size: int, deep: bool) -> Optional[str]:
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
