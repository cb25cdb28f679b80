"""Secrets: which variables and files are likely to hold one, and values that show themselves to
nobody."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from rabaska.domain.toml_text import Path, Scan, Span

_WORDS = r"KEY|API_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|CONNECTION_STRING"
_NAME = re.compile(rf"(?:^|_|API|AUTH|ACCESS)(?:{_WORDS})(?:_|$)", re.IGNORECASE)
# At the end of a name; PWD alone is the shell's own folder.
_LAST = re.compile(
    r"(?:PASSWORD|PASSWD|PASSPHRASE|TOKEN|SECRET)$|(?:^|_)(?:PASS|PAT)$|_PWD$", re.IGNORECASE
)
_LOGIN = re.compile(r"://[^/\s:@]+:[^/\s@]+@")  # an address that holds a password

_FILES = (
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    ".netrc",
    "_netrc",
    "netrc",
    ".pypirc",
    ".git-credentials",
    ".pgpass",
    ".my.cnf",
    ".boto",
    ".s3cfg",
    ".htpasswd",
    "kaggle.json",
    "credentials.json",
    "client_secret*.json",
    "service[-_]account*.json",
    "secrets.toml",
    "secrets.json",
    "secrets.y*ml",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_*_sk",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.ppk",
    "*.kdbx",
    # Copies of settings that editors and people leave: nobody takes the secrets out of them.
    "rabaska.toml?*",
    ".rabaska.toml?*",
    "#rabaska.toml#",
    ".#rabaska.toml",
)
_PLACES = (
    ".ssh/*",
    ".aws/credentials",
    ".aws/sso/*",
    ".gnupg/*",
    ".huggingface/token",
    "huggingface/token",
    ".kaggle/*",
    ".docker/config.json",
    ".config/gcloud/*",
    ".azure/*",
    ".kube/config",
)
# Folders in which programs keep keys and passwords.
_KEEPERS = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".kaggle",
    ".password-store",
    ".mozilla",
    ".config/gcloud",
    ".config/gh",
    ".config/rclone",
    ".local/share/keyrings",
)
_HARMLESS = ("*.example", "*.sample", "*.template", "*.dist", "*.pub", "example.env", "sample.env")
# A header alone is in programs that read keys; a key follows it, also as text in JSON.
_KEY = re.compile(
    rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[ \t]*(?:\\r|\\n|\r|\n)\s*[A-Za-z0-9+/=]"
)
_SHORTEST = 8  # characters: shorter values are in many files by chance
_PLAIN = re.compile(r"[a-z_.-]+|[A-Z_.-]+")  # a name, as in SORT_KEY=val_loss
_PERHAPS_KEYS = ("*.pem", "*.key", "*.asc")  # certificates are called so, too


class Secrets:
    """Variables whose values are handed to the program, and never shown."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = dict(values or {})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._values))

    def reveal(self) -> dict[str, str]:
        """The values, for the file that travels and for nothing else."""
        return dict(self._values)

    def sought(self) -> tuple[bytes, ...]:
        """What to look for in files that travel: the values that are in none by chance."""
        texts = {text.strip() for text in self._values.values()}
        long = (text for text in texts if len(text) >= _SHORTEST and not _PLAIN.fullmatch(text))
        return tuple(sorted(text.encode() for text in long))

    def __or__(self, other: "Secrets") -> "Secrets":
        return Secrets({**self._values, **other._values})

    def __bool__(self) -> bool:
        return bool(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secrets) and other._values == self._values

    def __hash__(self) -> int:
        return hash(self.names)

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self.names)})"


def looks_secret(name: str, value: str) -> bool:
    """Whether a variable is likely to be a secret, by its name or because it holds a password."""
    return bool(value) and bool(_NAME.search(name) or _LAST.search(name) or _LOGIN.search(value))


def parted(variables: Mapping[str, str]) -> tuple[dict[str, str], Secrets]:
    """Variables that everybody may see, and those that are likely to be secrets."""
    hidden = {name: text for name, text in variables.items() if looks_secret(name, text)}
    shown = {name: text for name, text in variables.items() if name not in hidden}
    return shown, Secrets(hidden)


def may_tell_secret(comment: str) -> bool:
    """Whether a comment may hold what is or was a secret."""
    named = re.findall(r"""([A-Za-z_][\w-]*)["']?\s*[=:]""", comment)
    return bool(_LOGIN.search(comment)) or any(looks_secret(name, "any") for name in named)


def file_looks_secret(path: str) -> bool:
    """Whether a file of a project is likely to hold a key or a token, by its path."""
    base = path.rpartition("/")[2]
    if _fits(base, _HARMLESS):
        return False
    return _fits(base, _FILES) or any(_fits(path, (place, f"*/{place}")) for place in _PLACES)


def keeps_secrets(path: str, home: str) -> bool:
    """Whether a real path is in a folder where programs keep keys, or holds all of the home."""
    inside = path.rstrip("/") + "/"
    return any(f"/{folder}/" in inside for folder in _KEEPERS) or f"{home}/".startswith(inside)


def file_may_be_key(path: str) -> bool:
    """Whether only its content tells if a file is a private key."""
    return _fits(path.rpartition("/")[2], _PERHAPS_KEYS)


def is_private_key(beginning: bytes) -> bool:
    return b"PRIVATE KEY" in beginning


def holds_private_key(content: bytes) -> bool:
    """Whether a private key is in a file, whatever it is called."""
    return b"PRIVATE KEY" in content and _KEY.search(content) is not None


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name.lower(), pattern) for pattern in patterns)


def read_lines(text: str) -> Iterator[tuple[str, str]]:
    """The variables in a file of lines `NAME=value`, as `.env` files have them."""
    for line in text.splitlines():
        assignment = re.fullmatch(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*", line)
        if assignment:
            yield assignment[1], _unquoted(assignment[2])


def _unquoted(text: str) -> str:
    for mark in ("'", '"'):
        if len(text) > 1 and text.startswith(mark):
            end = text.find(mark, 1)
            return text[1:end] if end > 0 else text
    return re.sub(r"\s+#.*", "", text)


_HIDDEN = '"***"'


def without_secrets(content: bytes) -> bytes | None:
    """`content` with `***` in place of what is likely to be a secret.

    None where a secret would still be in it, as one that is also the value of another key, and
    where it is no TOML, so that nobody knows. A file without secrets stays as it is, byte by byte.
    """
    try:
        text = content.decode("utf-8-sig")
        values, scan = tomllib.loads(text), Scan(text)
    except (ValueError, OverflowError, RecursionError):
        return None
    secrets = {path: value for path, value in _leaves(values) if _is_secret(path, value)}
    comments = [span for span in scan.comments if may_tell_secret(scan.text[slice(*span)])]
    if not secrets and not comments:
        return content
    if not secrets.keys() <= scan.values.keys():
        return None
    blanks = [(scan.values[path], _HIDDEN) for path in secrets] + [(span, "#") for span in comments]
    copy = _replaced(scan.text, blanks)
    written = [scan.text[slice(*scan.values[path])] for path in secrets]
    texts = {*map(_text, secrets.values()), *written, *(text.strip("\"'") for text in written)}
    return None if _holds(copy, texts - {""}) else copy.encode()


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value that is neither a table nor a list."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _leaves(inner, (*path, number))
    else:
        yield path, value


def _is_secret(path: Path, value: Any) -> bool:
    """By the name of its key or of a table around it, or because it holds a password."""
    return any(looks_secret(str(name), _text(value)) for name in path)


def _text(value: Any) -> str:
    """As the program would be given it; of days and times, as they are usually written."""
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _replaced(text: str, blanks: list[tuple[Span, str]]) -> str:
    for (start, end), instead in sorted(blanks, reverse=True):
        text = text[:start] + instead + text[end:]
    return text


def _holds(copy: str, secrets: set[str]) -> bool:
    """Whether a secret is in the copy, as it is written or as it is meant."""
    meant = [_text(value) for _, value in _leaves(tomllib.loads(copy))]
    return any(secret in place for place in (copy, *meant) for secret in secrets)
