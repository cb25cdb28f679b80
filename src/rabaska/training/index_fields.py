"""The fields of samples in a pack's index: by NumPy where the program has it, else one by one."""

import struct
from itertools import repeat
from typing import Any, List, Optional

from rabaska.node.data.pack_format import HEADER, RECORD, Index

from . import lazy_imports

# offset, size, shard, class and crc32 are at these places of a record: `pack_format`
_FIELDS = {
    "offset": ("<u8", 0),
    "size": ("<u8", 8),
    "shard": ("<u4", 40),
    "label": ("<i4", 56),
    "crc": ("<u4", 44),
}
_PLACE = struct.Struct("<QQ24xI12xi4x")  # the first four
_CRC = struct.Struct("<44xI16x")


class IndexFields:
    """Fields of samples, given their positions."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._columns: Optional[List[Any]] = None

    def places(self, positions: List[int]) -> List[List[int]]:
        """Offsets, sizes, shards and classes of the samples."""
        numpy = lazy_imports.numpy()
        if numpy is None:
            starts = [HEADER.size + position * RECORD.size for position in positions]
            records = map(_PLACE.unpack_from, repeat(self._index.map), starts)
            return list(map(list, zip(*records)))
        # Column by column: for all at once NumPy would make a record of each sample.
        numbers = numpy.asarray(positions, numpy.intp)
        return [column[numbers].tolist() for column in self._arrays(numpy)[:4]]

    def crcs(self, positions: List[int]) -> List[int]:
        """The crc32 of each of the samples, as the index has it."""
        numpy = lazy_imports.numpy()
        if numpy is None:
            starts = [HEADER.size + position * RECORD.size for position in positions]
            return [crc for (crc,) in map(_CRC.unpack_from, repeat(self._index.map), starts)]
        crcs: List[int] = self._arrays(numpy)[4][numpy.asarray(positions, numpy.intp)].tolist()
        return crcs

    def _arrays(self, numpy: Any) -> List[Any]:
        if self._columns is None:
            self._columns = _arrays_over(self._index, numpy)
        return self._columns


def _arrays_over(index: Index, numpy: Any) -> List[Any]:
    """The fields of all samples: arrays over the mapped index."""
    kind = numpy.dtype(
        {
            "names": list(_FIELDS),
            "formats": [form for form, _ in _FIELDS.values()],
            "offsets": [place for _, place in _FIELDS.values()],
            "itemsize": RECORD.size,
        }
    )
    records = numpy.frombuffer(index.map, kind, index.layout.files, HEADER.size)
    return [records[name] for name in _FIELDS]
