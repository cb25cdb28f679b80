"""Edit a cluster's profile: a copy in the user's editor, checked before it replaces anything."""

import os
import shlex
import shutil
import tempfile
from pathlib import Path
from types import TracebackType

from rabaska.errors import CommandFailed, SettingsError, WrongUse
from rabaska.node import files
from rabaska.records.home import Home
from rabaska.remote import programs
from rabaska.settings.profile_files import profile_files
from rabaska.settings.profiles import load_cluster, unknown

_EDITORS = ("nano", "vi")  # where no variable names one


class Copy:
    """A profile while it is edited."""

    def __init__(self, name: str, home: Home) -> None:
        known = profile_files(home.profiles)
        if name not in known:
            raise unknown(name, known)
        if name == "here":
            raise WrongUse("`here` has nothing to edit", why="it is this computer as it is")
        self.file = home.profiles / f"{name}.toml"
        self._name, self._origin = name, known[name]
        self._before = self._origin.read_bytes()
        self._folder = Path(tempfile.mkdtemp(prefix="rabaska-"))
        self.path = self._folder / f"{name}.toml"
        self.path.write_bytes(self._before)

    def __enter__(self) -> "Copy":
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _problem: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def is_changed(self) -> bool:
        return self.path.exists() and self.path.read_bytes() != self._before

    def open_editor(self) -> None:
        words = editor_words()
        code = programs.run([*words, str(self.path)]).returncode
        if code != 0:
            raise CommandFailed(
                f"the editor `{words[0]}` ended with exit code {code}",
                hint="the profile was not changed; $VISUAL or $EDITOR names another editor",
            )

    def check(self) -> None:
        """SettingsError with the line of each mistake."""
        load_cluster(self._name, user_profiles=self._folder)

    def accept(self) -> Path:
        """Put it in the place of the profile, if it is valid; else SettingsError."""
        self.check()
        self._refuse_changed()
        self.file.parent.mkdir(parents=True, exist_ok=True)
        if self.is_changed:
            # Through a link, as an editor would write.
            files.write_whole(os.path.realpath(self.file), self.path.read_bytes())
        return self.file

    def _refuse_changed(self) -> None:
        """WrongUse when another command wrote the profile while it was edited."""
        now = self.file if self.file.exists() else self._origin
        if not now.exists() or now.read_bytes() != self._before:
            raise WrongUse(
                f"{self.file} was changed meanwhile, and is not overwritten",
                hint=f"what you wrote is in {self.set_aside()}",
            )

    def set_aside(self) -> Path:
        """Keep what was typed and cannot be used, for another try."""
        kept = self.file.with_suffix(".toml.rejected")
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.path, kept)
        return kept


def editor_words() -> list[str]:
    for variable in ("VISUAL", "EDITOR"):
        try:
            words = shlex.split(os.environ.get(variable, ""))
        except ValueError as problem:
            raise SettingsError(f"${variable} cannot be read", why=str(problem)) from None
        if words:
            return words
    found = next((name for name in _EDITORS if programs.is_there(name)), "")
    if not found:
        raise WrongUse("no editor was found", hint="set $EDITOR to the one you use")
    return [found]
