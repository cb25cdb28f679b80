"""Variables of the environment, and how long the system lets them be."""

import os
from typing import Mapping, Tuple

# Linux: 32 pages of 4 KiB for one "NAME=value" and its final zero (MAX_ARG_STRLEN, execve(2)).
LONGEST = 32 * 4096 - 1


def longest(environment: Mapping[str, str]) -> Tuple[str, int]:
    """The name of the longest one, and the bytes of it that count."""
    sizes = [(len(os.fsencode(name + "=" + text)), name) for name, text in environment.items()]
    size, name = max(sizes, default=(0, ""))
    return name, size


def too_long(environment: Mapping[str, str]) -> str:
    """What is wrong with the longest one; empty when the system takes it."""
    name, size = longest(environment)
    if size <= LONGEST:
        return ""
    said = "the variable {} has {:,} bytes, and the system allows {:,}"
    return said.format(name, size, LONGEST)
