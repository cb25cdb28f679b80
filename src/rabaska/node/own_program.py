"""Our own program as a file: whether it is what was sent, and a copy that is compiled."""

import importlib.util
import marshal
import os
import re
import struct
import sys
from io import BytesIO

from . import files

COMPILED = ".compiled"  # what the name of the copy with compiled code ends with


def own_path() -> str:
    """The zipapp (or folder) this very module was loaded from."""
    package = os.path.dirname(os.path.abspath(__file__))
    return os.path.dirname(os.path.dirname(package))


def program_path() -> str:
    """The program that was sent, also when it is its compiled copy that runs."""
    own = own_path()
    return own[: -len(COMPILED)] if own.endswith(COMPILED) else own


def is_damaged() -> bool:
    """Whether we were sent under a digest that is not ours; Python itself compares no checksum."""
    path = program_path()
    name = re.match(r"([0-9a-f]{16})\.pyz\Z", os.path.basename(path))
    if name is None:
        return False
    import hashlib

    with open(path, "rb") as stream:
        return not hashlib.sha256(stream.read()).hexdigest().startswith(name.group(1))


_UNCHECKED = 1  # no hash of the source needs to be compared, for it cannot change: PEP 552


def write_compiled_copy() -> None:
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
    import zipfile  # only here: it brings every compressor along

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
