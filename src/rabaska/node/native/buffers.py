"""Where the bytes of Python's own objects lie, for C to read and to fill."""

import ctypes
from array import array
from ctypes import c_char_p, c_int, c_ssize_t, c_void_p
from typing import Any, List

_get = ctypes.pythonapi.PyObject_GetBuffer
_get.argtypes = [ctypes.py_object, c_void_p, c_int]
_release = ctypes.pythonapi.PyBuffer_Release
_release.argtypes, _release.restype = [c_void_p], None
_new_bytes = ctypes.pythonapi.PyBytes_FromStringAndSize
_new_bytes.argtypes, _new_bytes.restype = [c_void_p, c_ssize_t], ctypes.py_object


class Buffer(ctypes.Structure):
    """Python's own Py_buffer, the same in every release."""

    _fields_ = [
        ("address", c_void_p),
        ("owner", c_void_p),
        ("size", c_ssize_t),
        ("item", c_ssize_t),
        ("readonly", c_int),
        ("dimensions", c_int),
        ("format", c_char_p),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("suboffsets", c_void_p),
        ("internal", c_void_p),
    ]


class Pinned:
    """Where the bytes of an object lie, while a block of `with` runs."""

    def __init__(self, *objects: Any) -> None:
        self._objects = objects
        self._buffers = []  # type: List[Buffer]

    def __enter__(self) -> List[Buffer]:
        try:
            for value in self._objects:
                buffer = Buffer()
                _get(value, ctypes.byref(buffer), 0)
                self._buffers.append(buffer)
        except BaseException:  # it has no bytes
            self.__exit__()
            raise
        return self._buffers

    def __exit__(self, *_: object) -> None:
        for buffer in self._buffers:
            _release(ctypes.byref(buffer))


def unwritten(size: int) -> bytes:
    """So many bytes that nobody wrote yet; only to be filled by C at once."""
    return _new_bytes(None, size)  # type: ignore[no-any-return]


def column(kind: str, count: int) -> "array[int]":
    made = array(kind)
    made.frombytes(bytes(made.itemsize * count))
    return made


def address(column: "array[int]") -> int:
    """Where an array lies, as long as it does not grow."""
    return column.buffer_info()[0]
