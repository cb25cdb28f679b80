"""The content of a file as what its name says it is, where the package for it is installed."""

import io
import json
import os
from typing import Any, Callable, Dict


def decoded(name: str, content: bytes) -> Any:
    """The content as an image, an array, text or whatever its suffix stands for; bytes if none."""
    decode = _DECODERS.get(os.path.splitext(name)[1].lower())
    return decode(content) if decode else content


def _image(content: bytes) -> Any:
    from PIL import Image

    # As ImageFolder does it: three channels whatever the file has.
    return Image.open(io.BytesIO(content)).convert("RGB")


def _array(content: bytes) -> Any:
    import numpy

    return numpy.load(io.BytesIO(content), allow_pickle=False)


def _text(content: bytes) -> str:
    return content.decode("utf-8")


def _number(content: bytes) -> int:
    return int(content)


_IMAGES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".gif")
_DECODERS: Dict[str, Callable[[bytes], Any]] = {
    ".npy": _array,
    ".json": json.loads,
    ".txt": _text,
    ".cls": _number,
}
_DECODERS.update(dict.fromkeys(_IMAGES, _image))
