"""A part of a JPEG picture, resized: by C and the libjpeg-turbo that Pillow has loaded.

Only the rows and columns of the part are decoded, at a half, a quarter or an eighth of the size
where the result has no more pixels than that. Without the library of C, or with a Pillow that was
built on another libjpeg, `part` gives None and Pillow does the work.
"""

import ctypes
import os
from ctypes import POINTER, byref, c_int, c_int64, c_void_p
from functools import lru_cache
from typing import Any, NamedTuple, Optional, Tuple

from rabaska.node.native import compiled

BILINEAR, BICUBIC = 2, 3  # as Pillow counts
_FUNCTIONS = (
    "jpeg_std_error",
    "jpeg_CreateDecompress",
    "jpeg_mem_src",
    "jpeg_read_header",
    "jpeg_start_decompress",
    "jpeg_crop_scanline",
    "jpeg_skip_scanlines",
    "jpeg_read_scanlines",
    "jpeg_destroy_decompress",
)


class Box(NamedTuple):
    """A part of a picture, in pixels."""

    left: int
    top: int
    width: int
    height: int


class _Jpeg(ctypes.Structure):
    """`Jpeg` of pictures.c."""

    _fields_ = [(name, c_void_p) for name in _FUNCTIONS] + [("version", c_int64), ("size", c_int64)]


class _Wanted(ctypes.Structure):
    """`Wanted` of pictures.c."""

    _fields_ = [
        (name, c_int64)
        for name in (*Box._fields, "out_width", "out_height", "filter", "planes", "mirrored")
    ]


def size(content: bytes) -> Optional[Tuple[int, int]]:
    """The width and height of a JPEG picture; None where the picture is left to Pillow."""
    found = _library()
    if found is None or not content.startswith(b"\xff\xd8"):
        return None
    library, jpeg = found
    sides = (c_int64 * 2)()
    if not library.rabaska_jpeg_size(byref(jpeg), content, len(content), sides):
        return None
    return sides[0], sides[1]


def part(content: bytes, box: Box, width: int, height: int, how: int) -> Optional[bytearray]:
    """`box` of a JPEG picture in so many pixels of four bytes: red, green, blue, 255."""
    made = bytearray(4 * width * height)
    wanted = _Wanted(*box, width, height, how, 0, 0)
    room = (ctypes.c_char * len(made)).from_buffer(made)
    return made if _done(content, wanted, ctypes.addressof(room)) else None


def part_into(
    content: bytes, box: Box, width: int, height: int, mirrored: bool, address: int
) -> bool:
    """Write `box` of a picture to memory that holds three planes; whether that could be done."""
    return _done(content, _Wanted(*box, width, height, BILINEAR, 1, mirrored), address)


def _done(content: bytes, wanted: _Wanted, address: int) -> bool:
    found = _library()
    if found is None:
        return False
    library, jpeg = found
    return bool(library.rabaska_picture(byref(jpeg), content, len(content), byref(wanted), address))


@lru_cache(maxsize=None)
def _library() -> Optional[Tuple[Any, _Jpeg]]:
    """Our functions and libjpeg's, if both are here and fit."""
    path = _libjpeg()
    if compiled is None or path is None:
        return None
    library = compiled.library
    try:
        loaded = ctypes.CDLL(path)
        addresses = [ctypes.cast(getattr(loaded, name), c_void_p).value for name in _FUNCTIONS]
    except (OSError, AttributeError):  # not libjpeg-turbo, or older than 1.5
        return None
    for name, arguments in (
        ("jpeg_form", [POINTER(_Jpeg)]),
        ("jpeg_size", [POINTER(_Jpeg), ctypes.c_char_p, c_int64, c_void_p]),
        ("picture", [POINTER(_Jpeg), ctypes.c_char_p, c_int64, POINTER(_Wanted), c_void_p]),
    ):
        function = getattr(library, "rabaska_" + name)
        function.restype, function.argtypes = c_int, arguments
    jpeg = _Jpeg(*addresses, 0, 0)
    return (library, jpeg) if library.rabaska_jpeg_form(byref(jpeg)) else None


def _libjpeg() -> Optional[str]:
    """The file of the libjpeg that Pillow uses: its own pixels are those that a program expects."""
    from PIL import _imaging  # type: ignore[attr-defined,unused-ignore]  # noqa: F401

    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as stream:
            paths = {line.split(None, 5)[5].rstrip("\n") for line in stream if "libjpeg" in line}
    except (OSError, IndexError):
        return None
    found = sorted(path for path in paths if os.path.basename(path).startswith("libjpeg"))
    beside = [path for path in found if "pillow" in path.lower() or "PIL" in path]
    return next(iter(beside or found), None)
