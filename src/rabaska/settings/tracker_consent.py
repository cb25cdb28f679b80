"""`[trackers]` of settings.toml, next to this computer's list of runs: what may be uploaded.

    [trackers]
    wandb = true      # `rabaska fetch` syncs W&B's offline logs; --sync and --no-sync write it

It is no key of rabaska.toml: that is sent with the code, and may have been written by others.
"""

import tomllib
from pathlib import Path

from rabaska.errors import SettingsError
from rabaska.node import files

FILE = "settings.toml"
_TABLE, _KEY = "trackers", "wandb"


def wandb_consent(folder: Path) -> bool | None:
    """Whether the user said that W&B's offline logs are synced; None: nothing was said."""
    table = _read(folder / FILE).get(_TABLE)
    said = table.get(_KEY) if isinstance(table, dict) else None
    return said if isinstance(said, bool) else None


def write_wandb_consent(folder: Path, *, sync: bool) -> Path:
    """Say so from now on; every other line of the file stays as it is."""
    import tomlkit

    file = folder / FILE
    _read(file)  # refused before anything is changed
    text = file.read_text("utf-8") if file.exists() else ""
    document = tomlkit.parse(text)
    table = document.setdefault(_TABLE, tomlkit.table())
    table[_KEY] = sync
    files.write_whole(str(file), tomlkit.dumps(document))
    return file


def _read(file: Path) -> dict[str, object]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise SettingsError(f"{file} cannot be read", why=str(problem)) from problem
