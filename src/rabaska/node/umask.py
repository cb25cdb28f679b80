"""Two umasks: ours keeps what we write from others, the user's own is for programs and results.

Every process of ours runs under ours, which shells and schedulers hand down; what the user had
before stands in a variable, so that a training program, and what is brought home, have it again.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Mapping, Optional

VARIABLE = "RABASKA_UMASK"  # the user's own, in octal digits

_OURS = 0o077


def close() -> None:
    """From now on, what this process and its children write is nobody else's."""
    os.environ[VARIABLE] = "{:03o}".format(os.umask(_OURS))


def users(environment: "Optional[Mapping[str, str]]" = None) -> "Optional[int]":
    """The user's own umask; None where nobody has changed it."""
    try:
        return int((environment or os.environ).get(VARIABLE, ""), 8) & 0o777
    except ValueError:
        return None


def restore(environment: "Optional[Mapping[str, str]]" = None) -> None:
    """Give the user's own umask to this process, which is about to become the user's program."""
    own = users(environment)
    if own is not None:
        os.umask(own)


def restored(
    act: "Callable[[], None]", environment: "Optional[Mapping[str, str]]" = None
) -> "Callable[[], None]":
    """`act` and then `restore`, for the moment between fork and exec."""

    def both() -> None:
        act()
        restore(environment)

    return both


class AsUser:
    """Inside the `with`, files are made as the user's own programs would make them."""

    def __enter__(self) -> None:
        own = users()
        self._before = None if own is None else os.umask(own)

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            os.umask(self._before)
