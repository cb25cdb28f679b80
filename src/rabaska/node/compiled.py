"""A copy of our program that holds compiled code too, for words that are asked often.

A zip that holds only sources is compiled at every start, which takes longer than the work.
Python takes compiled code of another version for absent, so the copy is never wrong.
"""

import importlib.util
import marshal
import os
import struct
import sys
import zipfile
from io import BytesIO

from . import files
from .itself import COMPILED, own_path

_UNCHECKED = 1  # no hash of the source needs to be compared, for it cannot change: PEP 552


def make_ready() -> None:
    """Write the copy beside the program, unless it is there or cannot be."""
    own = own_path()
    if own.endswith(COMPILED) or not os.path.isfile(own) or sys.version_info < (3, 7):
        return
    try:
        if not os.path.exists(own + COMPILED):
            files.write_whole(own + COMPILED, _with_compiled(own))
    except OSError:
        return  # a full disk: the next one will try again


def _with_compiled(own: str) -> bytes:
    content = BytesIO()
    with zipfile.ZipFile(own) as sources, zipfile.ZipFile(content, "w") as target:
        for name in sources.namelist():
            source = sources.read(name)
            target.writestr(name, source)
            if name.endswith(".py"):
                target.writestr(name + "c", _compiled(source, os.path.join(own, name)))
    return content.getvalue()


def _compiled(source: bytes, path: str) -> bytes:
    code = compile(source, path, "exec", dont_inherit=True)
    head = importlib.util.MAGIC_NUMBER + struct.pack("<LQ", _UNCHECKED, 0)
    return head + marshal.dumps(code)
