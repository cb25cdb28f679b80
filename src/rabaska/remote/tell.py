"""Telling somebody something: a command on this computer, or a POST to an address."""

import json
import os
from collections.abc import Sequence
from urllib.parse import urlsplit

from rabaska.errors import CommandFailed
from rabaska.remote import programs

_PATIENCE = 15  # seconds


def by_command(words: Sequence[str], title: str, text: str, variables: dict[str, str]) -> None:
    """Start a program with the text on its standard input; `{title}` and `{text}` are filled in.

    No shell reads them. What it prints is dropped, for the terminal may show something else.
    """
    from subprocess import DEVNULL, PIPE, TimeoutExpired

    filled = [word.replace("{title}", title).replace("{text}", text) for word in words]
    try:
        done = programs.run(
            filled,
            input=f"{title}\n{text}\n".encode(errors="replace"),
            stdout=DEVNULL,
            stderr=PIPE,
            env={**os.environ, **variables},
            timeout=_PATIENCE,
        )
    except TimeoutExpired:
        raise CommandFailed(
            f"`{words[0]}`, the command of [notify], did not end within {_PATIENCE} seconds"
        ) from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise CommandFailed(
            f"`{words[0]}`, the command of [notify], failed",
            why=said or f"exit code {done.returncode}",
        )


def by_webhook(address: str, title: str, text: str, *, form: str = "", token: str = "") -> None:
    """POST it: as plain text for ntfy and others, as JSON where the address is known to want it.

    The address may be a secret itself, so no message names more of it than its host.
    """
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, build_opener

    host = urlsplit(address).hostname or ""
    content, headers = _body(title, text, form or _form(address))
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        request = Request(address, content, headers, method="POST")  # noqa: S310 - checked
        with build_opener(_no_redirect()).open(request, timeout=_PATIENCE):
            return
    except HTTPError as problem:
        why = f"it answered {problem.code} {problem.reason}"
        problem.close()
    except (URLError, HTTPException, OSError, ValueError) as problem:
        why = str(getattr(problem, "reason", "") or type(problem).__name__)
    raise CommandFailed(f"the webhook at {host} was not told", why=why.replace(address, host))


def _form(address: str) -> str:
    parts = urlsplit(address)
    host = parts.hostname or ""
    if host == "hooks.slack.com":
        return "slack"
    if host in ("discord.com", "discordapp.com"):
        return "discord"
    return "matrix" if parts.path.startswith("/_matrix/") else "text"


def _body(title: str, text: str, form: str) -> tuple[bytes, dict[str, str]]:
    message = f"{title}\n{text}".strip()
    known = {
        "slack": {"text": message},
        "discord": {"content": message[:2000]},
        "matrix": {"msgtype": "m.text", "body": message},
    }
    if form in known:
        return json.dumps(known[form]).encode(), {"Content-Type": "application/json"}
    # A header holds no line break and nothing but Latin letters; ntfy shows it above the text.
    plain = " ".join(title.encode("ascii", "replace").decode().split())
    return message.encode(), {"Content-Type": "text/plain; charset=utf-8", "Title": plain}


def _no_redirect() -> "type":
    """A POST that is sent elsewhere would take the token with it."""
    from urllib.request import HTTPRedirectHandler

    class Never(HTTPRedirectHandler):
        def redirect_request(self, *_words: object) -> None:
            return None

    return Never
