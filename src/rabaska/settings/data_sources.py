"""Where a dataset comes from: the values that may say so, and how those of one cluster win."""

import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator

from rabaska.domain.projects import IN_PLACE
from rabaska.settings.document import Mistake, Path
from rabaska.settings.validation import Line

SOURCES = ("path", "at", "url", "fetch")  # keys of which a dataset has one
_MORE = "beside"
_OF_SOURCE = (*SOURCES, "sha256", _MORE)  # keys that mean nothing with another source


def _place(value: str) -> str:
    plain = value.removeprefix("node:")
    if value and not (plain.startswith(("/", "~", "$")) or re.fullmatch(r"site:\S+", value)):
        raise ValueError(
            "it is a path on the cluster, which begins with `/`, `~` or `$`, or `site:` and the "
            "name of a dataset; data on this computer is named by `path`"
        )
    return value


def _address(value: str) -> str:
    parts = urlsplit(value)
    if value and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise ValueError("it must begin with `https://` or `http://`; `fetch` runs any command")
    if parts.username is not None:
        raise ValueError("it holds a user name; `fetch` runs a command that can log in")
    _ = parts.port  # ValueError if it is no number
    return value


def _sha256(value: str) -> str:
    if value and not re.fullmatch(r"[0-9a-fA-F]{64}", value):
        raise ValueError("it must be 64 hexadecimal digits, as `sha256sum` prints them")
    return value.lower()


def _images(value: str) -> str:
    if value and not 16 <= largest_side(value) <= 65_500:
        raise ValueError('it is `"max 512"`, or another number of pixels from 16 to 65500')
    return value


def largest_side(images: str) -> int:
    """The pixels of `max 512`; 0 for nothing, or what cannot be read."""
    found = re.fullmatch(r"max (\d{1,6})", images.strip())
    return int(found[1]) if found else 0


Images = Annotated[Line, AfterValidator(_images)]
Place = Annotated[Line, AfterValidator(_place)]
Address = Annotated[Line, AfterValidator(_address)]
Sha256 = Annotated[Line, AfterValidator(_sha256)]


def fields_laid_over(general: Mapping[str, object], own: Mapping[str, object]) -> dict[str, object]:
    """The keys written for one cluster over the general ones.

    Who names another source there means that one alone: `at` does not add to `path`.
    """
    if not any(own.get(source) for source in SOURCES):
        return {**general, **own}
    dropped = _OF_SOURCE if own.get("path") else (*_OF_SOURCE, "images")
    return {**{key: value for key, value in general.items() if key not in dropped}, **own}


def mistakes_of_source(path: Path, fields: Mapping[str, Any], *, here: bool) -> list[Mistake]:
    """What is wrong with the keys of one dataset, whose table is at `path` in the file."""
    named = [source for source in SOURCES if str(fields.get(source) or "").strip()]
    table = f"[{'.'.join(map(str, path))}]"
    if not named and "path" in fields:
        return [Mistake((*path, "path"), "empty `path`")]
    if not named:
        advice = "or `at` for data that is on the cluster, or `url` for data to download"
        return [Mistake(path, f"no `path` in {table}", advice)]
    if len(named) > 1:
        both = " and ".join(f"`{source}`" for source in named)
        advice = "keep one; [cluster.NAME.data.NAME] says what differs on one cluster"
        return [Mistake((*path, named[1]), f"{both} in {table}", advice)]
    return [
        Mistake((*path, key), what, advice)
        for key, is_wrong, what, advice in (
            ("sha256", fields.get("sha256") and "url" not in named, *_NO_URL),
            (_MORE, fields.get(_MORE) and "path" not in named, *_NO_PATH),
            ("images", fields.get("images") and "path" not in named, *_NOT_HERE),
            ("as", fields.get("mode") == IN_PLACE and "path" in named and not here, *_NOT_THERE),
            ("as", _on_nodes(fields) and fields.get("mode") not in (None, IN_PLACE), *_ON_NODES),
        )
        if is_wrong
    ]


_NO_URL = "`sha256` without `url`", "it is compared with what `url` gives"
_NO_PATH = f"`{_MORE}` without `path`", "data on the cluster is named by one `at`"
_NOT_HERE = "`images` without `path`", "pictures are shrunk when this computer packs them"
_NOT_THERE = (
    '`as = "in place"` with `path`',
    "a folder of this computer is not on the cluster; name the one there by `at`, or remove `as`",
)
_ON_NODES = (
    "`as` with `node:`",
    'what is on the nodes\' own disks is read there; remove `as`, or write `as = "in place"`',
)


def _on_nodes(fields: Mapping[str, Any]) -> bool:
    return str(fields.get("at") or "").startswith("node:")
