"""settings.toml, next to this computer's list of runs: what one person wants for all projects.

A command that runs on this computer and the address of a webhook stand here and in no project:
rabaska.toml is sent with the code, and may have been written by somebody else."""

import stat
import tomllib
from datetime import timedelta
from pathlib import Path as File
from typing import Any, Literal

from rabaska.domain.notices import Limits, refused_address
from rabaska.errors import SettingsError
from rabaska.node import files
from rabaska.settings import document
from rabaska.settings.document import Mistake, refusal
from rabaska.settings.project_tables import NotifyTable, Table
from rabaska.settings.validation import Duration, Line, Words, checked

FILE = "settings.toml"


class OwnNotifyTable(Table):
    """Whom to tell of runs, from this computer."""

    command: Words = []  # noqa: RUF012
    """A program that `wait`, `watch` and `status` start; `{title}` and `{text}` are filled in, and
    the text is on its standard input."""
    webhook: Line = ""
    """An address to which the text is sent by POST: ntfy, Slack, Discord, Matrix or your own."""
    webhook_as: Literal["text", "slack", "discord", "matrix"] | None = None
    """The form of what is sent; by the address when left out."""
    webhook_token: Line = ""
    """A token that is sent along, as `Authorization: Bearer`."""
    when: list[Literal["ends", "fails", "stalls", "idles"]] = [  # noqa: RUF012
        "ends", "fails", "stalls", "idles",
    ]  # fmt: skip
    """As in rabaska.toml, which wins."""
    stalled_after: Duration = timedelta(minutes=30)
    """As in rabaska.toml, which wins."""
    idle_after: Duration = timedelta(minutes=15)
    """As in rabaska.toml, which wins."""


class TrackersTable(Table):
    """What `rabaska fetch` uploads from this computer, with the login that it has there."""

    wandb: bool | None = None
    """Whether W&B's offline logs are synced; `rabaska fetch --sync` and `--no-sync` write it."""


class OwnSettings(Table):
    """All of settings.toml."""

    notify: OwnNotifyTable = OwnNotifyTable()
    trackers: TrackersTable = TrackersTable()


def own_notify(folder: File) -> OwnNotifyTable | None:
    """Whom to tell, as settings.toml in `folder` says; None where it is not there."""
    file = folder / FILE
    if not file.is_file():
        return None
    written = document.read(file, str(file))
    settings, mistakes = checked(OwnSettings, written.values)
    if settings is None or mistakes:
        raise refusal(mistakes, written)
    table = settings.notify
    if table.webhook and file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsError(
            f"others may read {file}",
            why="the address of a webhook is a secret: who knows it can write to you",
            hint=f"`chmod 600 {file}`",
        )
    _check_address(table, written)
    return table


def _check_address(table: OwnNotifyTable, written: document.Document) -> None:
    why = refused_address(table.webhook, table.webhook_token) if table.webhook else ""
    if why:
        raise refusal([Mistake(("notify", "webhook"), "the address of `webhook`", why)], written)


def limits(own: OwnNotifyTable, project: str) -> Limits:
    """What is told of the runs of a project: as its rabaska.toml says, else as we do."""
    theirs = _of_project(project)
    chosen: dict[str, Any] = {}
    for name in ("when", "stalled_after", "idle_after"):
        chosen[name] = getattr(theirs if name in theirs.model_fields_set else own, name)
    return Limits(tuple(chosen["when"]), chosen["stalled_after"], chosen["idle_after"])


def _of_project(project: str) -> NotifyTable:
    """A file that is gone or wrong says nothing: other commands report it."""
    try:
        values = document.read(File(project) / "rabaska.toml", "").values.get("notify", {})
    except SettingsError:
        return NotifyTable()
    table, _ = checked(NotifyTable, values if isinstance(values, dict) else {})
    return table or NotifyTable()


def wandb_consent(folder: File) -> bool | None:
    """Whether the user said that W&B's offline logs are synced; None: nothing was said."""
    table = _read(folder / FILE).get("trackers")
    said = table.get("wandb") if isinstance(table, dict) else None
    return said if isinstance(said, bool) else None


def write_wandb_consent(folder: File, *, sync: bool) -> File:
    """Say so from now on; every other line of the file stays as it is."""
    import tomlkit

    file = folder / FILE
    _read(file)  # refused before anything is changed
    text = file.read_text("utf-8") if file.exists() else ""
    settings = tomlkit.parse(text)
    table = settings.setdefault("trackers", tomlkit.table())
    table["wandb"] = sync
    files.write_whole(str(file), tomlkit.dumps(settings))
    return file


def _read(file: File) -> dict[str, object]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise SettingsError(f"{file} cannot be read", why=str(problem)) from problem
