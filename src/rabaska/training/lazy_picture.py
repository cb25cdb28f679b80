"""A JPEG picture as a Pillow image that decodes no more than is asked of it.

To a program, torchvision's transforms included, it is an ordinary `PIL.Image.Image` in RGB. To
crop it decodes nothing; to resize it, only the part that is left is decoded, and at a reduced size
where the result has at most half as many pixels each way. Everything else decodes all of it, by
Pillow.
"""

import io
from typing import Any, Dict, Optional, Tuple

from PIL import Image

from . import jpeg_parts
from .jpeg_parts import Box

_FILTERS = (jpeg_parts.BILINEAR, jpeg_parts.BICUBIC)
_REDUCED = (8, 4, 2)  # what libjpeg can divide both sides of a picture by


def opened(content: bytes) -> Image.Image:
    """A picture in RGB, as `Image.open(...).convert("RGB")` gives it."""
    size = jpeg_parts.size(content)
    limit = Image.MAX_IMAGE_PIXELS
    if size is None or (limit is not None and size[0] * size[1] > limit):
        return opened_by_pillow(content)
    return LazyPicture(content, Box(0, 0, *size))


def opened_by_pillow(content: bytes) -> Image.Image:
    # As ImageFolder does it: three channels whatever the file has.
    return Image.open(io.BytesIO(content)).convert("RGB")


class LazyPicture(Image.Image):
    """A part of a JPEG picture that nobody has decoded yet."""

    def __init__(self, content: bytes, box: Box) -> None:
        super().__init__()
        self._mode = "RGB"  # as Pillow's own classes of files do it
        self._size = (box.width, box.height)
        self._content: Optional[bytes] = content
        self._box = box
        self._info: Optional[Dict[Any, Any]] = None

    @property
    def info(self) -> Dict[Any, Any]:
        """What the file says of itself, its EXIF among it; read when somebody wants to know."""
        if self._info is None and self._content is not None:
            self._info = Image.open(io.BytesIO(self._content)).info
        return self._info if self._info is not None else {}

    @info.setter
    def info(self, value: Dict[Any, Any]) -> None:
        self._info = value

    def load(self) -> Any:
        if self._content is not None:
            whole, box = opened_by_pillow(self._content), self._box
            self._info = whole.info if self._info is None else self._info
            if (box.width, box.height) != whole.size:
                whole = whole.crop((box.left, box.top, box.left + box.width, box.top + box.height))
            self._content = None
            self.im = whole.im
        return super().load()

    def copy(self) -> Image.Image:
        return super().copy() if self._content is None else LazyPicture(self._content, self._box)

    def convert(self, mode: Any = None, *others: Any, **more: Any) -> Image.Image:
        if mode == "RGB" and not others and not more:
            return self.copy()
        return super().convert(mode, *others, **more)

    def crop(self, box: Any = None) -> Image.Image:
        if self._content is None or box is None:
            return super().crop(box) if box is not None else self.copy()
        left, top, right, bottom = map(int, map(round, box))
        if not (0 <= left < right <= self.width and 0 <= top < bottom <= self.height):
            return super().crop(box)
        here = Box(self._box.left + left, self._box.top + top, right - left, bottom - top)
        return LazyPicture(self._content, here)

    def resize(
        self,
        size: Any,
        resample: Any = None,
        box: Any = None,
        reducing_gap: Optional[float] = None,
    ) -> Image.Image:
        if self._content is not None and box is None and resample in _FILTERS:
            width, height = size
            made = jpeg_parts.part(self._content, self._box, int(width), int(height), int(resample))
            if made is not None:
                return Image.frombytes("RGB", (width, height), bytes(made), "raw", "RGBX")
        return super().resize(size, resample, box, reducing_gap)


def resized(content: bytes, box: Box, size: Tuple[int, int]) -> Image.Image:
    """`box` of any picture in so many pixels, by Pillow alone, JPEG in its `draft` mode."""
    whole = Image.open(io.BytesIO(content))
    width, height = whole.size
    by = next((n for n in _REDUCED if box.width >= n * size[0] and box.height >= n * size[1]), 1)
    whole.draft("RGB", (max(1, width // by), max(1, height // by)))
    across, down = whole.size[0] / width, whole.size[1] / height
    part = (
        box.left * across,
        box.top * down,
        (box.left + box.width) * across,
        (box.top + box.height) * down,
    )
    inner = (int(part[0]), int(part[1]), -int(-part[2] // 1), -int(-part[3] // 1))
    cut = whole.convert("RGB").crop(inner)
    left, top = part[0] - inner[0], part[1] - inner[1]
    rest = (left, top, left + part[2] - part[0], top + part[3] - part[1])
    return cut.resize(size, Image.Resampling.BILINEAR, box=rest)
