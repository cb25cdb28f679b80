"""What ssh's own words mean, and a full disk's; they are quoted, never paraphrased."""

import re
from collections.abc import Sequence

from rabaska.errors import NoSpace, Unreachable


class ConnectionLost(Unreachable):
    """The connection broke in the middle of something."""


class NotBegun(Unreachable):
    """There was no connection, so nothing of what was asked has happened."""


class NoAnswer(NotBegun):
    """The network or the host is down, which may pass."""


class StartUpFailed(Unreachable):
    """A shell was started, and did not get as far as our script."""


_REFUSALS: Sequence[tuple[type[NotBegun], str, str, str]] = (
    (
        NotBegun,
        r"REMOTE HOST IDENTIFICATION HAS CHANGED",
        "the host key of {host} has changed",
        "if the site announced a new key, `ssh-keygen -R {host}` forgets the old one; "
        "if not, ask the site before you continue",
    ),
    (
        NotBegun,
        r"Host key verification failed",
        "the host key of {host} is not known yet",
        "run `ssh {host}` once, compare the key it shows with the one the site publishes, "
        "and answer yes",
    ),
    (
        NoAnswer,
        r"Could not resolve hostname|Name or service not known",
        "there is no host called {host}",
        "check the name, and whether the site asks for a VPN",
    ),
    (
        NoAnswer,
        r"Connection refused",
        "{host} refuses connections",
        "check the port in ~/.ssh/config, and the site's status page: it may be in maintenance",
    ),
    (
        NoAnswer,
        r"No route to host|Network is unreachable|timed out|timeout",
        "{host} does not answer",
        "check your network or VPN, and the site's status page",
    ),
    (
        NotBegun,
        r"Permission denied \([^)]*keyboard-interactive|Duo|verification code|passcode|two-factor",
        "{host} asks for a password or a second factor",
        "run the command in a terminal and answer there; later commands share that "
        "connection. `ssh {host}` must work without rabaska first",
    ),
    (
        NotBegun,
        r"Permission denied|Too many authentication failures",
        "{host} refused your login",
        "`ssh {host}` must work without rabaska first: check user name and key",
    ),
)


def not_begun(host: str, errors: str) -> NotBegun:
    """Why there is no connection."""
    for kind, pattern, what, hint in _REFUSALS:
        if re.search(pattern, errors, re.IGNORECASE):
            return kind(what.format(host=host), why=_quote(errors), hint=hint.format(host=host))
    return NotBegun(
        f"the connection to {host} could not be made",
        why=_quote(errors),
        hint=f"`ssh {host}` must work without rabaska first",
    )


def lost(host: str, errors: str, doing: str = "a command") -> ConnectionLost:
    return ConnectionLost(
        f"the connection to {host} was lost in the middle of {doing}",
        why=_quote(errors),
        hint="run the same command again",
    )


def refuse_full_disk(errors: str) -> None:
    """Raise NoSpace if that is what a command there said."""
    if re.search(r"No space left on device|Disk quota exceeded|File too large", errors):
        raise NoSpace(
            "no space left on the cluster",
            why=errors,
            hint="free some space there and run the same command again: it continues where "
            "it stopped",
        )


def _quote(errors: str) -> str:
    return f"ssh said: {errors.strip()}" if errors.strip() else ""
