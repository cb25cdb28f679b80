"""Laptops with a small project, and the place to which their runs go."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.voyages.conftest import User, end_everything_of

from rabaska.cli.commands import rabaska

SETTINGS = 'name = "tiny"\ncommand = "{command}"\n[resources]\nwalltime = "30s"\n'


class Laptop:
    """Somebody at a computer whose names are drawn from a list instead of by chance."""

    def __init__(self, folder: Path, monkeypatch) -> None:
        self.user = User(folder / "project", folder / "home")
        self.monkeypatch = monkeypatch
        self.project = self.user.project
        self.project.mkdir(parents=True)
        self.says("first")

    def says(self, word: str, command: str = "echo") -> None:
        (self.project / "rabaska.toml").write_text(SETTINGS.format(command=f"{command} {word}"))

    def goes_there(self) -> None:
        """From now on, this process is at that computer."""
        for name in ("RABASKA_HOME", "NO_COLOR", "PATH"):
            self.monkeypatch.setenv(name, self.user.environment[name])
        self.monkeypatch.chdir(self.project)

    def types(self, *words, draws=(), both=False):
        """What a command prints; names of new runs end in `draws`, one after another."""
        left = list(draws)
        self.goes_there()
        draw = (lambda _: left.pop(0)) if draws else None
        done = CliRunner().invoke(rabaska, words, obj=draw, standalone_mode=False)
        if done.exception:
            raise done.exception
        return (done.output if both else done.stdout).strip()

    def status(self, run):
        return json.loads(self.types("status", run, "--json"))


@pytest.fixture
def laptop(tmp_path, monkeypatch):
    someone = Laptop(tmp_path / "one", monkeypatch)
    yield someone
    end_everything_of(someone.user.home)


@pytest.fixture
def other(laptop, tmp_path, monkeypatch):
    """A second laptop whose runs go to the same place."""
    someone = Laptop(tmp_path / "two", monkeypatch)
    laptop.user.home.joinpath("store").mkdir(parents=True)
    someone.user.home.mkdir()
    someone.user.home.joinpath("store").symlink_to(laptop.user.home / "store")
    someone.says("second")
    yield someone
    end_everything_of(someone.user.home)
